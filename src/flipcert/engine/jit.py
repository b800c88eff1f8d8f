"""The one place that compiles: ``@compiled`` functions release the GIL and are cached between processes.

numba keeps the machine code of a function until *its own file* changes. A function that calls one in another file
would go on with the old version of that, or of a type or number that it took from there: fatal for a certificate. So
the cache of a folder carries a stamp of its sources and of all that they import from the package, and is emptied when
any of it changes. ``NUMBA_DISABLE_JIT=1`` runs everything in Python, for debugging.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import njit

from flipcert.engine.notice import tell_who_waits
from flipcert.engine.sources import digest_of_imports

# Releases of numba whose insides are known to be what ``parts.py`` takes them for, by running all tests.
_KNOWN = ("0.68.",)
_STAMP = "flipcert-sources"
_FULL = (errno.ENOSPC, errno.EDQUOT)
# Folders that had no space left for compiled code, for whoever wants to tell; every process compiles it again.
full_caches: set[str] = set()
tell_who_waits()


def compiled(function: Callable[..., Any], fastmath: Any = False) -> Any:
    """Compile a function on arrays, every operation in the order it is written: rounding bounds depend on that."""
    try:
        dispatcher = _dispatcher(function, cache=True, fastmath=fastmath)
    except RuntimeError:
        # No folder at all that a cache could be written to: every process compiles for itself.
        return _dispatcher(function, cache=False, fastmath=fastmath)
    if hasattr(dispatcher, "stats"):
        _empty_if_stale(dispatcher.stats.cache_path, Path(function.__code__.co_filename).resolve().parent)
        _go_on_without_space(dispatcher._cache)
    return dispatcher


def _dispatcher(function: Callable[..., Any], cache: bool, fastmath: Any) -> Any:
    """What compiles a function when it is called: quickly, or as numba does it where its insides are not known."""
    if not numba.__version__.startswith(_KNOWN):
        return njit(cache=cache, nogil=True, fastmath=fastmath)(function)
    from flipcert.engine.parts import door_to

    return door_to(function, cache=cache, fastmath=fastmath)


def compiled_in_any_order(function: Callable[..., Any]) -> Any:
    """Compile sums and maxima of numbers (not NaN) that may be taken in any order, many at a time."""
    return compiled(function, fastmath={"reassoc", "nsz", "nnan"})


def _go_on_without_space(kept: Any) -> None:
    """Let a full disk cost the cache, not the job: only the next process has to compile again."""
    save = kept.save_overload

    def save_if_possible(*arguments: Any) -> None:
        try:
            save(*arguments)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            full_caches.add(str(kept.cache_path))

    kept.save_overload = save_if_possible


@cache
def _empty_if_stale(folder: str, made_from: Path) -> None:
    """Remove cached machine code that was made from other sources than those that a folder holds and imports."""
    stamp = Path(folder) / _STAMP
    sources = digest_of_imports(made_from)
    try:
        if stamp.read_text() == sources:
            return
    except OSError:
        pass
    try:
        for pattern in ("*.nbi", "*.nbc"):
            for file in Path(folder).glob(pattern):
                file.unlink(missing_ok=True)
        Path(folder).mkdir(parents=True, exist_ok=True)
        fresh = stamp.with_name(f"{_STAMP}.{os.getpid()}")
        fresh.write_text(sources)
        fresh.replace(stamp)
    except PermissionError:
        # A read-only installation: nobody can have written stale code there either.
        pass
    except OSError as error:
        # Without its new stamp, the cache is emptied again by the next process.
        if error.errno not in _FULL:
            raise
