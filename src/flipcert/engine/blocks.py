"""Row blocks of a job: a fixed grid, one BLAS thread a block, blocks in parallel.

A matrix product is not bit-stable under another shape or number of threads. So every job that forms weights cuts its
rows on the same grid, fills the last block up to full size, and never lets BLAS split a block: a result then does not
depend on the number of cores, and no row goes through another kind of product because it is alone.
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
from sklearn import get_config
from threadpoolctl import ThreadpoolController

# Larger blocks make the product no faster; smaller ones make it slower, but keep all cores busy where rows are few.
LARGEST_BLOCK, SMALLEST_BLOCK = 512, 32
_FEW_BLOCKS = 4
# Part of the memory budget that one block may take.
_PART = 4

Result = TypeVar("Result")


def memory_budget() -> int:
    """Bytes that the blocks of a job may take in all: ``working_memory`` of scikit-learn, 1 GiB by default.

    >>> memory_budget() == 2**30
    True
    """
    return int(get_config()["working_memory"] * 2**20)


def block_rows(n_rows: int, bytes_per_row: int) -> int:
    """Rows of a block: a power of two that depends on the job only, never on the number of cores.

    >>> block_rows(10_000, 8 * 1_000), block_rows(10_000, 8 * 1_000_000), block_rows(200, 8 * 1_000)
    (512, 32, 64)
    """
    rows = LARGEST_BLOCK
    while rows > SMALLEST_BLOCK and -(-n_rows // rows) < _FEW_BLOCKS:
        rows //= 2
    while rows > 1 and rows * bytes_per_row > memory_budget() // _PART:
        rows //= 2
    return rows


def map_blocks(
    function: Callable[[NDArray[Any], int], Result], X: NDArray[Any], bytes_per_row: int, n_jobs: int | None
) -> list[Result]:
    """Call ``function(block, n_rows)`` for every block of rows of X, in order; a row takes so much memory meanwhile.

    The last block is filled up with copies of its first row; only its first ``n_rows`` rows are meant.
    """
    rows = block_rows(X.shape[0], bytes_per_row)
    at_once = max(1, memory_budget() // (rows * bytes_per_row))
    return map_tasks(
        lambda start: function(_filled(X[start : start + rows], rows), min(rows, X.shape[0] - start)),
        range(0, X.shape[0], rows),
        n_jobs,
        at_once,
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

    @property
    def used(self) -> bool:
        return self._users > 0


# With one BLAS thread, sums have one order whatever the machine.
one_blas_thread = _OneThread()


def in_job() -> bool:
    """Whether a job is under way, whose blocks keep all cores busy."""
    return one_blas_thread.used


def map_tasks(
    function: Callable[[Any], Result], items: Iterable[Any], n_jobs: int | None, at_once: int | None = None
) -> list[Result]:
    """Call ``function`` on every item, on threads that share the memory, with BLAS kept to one thread each."""
    tasks = list(items)
    workers = min(_workers(n_jobs), at_once or len(tasks))
    with one_blas_thread:
        if len(tasks) < 2 or workers == 1:
            return [function(task) for task in tasks]
        results = Parallel(n_jobs=workers, prefer="threads")(delayed(function)(task) for task in tasks)
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
