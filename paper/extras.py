"""Packages that not every figure needs: imported when first used, with an error that says how to get them."""

from __future__ import annotations

from typing import Any


def load_torch(who: str) -> Any:
    """Import torch for those who need it, such as "The features need"."""
    try:
        import torch
    except ImportError:
        raise ImportError(f'{who} torch. Install with: pip install "flipcert[torch]".') from None
    return torch
