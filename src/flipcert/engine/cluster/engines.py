"""Where tasks go that need no common memory: to whatever engine ``joblib.parallel_config`` names.

On a Dask cluster tasks are given to its client directly. joblib's own connection to Dask waits for ever if a worker
dies too often, and cannot replace data that were lost with a worker; here they are sent again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import wait
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from typing import Any

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from flipcert.engine.cluster.packing import Packed, pack, unpack
from flipcert.engine.cluster.shared import Unreachable, can_be_shared
from flipcert.engine.cluster.worker import Parcel, known_to_both, on_worker, run
from flipcert.engine.watch import Watcher, current_watcher

# Tasks under way for each core: one that runs, and what it may go on with.
_AHEAD = 3
# Larger items are sent to workers, smaller ones with the task.
_SMALL = 100_000
# A task that is lost so often is what kills the workers.
_PATIENCE = 10
# Seconds between two looks at who is still there.
_PAUSE = 1.0

_held: ContextVar[dict[str, tuple[Any, Packed]] | None] = ContextVar("held", default=None)


def current_engine() -> Any | None:
    """The engine to give tasks to, as joblib knows it; None if they run here, on threads."""
    if on_worker():
        return None
    backend, _ = get_active_backend(prefer="threads")
    return None if getattr(backend, "supports_sharedmem", False) else backend


def cluster_cores() -> int:
    """Cores of the Dask cluster that tasks go to now; 0 if they go elsewhere, or run here."""
    client = _dask_client(current_engine())
    try:
        return 0 if client is None else sum(client.nthreads().values())
    except OSError:
        return 1  # the scheduler has other things to do, or is gone: whoever gives it tasks tells


class SentOnce:
    """A function that several jobs call, one after the other: it stays on the workers as long as this is kept."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._parcel: Parcel | None = None
        self.sent: dict[str, tuple[Any, Packed]] = {}

    def __call__(self, item: Any) -> Any:
        """Call it here."""
        return self._function(item)

    def parcel(self, at_once: int) -> Parcel:
        """The function, packed when it is first sent."""
        if self._parcel is None:
            self._parcel = Parcel.of(self._function, at_once, by_content=False)
        return self._parcel


@contextmanager
def functions_stay() -> Iterator[None]:
    """Leave functions on the workers until the block ends: several jobs in it use the same ones."""
    if _held.get() is not None:
        yield
        return
    before = _held.set({})
    try:
        yield
    finally:
        _held.reset(before)


def run_on(
    engine: Any, function: Callable[[Any], Any], tasks: list[Any], workers: int, at_once: int
) -> Generator[tuple[int, Any], None, None]:
    """Call the function on every task; yield places and results as they come. Close it to stop half-way."""
    if isinstance(function, SentOnce):
        parcel, sent = function.parcel(at_once), function.sent
    else:
        held = _held.get()
        parcel, sent = Parcel.of(function, at_once, by_content=held is not None), {} if held is None else held
    client = _dask_client(engine)
    if client is not None:
        finished = _DaskJob(client, parcel, tasks, current_watcher(), sent).results()
    else:
        finished = _through_joblib(engine, parcel, tasks, workers)
    with closing(finished):
        for place, result in finished:
            yield place, unpack(result, known_to_both(tasks[place]))


def _dask_client(engine: Any) -> Any | None:
    """The client of a Dask engine, whose module is there if there is one."""
    distributed = sys.modules.get("distributed")
    client = getattr(engine, "client", None)
    return client if distributed is not None and isinstance(client, distributed.Client) else None


def _through_joblib(
    engine: Any, parcel: Parcel, tasks: list[Any], workers: int
) -> Generator[tuple[int, Any], None, None]:
    """Ray, Spark, processes: an engine that cannot tell of single results is given some tasks at a time."""
    one_by_one = engine.supports_return_generator
    size = len(tasks) if one_by_one else _AHEAD * workers
    stopped = False

    def calls(places: range) -> Iterator[Any]:
        for place in places:
            if stopped:
                return
            yield delayed(_numbered)(parcel.content, parcel.name, parcel.at_once, place, pack(tasks[place]))

    finished: Iterator[tuple[int, Any]] = iter(())
    try:
        for start in range(0, len(tasks), size):
            parallel = Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered" if one_by_one else "list")
            finished = iter(parallel(calls(range(start, min(start + size, len(tasks))))))
            for each in finished:  # noqa: UP028  (who closes this would close joblib's generator too, with a warning)
                yield each
    finally:
        # joblib has no other quiet end: nothing new begins, and what is under way is waited for.
        stopped = True
        with suppress(Exception):
            for _ in finished:
                pass


def _numbered(content: Any, name: str, at_once: int, place: int, item: Any) -> tuple[int, Any]:
    return place, run(content, name, at_once, item, held=False)


