"""Row blocks of a job: a fixed grid, one BLAS thread a block, blocks in parallel.

Here, blocks run on threads. Inside ``joblib.parallel_config(backend="dask")``, or another engine, the same blocks go
there (``engines.py``).

A matrix product is not bit-stable under another shape or number of threads. So every job that forms weights cuts its
rows on the same grid, fills the last block up to full size, and never lets BLAS split a block: a result then does not
depend on the number of cores, and no row goes through another kind of product because it is alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np
import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the thread pools are counted)
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn import get_config
from threadpoolctl import ThreadpoolController

from flipcert.engine.cluster.engines import cluster_cores, current_engine, run_on
from flipcert.engine.cluster.worker import on_worker
from flipcert.engine.question import Asked, Question
from flipcert.engine.sparse import dense, dense_bytes
from flipcert.engine.threads import on_threads, shared_memory_backend
from flipcert.engine.watch import Watcher

# Larger blocks make the product no faster; smaller ones make it slower, but keep all cores busy where rows are few.
LARGEST_BLOCK, SMALLEST_BLOCK = 512, 32
_FEW_BLOCKS = 4
# Part of the memory budget that one block may take.
_PART = 4

Answer = TypeVar("Answer")


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


def block_height(X: NDArray[Any], bytes_per_row: int) -> int:
    """Rows of a block of X, each of which takes so much memory, and what it takes to be dense if it is not."""
    return block_rows(X.shape[0], bytes_per_row + dense_bytes(X))


def map_blocks(
    function: Callable[[NDArray[Any], int], Answer],
    X: NDArray[Any],
    bytes_per_row: int,
    n_jobs: int | None,
    watcher: Watcher | None = None,
    consume: Callable[[int, Answer], None] | None = None,
    height: int | None = None,
) -> list[Answer]:
    """Call ``function(block, n_rows)`` for every block of rows of X, in order; a row takes so much memory meanwhile.

    Blocks of sparse rows are dense. The last one is filled up with copies of its first row; only its first ``n_rows``
    rows are meant. What a watcher recalls is not computed again, and what is computed is given to it to keep. Results
    too large to be collected are given to ``consume(start, result)`` instead, as they come. Blocks of a larger job have
    its ``height``.
    """
    rows = height or block_height(X, bytes_per_row)
    at_once = max(1, memory_budget() // (rows * (bytes_per_row + dense_bytes(X))))
    of_block = partial(_on_filled, function, rows)

    def compute(blocks: list[NDArray[Any]], done: Callable[[int, Answer], None]) -> list[Answer]:
        return map_tasks(of_block, blocks, n_jobs, at_once, done, collect=consume is None)

    return _unless_recalled(of_block, compute, X, rows, watcher or Watcher(), consume)


def _on_filled(function: Callable[[NDArray[Any], int], Answer], rows: int, block: NDArray[Any]) -> Answer:
    return function(filled(block, rows), block.shape[0])


def watched_blocks(
    function: Callable[[NDArray[Any]], Answer],
    X: NDArray[Any],
    rows: int | None,
    watcher: Watcher,
    spreads: bool = False,
) -> list[Answer]:
    """Call ``function`` on so many rows of X at a time (None: on all), with a watcher.

    One block after the other, since a function that has few rows at a time spreads its own work over the cores; but an
    engine is given all of them, unless there are too few for a cluster and the function ``spreads`` over that too.
    """

    def compute(blocks: list[NDArray[Any]], done: Callable[[int, Answer], None]) -> list[Answer]:
        if current_engine() is not None and not (spreads and len(blocks) < cluster_cores()):
            return map_tasks(function, blocks, None, done=done)
        return _collected(((place, function(block)) for place, block in enumerate(blocks)), len(blocks), done)

    return _unless_recalled(function, compute, X, rows or X.shape[0], watcher)


def _unless_recalled(
    function: Callable[[NDArray[Any]], Answer],
    compute: Callable[[list[NDArray[Any]], Callable[[int, Answer], None]], list[Answer]],
    X: NDArray[Any],
    rows: int,
    watcher: Watcher,
    consume: Callable[[int, Answer], None] | None = None,
) -> list[Answer]:
    """The function of all blocks, in order; ``compute(blocks, done)`` is asked for what the watcher does not recall."""
    n_rows = X.shape[0]
    sizes = {start: min(rows, n_rows - start) for start in range(0, n_rows, rows)}
    asked = Asked(function, memory_budget())
    questions = {start: Question(asked, X[start : start + rows]) for start in sizes}
    # What is sent away comes back block by block.
    away = current_engine() is not None
    watcher.begin(len(sizes) if away else n_rows, "blocks" if away else "points")
    results: dict[int, Answer] = {}
    for start, size in sizes.items():
        if (known := watcher.recall(questions[start])) is not None:
            results[start] = known
            watcher.advance(1 if away else size)
    missing = [start for start in sizes if start not in results]

    def done(place: int, result: Answer) -> None:
        start = missing[place]
        if consume is not None:
            consume(start, result)
        watcher.keep(questions[start], result)
        watcher.advance(1 if away else sizes[start])

    computed = compute([X[start : start + rows] for start in missing], done)
    results.update(zip(missing, computed, strict=True))
    return [results[start] for start in sizes]


def map_rows(function: Callable[[slice], Answer], n_rows: int, bytes_per_row: int, n_jobs: int | None) -> list[Answer]:
    """Call ``function`` on ranges of rows, in order, on threads: as ``map_blocks``, where bits do not matter."""
    rows = block_rows(n_rows, bytes_per_row)
    at_once = max(1, memory_budget() // (rows * bytes_per_row))
    ranges = [slice(start, min(start + rows, n_rows)) for start in range(0, n_rows, rows)]
    return map_threads(function, ranges, n_jobs, at_once)


class OneThread:
    """Counts who needs a library to keep to one thread; the last one to leave restores what was there before."""

    def __init__(self, limit: Callable[[], AbstractContextManager[Any]]) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._make_limit = limit
        self._limit: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limit = self._make_limit()
                self._limit.__enter__()
            self._users += 1

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.__exit__(*error)

    @property
    def used(self) -> bool:
        """Whether somebody needs it now."""
        return self._users > 0


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


# With one BLAS thread, sums have one order whatever the machine.
one_blas_thread = OneThread(lambda: _thread_pools().limit(limits=1, user_api="blas"))


def in_job() -> bool:
    """Whether a job is under way, whose blocks keep all cores busy."""
    return one_blas_thread.used


def map_tasks(
    function: Callable[[Any], Answer],
    items: Iterable[Any],
    n_jobs: int | None,
    at_once: int | None = None,
    done: Callable[[int, Answer], None] | None = None,
    collect: bool = True,
) -> list[Answer]:
    """Call ``function`` on every item, on threads or wherever joblib is told to, with BLAS kept to one thread each.

    The function may be anywhere, so it returns what it has found and changes nothing. ``done(place, result)`` is called
    here, as results come in and in whatever order they do; unless they are collected, it is the only one to see them.
    """
    tasks = list(items)
    engine = current_engine() if len(tasks) > 1 and n_jobs != 1 else None
    if engine is None:
        return map_threads(function, tasks, n_jobs, at_once, done, collect)
    finished = run_on(engine, function, tasks, _workers(n_jobs), at_once or len(tasks))
    return _collected(finished, len(tasks), done, collect)


def map_threads(
    function: Callable[[Any], Answer],
    items: Iterable[Any],
    n_jobs: int | None,
    at_once: int | None = None,
    done: Callable[[int, Answer], None] | None = None,
    collect: bool = True,
) -> list[Answer]:
    """Call ``function`` on every item, on threads of this process in any case: it may write to memory they share."""
    tasks = list(items)
    workers = min(_threads(n_jobs), at_once or len(tasks))
    with one_blas_thread:
        return _collected(_in_any_order(function, tasks, workers), len(tasks), done, collect)


def _collected(
    results: Generator[tuple[int, Answer], None, None],
    count: int,
    done: Callable[[int, Answer], None] | None,
    collect: bool = True,
) -> list[Answer]:
    """Results by place, each shown to ``done`` when it comes; whatever stops that, the job has ended afterwards."""
    collected: list[Any] = [None] * count
    with closing(results):
        for place, result in results:
            if collect:
                collected[place] = result
            if done is not None:
                done(place, result)
    return collected


def _in_any_order(
    function: Callable[[Any], Answer], tasks: list[Any], workers: int
) -> Generator[tuple[int, Answer], None, None]:
    if len(tasks) < 2 or workers == 1:
        return ((place, function(task)) for place, task in enumerate(tasks))
    return on_threads(function, tasks, workers)


def join(parts: list[Any]) -> Any:
    """Put the columns of block results (dataclasses of arrays, or of None) back together."""
    columns = {name: [getattr(part, name) for part in parts] for name in vars(parts[0])}
    return type(parts[0])(**{name: None if own[0] is None else np.concatenate(own) for name, own in columns.items()})


def _workers(n_jobs: int | None) -> int:
    """All cores unless the user, or an enclosing ``joblib.parallel_config``, says otherwise."""
    return _cores() if n_jobs is None and effective_n_jobs(None) == 1 else int(effective_n_jobs(n_jobs))


def _threads(n_jobs: int | None) -> int:
    """Threads for work that stays in this process, whatever an engine has."""
    if on_worker():
        return 1
    if current_engine() is not None:
        return n_jobs if n_jobs is not None and n_jobs > 0 else _cores()
    return int(shared_memory_backend().effective_n_jobs(_workers(n_jobs)))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def filled(block: NDArray[Any], rows: int) -> NDArray[Any]:
    """The block with copies of its first row after the last, as many rows in all; dense, if it was not."""
    block, missing = dense(block), rows - block.shape[0]
    return block if missing == 0 else np.concatenate([block, np.repeat(block[:1], missing, axis=0)])
