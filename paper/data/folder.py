"""The folder in which data sets are looked for, and the files in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def data_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """The given folder, else what ``FLIPCERT_DATA`` names, else ``flipcert`` in the user's folder for caches."""
    named = given or os.environ.get("FLIPCERT_DATA")
    if named:
        return Path(named)
    if sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "flipcert"


def find(folder: Path, files: Sequence[str], subfolders: Sequence[str]) -> dict[str, Path]:
    """Those of some files that are there: in the folder or in one of its sub-folders, compressed or not."""
    places = (folder, *(folder / subfolder for subfolder in subfolders))
    found = {}
    for file in files:
        paths = (place / f"{file}{ending}" for place in places for ending in ("", ".gz"))
        path = next((path for path in paths if path.is_file()), None)
        if path is not None:
            found[file] = path
    return found


def how_to_complete(name: str, missing: Sequence[str], folder: Path) -> str:
    """What to do about missing files: a sentence that may go on."""
    listed = missing[0] if len(missing) == 1 else f"{', '.join(missing[:-1])} and {missing[-1]}"
    return f"{name} is not complete; put {listed} (or the same with .gz) into {folder}"
