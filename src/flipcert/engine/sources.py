"""What this version of the package is known by, to the last character.

Compiled code, kept blocks and workers of another version are not mixed with ours.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def digest_of_sources() -> str:
    """A digest of all source files of the package and their places in it."""
    package = Path(__file__).resolve().parent.parent
    found = hashlib.blake2b(digest_size=20)
    for file in sorted(package.rglob("*.py")):
        content = file.read_bytes()
        found.update(f"{file.relative_to(package).as_posix()}\0{len(content)}\0".encode() + content)
    return found.hexdigest()
