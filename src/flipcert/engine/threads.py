"""Tasks on threads of this process, and how such a job ends: by itself, by an error, or because nobody wants the rest.

Whatever ends it, no task begins any more, those that run are waited for, and no thread is left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from queue import SimpleQueue
from typing import Any, TypeVar

from joblib import parallel_config
from joblib.parallel import get_active_backend
from sklearn import get_config, set_config

# Tasks in flight for each thread: one that runs, and what it may go on with while its result is looked at.
_AHEAD = 2

Answer = TypeVar("Answer")


def on_threads(
    function: Callable[[Any], Answer], tasks: list[Any], workers: int
) -> Generator[tuple[int, Answer], None, None]:
    """Call the function on every task, so many at a time; yield places and results as they come.

    Close the generator to stop half-way. A task that fails ends the job with its error, the first of them with its own.
    """
    waiting = iter(enumerate(tasks))
    ended: SimpleQueue[Future[tuple[int, Answer]]] = SimpleQueue()
    pool = ThreadPoolExecutor(workers, "flipcert", initializer=_settings_of_this_thread())

    def call(place: int, task: Any) -> tuple[int, Answer]:
        return place, function(task)

    def submit(number: int) -> int:
        begun = list(islice(waiting, number))
        for place, task in begun:
            pool.submit(call, place, task).add_done_callback(ended.put)
        return len(begun)

    try:
        in_flight = submit(_AHEAD * workers)
        while in_flight:
            yield ended.get().result()
            in_flight += submit(1) - 1
    finally:
        pool.shutdown(cancel_futures=True)


def shared_memory_backend() -> Any:
    """What joblib would run threads with: threads, or none at all if it is told so."""
    return get_active_backend(prefer="threads", require="sharedmem")[0]


def _settings_of_this_thread() -> Callable[[], None]:
    """What makes them hold on another one: those of scikit-learn, and those of joblib for what is nested in a task."""
    config = get_config()
    backend, n_jobs = shared_memory_backend().get_nested_backend()

    def hold() -> None:
        set_config(**config)
        parallel_config(backend=backend, n_jobs=n_jobs)  # from here on, until the thread ends

    return hold
