"""Files that appear whole or not at all, so that what is there is finished."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of ``path`` when the block ends without an error."""
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        with open(unfinished, "wb") as file:
            yield file
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
