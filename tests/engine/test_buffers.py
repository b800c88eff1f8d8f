"""Large arrays are lent again and again, within a job and from job to job."""

from __future__ import annotations

import numpy as np

from flipcert.engine import buffers as buffer_module
from flipcert.engine.buffers import Buffers


def test_buffers_are_used_again(monkeypatch):
    monkeypatch.setattr(buffer_module, "_kept", [])
    buffers = Buffers()
    with buffers.borrow((4, 8), np.float64) as first:
        first[:] = 1.0
        with buffers.borrow((2, 2), np.float32) as other:
            assert not np.shares_memory(first, other)
    with buffers.borrow((4, 4), np.float64) as again:
        assert again.shape == (4, 4)
        assert np.shares_memory(first, again) or np.shares_memory(other, again)
    buffers.close()
    # Another job takes what was kept when it needs it, not when it is set up; and so does the same one, later.
    idle = Buffers()
    for later in (buffers, Buffers(), buffers):
        with later.borrow((1, 1), np.float64) as kept:
            assert np.shares_memory(first, kept) or np.shares_memory(other, kept)
        later.close()
    assert not idle._idle
    monkeypatch.setattr(buffer_module, "_kept", [])
    monkeypatch.setattr(buffer_module, "KEPT", 100)
    buffers = Buffers()
    with buffers.borrow((4, 8), np.float64), buffers.borrow((2, 2), np.float64):
        pass
    buffers.close()
    assert [memory.size for memory in buffer_module._kept] == [32]
