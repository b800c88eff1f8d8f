"""Where and with what a row was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def describe() -> dict[str, str]:
    """CPU, cores, versions and the commit: what makes two rows comparable."""
    import flipcert

    libraries = [f"{name} {version(name)}" for name in _LIBRARIES]
    return {
        "cpu": _cpu(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "versions": ", ".join([f"flipcert {flipcert.__version__}", f"Python {platform.python_version()}", *libraries]),
        "commit": _commit(),
    }


def _cpu() -> str:
    """Model name where the system tells, else the architecture."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    """The commit that was measured; marked if the package differs from it."""
    try:
        return _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain", "--", "src") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    root = Path(__file__).parent.parent
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
