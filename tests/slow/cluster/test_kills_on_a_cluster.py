"""A run on a cluster whose workers are killed again and again, and its client too, ends with the same bytes."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from tests.helpers.clusters import kill_a_worker, two_workers

KILLS = 5
N_TEST = 40_000
N_BLOCKS = -(-N_TEST // 512)
RESULTS = ("certificates.parquet", "attacks.parquet", "report.html", "run.json")


def test_kills(tmp_path):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 128))
    for name, rows in (("train", 20_000), ("test", N_TEST)):
        y = rng.integers(0, 10, rows)
        X = (centres[y] + 3 * rng.normal(size=(rows, 128))).astype(np.float32)
        np.save(tmp_path / f"X_{name}.npy", X)
        np.save(tmp_path / f"y_{name}.npy", y)
    process = certify(tmp_path, "whole")
    _, said = process.communicate()
    assert process.returncode == 0, said
    with two_workers() as client:
        address = client.scheduler.address
        # Five workers, one after the other, each when some more blocks are finished.
        process = certify(tmp_path, "workers-killed", "--dask", address)
        killed = []
        for kill in range(1, KILLS + 1):
            wait_for_blocks(tmp_path / "workers-killed", process, kill * N_BLOCKS // (KILLS + 2))
            killed.append(kill_a_worker(client, kill))
            print(f"worker killed after {blocks_in(tmp_path / 'workers-killed')} of {N_BLOCKS} blocks", flush=True)
        _, said = process.communicate()
        assert process.returncode == 0, said
        # Each of them is told once, and nobody else.
        told = re.findall(r"^Lost the worker at (\S+);", said.decode(), re.MULTILINE)
        assert sorted(told) == sorted(killed), said.decode()
        # The client: a new one goes on from what is finished.
        client.wait_for_workers(2)
        for part in (4, 2):
            process = certify(tmp_path, "client-killed", "--dask", address)
            wait_for_blocks(tmp_path / "client-killed", process, N_BLOCKS // part)
            process.kill()
            process.communicate()
            print(f"client killed after {blocks_in(tmp_path / 'client-killed')} of {N_BLOCKS} blocks", flush=True)
        before = blocks_in(tmp_path / "client-killed")
        assert N_BLOCKS // 2 <= before < N_BLOCKS
        process = certify(tmp_path, "client-killed", "--dask", address)
        _, said = process.communicate()
        assert process.returncode == 0, said
    for out in ("workers-killed", "client-killed"):
        for name in RESULTS:
            assert (tmp_path / out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), (out, name)
    print("results equal byte for byte")


def blocks_in(run: Path) -> int:
    return len(list((run / "blocks").glob("*.npz")))


def wait_for_blocks(run: Path, process: subprocess.Popen[bytes], count: int) -> None:
    while blocks_in(run) < count:
        assert process.poll() is None, "it ended before anything could be killed"
        time.sleep(0.02)


def certify(folder: Path, out: str, *options: str) -> subprocess.Popen[bytes]:
    files = [f"{folder}/X_{name}.npy,{folder}/y_{name}.npy" for name in ("train", "test")]
    command = [sys.executable, "-m", "flipcert", "certify", *files, "--partitions", "100", "--attacks", "20"]
    return subprocess.Popen(
        [*command, "--quiet", "--out", f"{folder}/{out}", *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
