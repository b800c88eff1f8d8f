"""Rows whose labels are changed source by source."""

from __future__ import annotations

from flipcert.flips.whole_rows import Rows


class SourceRows(Rows):
    """Stub."""
