"""How much memory there is to take, so that a job too large is refused before it starts."""

from __future__ import annotations

import math
import os
from pathlib import Path

# Where Linux tells: of the machine, of the control groups that this process is in, and of their limits.
MEMINFO = Path("/proc/meminfo")
OWN_GROUPS = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")

# Version 2 of control groups, then version 1: folder, limit, use, and the part of the use that is file cache.
_FILES = {
    "": ("", "memory.max", "memory.current", "inactive_file"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def available_memory() -> float:
    """Bytes that this process could still take; infinite where the system does not tell."""
    try:
        free = _field(MEMINFO, "MemAvailable:") * 1024
    except (OSError, LookupError):
        return _physical_memory()
    return min([free, *_group_memory()])


def gigabytes(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 1e9:.3g} GB"


def _group_memory() -> list[int]:
    """What is left in each control group around this process that has a limit."""
    try:
        lines = OWN_GROUPS.read_text().splitlines()
    except OSError:
        return []
    left = []
    for _, controllers, path in (line.split(":", 2) for line in lines):
        for controller in _FILES.keys() & set(controllers.split(",")):
            folder, limit, used, cache = _FILES[controller]
            own = GROUPS / folder / path.strip("/")
            # Inside a container the path may be that of the host; then only the root is there.
            for group in (own, *own.parents):
                try:
                    taken = int((group / used).read_text()) - _field(group / "memory.stat", cache)
                    left.append(int((group / limit).read_text()) - taken)
                except (OSError, LookupError, ValueError):
                    # Not there, or without a limit, which version 2 calls "max".
                    continue
    return left


def _field(file: Path, name: str) -> int:
    """The number after a name in a file of lines ``name number ...``."""
    for line in file.read_text().splitlines():
        if line.startswith(f"{name} "):
            return int(line.split()[1])
    raise LookupError(name)


def _physical_memory() -> float:
    try:
        pages = os.sysconf("SC_PHYS_PAGES")
        return pages * os.sysconf("SC_PAGE_SIZE") if pages > 0 else math.inf
    except (AttributeError, OSError, ValueError):
        return math.inf
