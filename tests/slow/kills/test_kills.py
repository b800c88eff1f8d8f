"""A run of some minutes is killed at random moments, and ends with the same bytes as one that was left alone."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

KILLS = 20
N_TEST = 120_000
N_BLOCKS = -(-N_TEST // 512)
RESULTS = ("certificates.parquet", "attacks.parquet", "report.html", "run.json")


def test_kills(tmp_path):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 256))
    for name, rows in (("train", 50_000), ("test", N_TEST)):
        y = rng.integers(0, 10, rows)
        X = (centres[y] + 4 * rng.normal(size=(rows, 256))).astype(np.float32)
        np.save(tmp_path / f"X_{name}.npy", X)
        np.save(tmp_path / f"y_{name}.npy", y)
    start = time.monotonic()
    certify(tmp_path, "whole").wait()
    alone = time.monotonic() - start
    moments = random.Random(0)
    blocks = []
    while True:
        process = certify(tmp_path, "killed")
        # At any moment, while it starts or works, but never so late that nothing would be left for the other kills.
        until = time.monotonic() + moments.uniform(0.5, max(10.0, alone / 8))
        left = KILLS - len(blocks)
        enough = blocks_in(tmp_path) + (N_BLOCKS - blocks_in(tmp_path)) // (left + 1)
        while process.poll() is None and (left == 0 or (time.monotonic() < until and blocks_in(tmp_path) <= enough)):
            assert_no_partial_file(tmp_path / "killed")
            time.sleep(0.02)
        if process.poll() is not None:
            assert process.returncode == 0
            break
        process.kill()
        process.wait()
        assert_no_partial_file(tmp_path / "killed")
        blocks.append(blocks_in(tmp_path))
        print(f"kill {len(blocks)}: {blocks[-1]} blocks finished", flush=True)
    assert len(blocks) == KILLS
    assert blocks == sorted(blocks)
    for name in RESULTS:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    left = {path.name for path in (tmp_path / "killed").iterdir()}
    assert left == {*RESULTS, "summary.json"}
    print(f"{len(blocks)} kills; left alone it takes {alone:.0f} s; results equal byte for byte")


def blocks_in(folder: Path) -> int:
    return len(list((folder / "killed" / "blocks").glob("*.npz")))


def certify(folder: Path, out: str) -> subprocess.Popen[bytes]:
    files = [f"{folder}/X_{name}.npy,{folder}/y_{name}.npy" for name in ("train", "test")]
    options = ["--partitions", "250", "--attacks", "20", "--quiet", "--out", f"{folder}/{out}"]
    return subprocess.Popen([sys.executable, "-m", "flipcert", "certify", *files, *options], stdout=subprocess.DEVNULL)


def assert_no_partial_file(run: Path) -> None:
    """Every file that has its name can be read to its end."""
    for path in run.glob("blocks/*.npz"):
        try:
            with np.load(path, allow_pickle=False) as stored:
                assert all(stored[name].size for name in stored.files)
        except FileNotFoundError:
            continue  # the run has just ended
