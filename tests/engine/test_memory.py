"""The memory there is to take: of the machine, of the control groups around the process, and of threads together."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from flipcert.engine import memory
from flipcert.engine.room import Room


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


@pytest.fixture
def linux(tmp_path, monkeypatch):
    """Files as Linux has them: 8000 kB to take, and no control group."""
    for name in ("MEMINFO", "OWN_GROUPS", "GROUPS"):
        monkeypatch.setattr(memory, name, tmp_path / name)
    write(tmp_path, MEMINFO="MemTotal:  9000 kB\nMemAvailable:  8000 kB\nHugePages_Total:  0\n", OWN_GROUPS="0::/\n")
    return tmp_path


def test_memory_of_the_machine(linux):
    assert memory.available_memory() == 8000 * 1024


def test_memory_of_a_control_group(linux):
    write(linux, OWN_GROUPS="0::/user/job\n")
    group = linux / "GROUPS" / "user" / "job"
    write(group, memory__max="max\n", memory__current="1000\n", memory__stat="anon 700\ninactive_file 300\n")
    assert memory.available_memory() == 8000 * 1024
    write(group, memory__max="5000\n")
    assert memory.available_memory() == 5000 - (1000 - 300)
    write(group.parent, memory__max="4000\n", memory__current="1000\n", memory__stat="inactive_file 0\n")
    assert memory.available_memory() == 3000


def test_memory_of_a_control_group_of_version_1(linux):
    write(linux, OWN_GROUPS="5:cpu,cpuacct:/job\n4:memory:/job\n0::/\n")
    files = {"memory__limit_in_bytes": "5000", "memory__usage_in_bytes": "1000"}
    # The group of the host is not to be seen from inside a container: its root is what there is.
    write(linux / "GROUPS" / "memory", **files, memory__stat="total_inactive_file 300\n")
    assert memory.available_memory() == 4300


def test_memory_where_the_system_does_not_tell(linux, monkeypatch):
    (linux / "MEMINFO").unlink()
    assert memory.available_memory() > 1e8
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory.available_memory() == np.inf


def test_memory_here():
    assert 1e7 < memory.available_memory() < 1e15


def test_threads_wait_for_room(monkeypatch):
    monkeypatch.setattr("flipcert.engine.room.memory_budget", lambda: 100)
    room, order = Room(), []

    def work():
        with room.take(60):
            order.append("second")

    thread = threading.Thread(target=work)
    with room.take(60):
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    with room.take(1000):
        pass  # more than the budget, but alone
