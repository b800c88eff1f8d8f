"""No more is read than there is room for: what a file unpacks to is measured before it is unpacked."""

from __future__ import annotations

from pathlib import Path

from flipcert.engine.files import refuse_odd_files
from flipcert.engine.memory import available_memory, gigabytes

# What to do about a file of another format.
INSTEAD = "save it as X.npy and y.npy, or as shards X-000.npy, y-000.npy, ..., in a folder: they are memory-mapped"

# Characters of what somebody else says about a file, which may quote all of it.
_LONGEST = 200


class Unreadable(Exception):
    """A file is not what its ending says; perhaps one of several, which is named then."""

    def __init__(self, reason: object, path: Path | str | None = None) -> None:
        lines = str(reason).strip().splitlines()
        said = lines[0].rstrip(".") if lines else type(reason).__name__
        super().__init__(said if len(said) <= _LONGEST else f"{said[:_LONGEST]}...")
        self.path = path


def check_room(what: str, needed: float, instead: str = INSTEAD) -> None:
    """Refuse what takes more bytes of memory than there are."""
    available = available_memory()
    if needed > available:
        raise ValueError(
            f"{what} needs at least {gigabytes(needed)} of memory once it is unpacked, but {gigabytes(available)} are "
            f"available; {instead}."
        )


def refuse_what_is_no_file(path: Path, what: str = "features") -> None:
    """Refuse what does not exist, and what would wait for somebody to write to it."""
    try:
        refuse_odd_files(path)
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist; give the path of a file with {what}.") from None
