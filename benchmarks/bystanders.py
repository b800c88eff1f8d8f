"""How much of the machine other processes use meanwhile: on a busy one, a ratio is not to be trusted.

A product whose threads wait for each other suffers more from neighbours than independent blocks do, so that noise does
not cancel in a ratio, taken in turns or not.
"""

from __future__ import annotations

import os
from pathlib import Path

_STAT = Path("/proc/stat")


class Bystanders:
    """Watches the processors from one call to the next."""

    def __init__(self) -> None:
        self._before = self._now()

    def share(self) -> float:
        """Share of all processor time since the last call that went to other processes; 0 where nobody counts it."""
        before, self._before = self._before, self._now()
        total, busy, own = (now - then for now, then in zip(self._before, before, strict=True))
        return max(0.0, (busy - own) / total) if total > 0 else 0.0

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Processor seconds since the start: all, those in use, those used by this process and its children."""
        if not _STAT.exists():
            return 0.0, 0.0, 0.0
        # user, nice, system, idle, waiting for disks, interrupts (two kinds), taken by other virtual machines
        ticks = [int(number) for number in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
        per_second = os.sysconf("SC_CLK_TCK")
        total = sum(ticks) / per_second
        own = os.times()
        return total, total - (ticks[3] + ticks[4]) / per_second, sum(own[:4])
