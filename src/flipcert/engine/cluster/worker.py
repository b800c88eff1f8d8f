"""What happens in another process: a packed function is unpacked once, and called on one item after the other."""

from __future__ import annotations

import socket
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sklearn import config_context, get_config

from flipcert.engine.cluster.packing import Packed, SelectedRows, pack, unpack
from flipcert.engine.sources import digest_of_sources

# Functions that are kept where nobody tells for how long.
_FEW = 2

_here = threading.local()
_lock = threading.Lock()
_jobs: OrderedDict[str, _Job] = OrderedDict()


@dataclass(frozen=True)
class Parcel:
    """A function on its way, what it is known by, and how many calls at a time a process has room for."""

    content: Packed
    name: str
    at_once: int

    @classmethod
    def of(cls, function: Callable[[Any], Any], at_once: int, by_content: bool) -> Parcel:
        """Pack a function together with all that decides its results beside its arguments.

        Jobs that share functions know them by their content; for others, reading all of it would be a waste of time.
        """
        content = pack((function, get_config()["working_memory"], digest_of_sources()))
        return cls(content, content.digest() if by_content else uuid4().hex, at_once)


@dataclass(frozen=True)
class _Job:
    function: Callable[[Any], Any]
    working_memory: float
    places: threading.Semaphore


def on_worker() -> bool:
    """Whether this is a call on behalf of another process, which keeps the other cores busy by itself."""
    return getattr(_here, "busy", False) or _in_a_task_of_dask()


def _in_a_task_of_dask() -> bool:
    """A user's own task: to wait for other tasks in it, on the only thread of a worker, would be to wait for ever."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.get_worker()
    except (AttributeError, ValueError):
        return False
    return True


def run(content: Packed, name: str, at_once: int, item: Packed, held: bool) -> Packed:
    """Call a packed function on a packed item. ``held``: it is needed as long as its content is there."""
    # Loaded here, because blocks need this file.
    from flipcert.engine.blocks import one_blas_thread

    job = _job(content, name, at_once, held)
    with job.places, _busy(), one_blas_thread, config_context(working_memory=job.working_memory):
        argument = unpack(item)
        return pack(job.function(argument), known_to_both(argument))


def known_to_both(item: Any) -> list[SelectedRows]:
    """Rows of an item, which need not come back with its result."""
    return [part for part in item if isinstance(part, SelectedRows)] if isinstance(item, tuple) else []


def _job(content: Packed, name: str, at_once: int, held: bool) -> _Job:
    with _lock:
        if name in _jobs:
            _jobs.move_to_end(name)
            return _jobs[name]
        function, working_memory, sources = unpack(content)
        if sources != digest_of_sources():
            raise ValueError(
                f"the worker on {socket.gethostname()} runs another version of flipcert than the client; install the "
                "same one on all workers."
            )
        job = _jobs[name] = _Job(function, working_memory, threading.Semaphore(at_once))
        if held:
            weakref.finalize(content, _jobs.pop, name, None)
        else:
            while len(_jobs) > _FEW:
                _jobs.popitem(last=False)
        return job


@contextmanager
def _busy() -> Iterator[None]:
    before = getattr(_here, "busy", False)
    _here.busy = True
    try:
        yield
    finally:
        _here.busy = before
