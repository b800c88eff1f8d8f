"""A worker that dies again just when Dask looks whether it has come back is waited for all the same."""

from __future__ import annotations

import os
import signal
import time

from tests.helpers.clusters import two_workers

# Seconds after a loss at which Dask looks by default, and the time that a worker takes to start.
LOOKS_AFTER, STARTS_IN = 15.0, 0.6


def test_it_comes_back():
    with two_workers() as client:
        kill_the_first(client)
        time.sleep(LOOKS_AFTER - STARTS_IN / 4)
        kill_the_first(client)
        time.sleep(5 * STARTS_IN)
        client.wait_for_workers(2, timeout=30)
        time.sleep(5 * STARTS_IN)
        assert len(client.nthreads()) == 2


def kill_the_first(client):
    workers = client.scheduler_info(n_workers=-1)["workers"]
    first = next(address for address, worker in workers.items() if worker["name"] == 0)
    os.kill(client.run(os.getpid)[first], signal.SIGKILL)
