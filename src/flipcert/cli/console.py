"""Where the command line writes: results to standard output, everything else to standard error."""

from __future__ import annotations

from rich.console import Console

results = Console(highlight=False)
notes = Console(stderr=True, highlight=False)
