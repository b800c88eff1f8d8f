"""Run the whole suite again and again, in random order, every other time beside a load on all cores."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager


@contextmanager
def load(processes):
    """Keep so many cores busy with something else."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()


def main(runs):
    failed = 0
    for run in range(1, runs + 1):
        beside = os.cpu_count() if run % 2 == 0 else 0
        start = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadgroup", f"--shuffle={run}"]
        with load(beside):
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = result.stdout.strip().splitlines()
        if result.returncode:
            failed += 1
            print(result.stdout)
        told = f"beside a load on {beside} cores" if beside else "alone"
        print(f"run {run}, seed {run}, {told}: {lines[-1]} ({time.monotonic() - start:.0f} s)", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
