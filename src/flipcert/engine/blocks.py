"""Row blocks of a job: a fixed grid, one BLAS thread a block, blocks in parallel.

A matrix product is not bit-stable under another shape or number of threads. So every job that forms weights cuts its
rows on the same grid, fills the last block up to full size, and never lets BLAS split a block: a result then does not
depend on the number of cores, and a row alone goes through the same product shape as a row among others.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the thread pools are counted)
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

LARGEST_BLOCK = 256
# Part of the memory budget (1 GiB) that the weights of one block may take.
BLOCK_BYTES = 2**28

Result = TypeVar("Result")


def block_rows(bytes_per_row: int) -> int:
    """Rows of a block: a power of two that depends on the job only, never on the machine.

    >>> block_rows(8 * 1_000), block_rows(8 * 1_000_000)
    (256, 32)
    """
    rows = LARGEST_BLOCK
    while rows > 1 and rows * bytes_per_row > BLOCK_BYTES:
        rows //= 2
    return rows


def map_blocks(
    function: Callable[[NDArray[Any], int], Result], X: NDArray[Any], rows: int, n_jobs: int | None
) -> list[Result]:
    """Call ``function(block, n_rows)`` for every block of ``rows`` rows of X, in order.

    The last block is filled up with copies of its first row; only its first ``n_rows`` rows are meant.
    """
    starts = range(0, X.shape[0], rows)
    return map_tasks(
        lambda start: function(_filled(X[start : start + rows], rows), _length(X, start, rows)), starts, n_jobs
    )


class _OneThread:
    """Counts who needs BLAS to keep to one thread; the last one to leave restores what was there before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.__exit__(*error)


# With one BLAS thread, sums have one order whatever the machine.
one_blas_thread = _OneThread()


def map_tasks(function: Callable[[Any], Result], items: Iterable[Any], n_jobs: int | None) -> list[Result]:
    """Call ``function`` on every item, on threads that share the memory, with BLAS kept to one thread each."""
    tasks = list(items)
    with one_blas_thread:
        if len(tasks) < 2 or _workers(n_jobs) == 1:
            return [function(task) for task in tasks]
        results = Parallel(n_jobs=_workers(n_jobs), prefer="threads")(delayed(function)(task) for task in tasks)
    return list(results)


def join(parts: list[Any]) -> Any:
    """Put the columns of block results (dataclasses of arrays) back together."""
    names = vars(parts[0])
    return type(parts[0])(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def _workers(n_jobs: int | None) -> int:
    """All cores unless the user, or an enclosing ``joblib.parallel_config``, says otherwise."""
    if n_jobs is None and effective_n_jobs(None) == 1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(effective_n_jobs(n_jobs))


def _filled(block: NDArray[Any], rows: int) -> NDArray[Any]:
    missing = rows - block.shape[0]
    return block if missing == 0 else np.concatenate([block, np.repeat(block[:1], missing, axis=0)])


def _length(X: NDArray[Any], start: int, rows: int) -> int:
    return min(rows, X.shape[0] - start)
