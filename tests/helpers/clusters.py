"""A Dask cluster on this machine, for the tests: real processes that talk over TCP."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import distributed

from flipcert.cli.cluster import own_cluster

LOOPBACK = "127.0.0.1"


@contextmanager
def two_workers() -> Iterator[distributed.Client]:
    """Two worker processes of one thread; the system chooses all ports."""
    # Workers that are killed on purpose are no news.
    for name in ("distributed", "distributed.nanny", "distributed.scheduler", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with own_cluster(2) as client:
        yield client


def kill_a_worker(client: distributed.Client, number: int = 0) -> str:
    """Kill one of the workers, which has no chance to tidy up, and say which; its nanny starts another one."""
    processes = client.run(os.getpid)
    address = sorted(processes)[number % len(processes)]
    os.kill(processes[address], signal.SIGKILL)
    return address
