"""A run of some minutes is killed at random moments, and ends with the same bytes as one that was left alone."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

KILLS = 20
RESULTS = ("certificates.parquet", "attacks.parquet", "report.html", "run.json")


def test_kills(tmp_path):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 256))
    for name, rows in (("train", 50_000), ("test", 40_000)):
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
        # Now and then while it starts, mostly at work, and near the end while it writes results.
        until = time.monotonic() + moments.uniform(0.5, max(20.0, 0.3 * alone))
        while process.poll() is None and (time.monotonic() < until or len(blocks) >= KILLS):
            assert_no_partial_file(tmp_path / "killed")
            time.sleep(0.02)
        if process.poll() is not None:
            assert process.returncode == 0
            break
        process.kill()
        process.wait()
        assert_no_partial_file(tmp_path / "killed")
        blocks.append(len(list((tmp_path / "killed" / "blocks").glob("*.npz"))))
        print(f"kill {len(blocks)}: {blocks[-1]} blocks finished", flush=True)
    assert len(blocks) >= KILLS, f"the run ended after {len(blocks)} kills; it was too short"
    assert blocks == sorted(blocks)
    for name in RESULTS:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    left = {path.name for path in (tmp_path / "killed").iterdir()}
    assert left == {*RESULTS, "summary.json"}
    print(f"{len(blocks)} kills; left alone it takes {alone:.0f} s; results equal byte for byte")


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
