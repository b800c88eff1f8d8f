"""Packages that not everyone installs: imported when first used, with an error that says how to get them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flipcert.engine.blocks import OneThread


def load_torch(who: str) -> Any:
    """Import torch for those who need it, such as "BoundedNetwork needs"."""
    try:
        import torch
    except ImportError:
        raise ImportError(f'{who} torch. Install with: pip install "flipcert[torch]".') from None
    return torch


@contextmanager
def _torch_limit() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# Many small operations gain nothing from threads that wait for each other, and bits must not depend on their number.
one_torch_thread = OneThread(_torch_limit)
