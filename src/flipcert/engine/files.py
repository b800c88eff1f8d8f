"""Files that appear whole or not at all, and what only looks like a file."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

# Marks what is being written; a process that is killed leaves it behind, and nothing else.
UNFINISHED = ".unfinished"
# What is no file, though it can be opened; reading it might wait for ever, and cannot be done twice.
_ODD = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of ``path`` when the block ends without an error.

    Parameters
    ----------
    path : str or path-like
        Where the file is to appear; an existing one is replaced.

    Yields
    ------
    binary file
    """
    path = os.path.abspath(os.fspath(path))
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".", suffix=UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = path  # writing to a full disk does not say where
        raise


def refuse_odd_files(path: str | os.PathLike[str]) -> None:
    """Raise ValueError if there is no file at ``path`` but something that would wait for somebody to write to it.

    FileNotFoundError if there is nothing; a folder is left to whoever opens it.
    """
    kind = stat.S_IFMT(os.stat(path).st_mode)
    if kind in _ODD:
        raise ValueError(f"{os.fspath(path)} is {_ODD[kind]}, not a file; write what it would give into a file first.")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
