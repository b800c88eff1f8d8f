"""What this version of the package is known by, to the last character.

Compiled code, kept blocks and workers of another version are not mixed with ours.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_IMPORTED = re.compile(rb"^\s*(?:from|import)\s+(?:flipcert\b|(?=\.))([\w.]*)", re.MULTILINE)


@cache
def digest_of_sources() -> str:
    """A digest of all source files of the package and their places in it."""
    return _digest(_PACKAGE.rglob("*.py"))


@cache
def digest_of_imports(folder: Path) -> str:
    """A digest of the source files of a folder, and of all files of the package that these import, however far away."""
    waiting, found = set(folder.glob("*.py")), set[Path]()
    while waiting:
        file = waiting.pop()
        found.add(file)
        for name in _IMPORTED.findall(file.read_bytes()):
            # What is taken from a folder may be any file in it; a name that does not say from where, anything.
            place = _PACKAGE.joinpath(*name.decode().split("."))
            module = place.with_suffix(".py")
            waiting.update({module} if module.exists() else (place if place.exists() else _PACKAGE).rglob("*.py"))
        waiting -= found
    return _digest(found)


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.blake2b(digest_size=20)
    for file in sorted(files):
        content = file.read_bytes()
        place = file.relative_to(_PACKAGE).as_posix() if file.is_relative_to(_PACKAGE) else file.name
        digest.update(f"{place}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