class _DaskJob:
    """Tasks on a Dask cluster; whatever is lost with a worker is sent and computed again."""

    def __init__(
        self, client: Any, parcel: Parcel, tasks: list[Any], watcher: Watcher, sent: dict[str, tuple[Any, Packed]]
    ) -> None:
        self._client = client
        self._parcel = parcel
        self._tasks = tasks
        self._watcher = watcher
        self._waiting = list(range(len(tasks)))[::-1]
        self._under_way: dict[Any, int] = {}
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._workers: dict[str, int] = {}
        self._looked = -_PAUSE
        self._can_share = can_be_shared()
        self._sent = sent

    def results(self) -> Generator[tuple[int, Any], None, None]:
        """Places and results as they come; whatever ends this, nothing of the job is left to do for the cluster."""
        try:
            yield from self._results()
        finally:
            if self._under_way and self._client.status == "running":
                self._client.cancel(list(self._under_way))

    def _results(self) -> Generator[tuple[int, Any], None, None]:
        losses = [0] * len(self._tasks)
        while self._waiting or self._under_way:
            self._look_around()
            self._submit()
            try:
                future = self._ended.get(timeout=_PAUSE)
            except Empty:
                continue
            result = self._result_of(future)
            place = self._under_way.pop(future)
            if result is not None:
                yield place, result
                continue
            self._waiting.append(place)
            losses[place] += 1
            if losses[place] > _PATIENCE:
                raise MemoryError(f"workers died over one block, and again each of {_PATIENCE} times that it was sent")

    def _submit(self) -> None:
        """Keep all cores busy."""
        most = _AHEAD * max(1, sum(self._workers.values()))
        while self._waiting and len(self._under_way) < most:
            place = self._waiting.pop()
            item = pack(self._tasks[place])
            sent = self._send(item) if item.nbytes > _SMALL else item
            parcel = self._parcel
            future = self._client.submit(
                run, self._function(), parcel.name, parcel.at_once, sent, held=True, pure=False
            )
            self._under_way[future] = place
            future.add_done_callback(self._ended.put)

    def _function(self) -> Any:
        """The packed function on the workers, sent again if it was lost with one of them."""
        future, content = self._sent.get(self._parcel.name, (None, self._parcel.content))
        if future is None or future.status != "finished":
            if self._can_share and self._nearby and content.nbytes > _SMALL:
                content = content.sharing()
            future = self._send(content, broadcast=True)
            # Shared memory is there as long as its content is.
            self._sent[self._parcel.name] = (future, content)
        return future

    def _send(self, value: Any, broadcast: bool = False) -> Any:
        """Give data to the workers, some of which may die meanwhile."""
        for attempt in range(_PATIENCE):
            try:
                return self._scattered(value, broadcast)
            except (OSError, KeyError):
                self._check_connection()
                time.sleep(_PAUSE * attempt)
        raise ConnectionError("data could not be sent to the workers of the Dask cluster; see whether it has any left.")

    def _scattered(self, value: Any, broadcast: bool) -> Any:
        """Data on their way to the workers; if one of these goes meanwhile, Dask would wait for it for ever."""
        import asyncio

        present = self._client.nthreads().keys()
        way = self._client.scatter(value, hash=False, broadcast=broadcast, direct=self._nearby, asynchronous=True)
        sending = asyncio.run_coroutine_threadsafe(way, self._client.loop.asyncio_loop)
        try:
            while not wait([sending], _PAUSE).done:
                self._check_connection()
                if gone := present - self._client.nthreads().keys():
                    raise ConnectionError(f"{', '.join(gone)} went while data were sent")
            return sending.result()
        finally:
            sending.cancel()

    def _result_of(self, future: Any) -> Any | None:
        """The result, or None if it was lost with a worker; an error of the task itself is raised."""
        from distributed import CancelledError, KilledWorker

        if future.status == "error":
            error = future.exception()
            if isinstance(error, Unreachable):
                if self._can_share:
                    self._can_share = False
                    self._sent.pop(self._parcel.name, None)
            elif not isinstance(error, KilledWorker):
                raise error
            return None
        try:
            return future.result()
        except (CancelledError, OSError):
            self._check_connection()
            return None

    def _look_around(self) -> None:
        """See who is there, and tell who has gone."""
        if time.monotonic() - self._looked < _PAUSE:
            return
        self._looked = time.monotonic()
        self._check_connection()
        try:
            now = self._client.nthreads()
        except OSError:
            return  # the scheduler has other things to do
        for address in self._workers.keys() - now.keys():
            self._watcher.notice(f"Lost the worker at {address}; what it had is computed again ({len(now)} left).")
        self._workers = now

    @property
    def _nearby(self) -> bool | None:
        """Whether workers can be sent data without a detour; what Dask does by default, if that is not known."""
        return (bool(self._workers) and all("://127.0.0.1:" in address for address in self._workers)) or None

    def _check_connection(self) -> None:
        if self._client.status not in ("running", "connecting"):
            raise ConnectionError("the connection to the Dask scheduler was lost; start it and run again.")
