"""Each test here is marked by the name of its folder: ``-m kills`` chooses among what is collected."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(item.path.relative_to(HERE).parts[0])
