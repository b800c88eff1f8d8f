"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from flipcert.engine.files import whole_file


def test_the_file_appears_at_the_end(tmp_path):
    path = tmp_path / "file"
    with whole_file(path) as file:
        file.write(b"first ")
        file.flush()
        assert not path.exists()
        file.write(b"second")
    assert path.read_bytes() == b"first second"
    assert os.listdir(tmp_path) == ["file"]


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail():
        with whole_file(path) as file:
            file.write(b"half of it")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]


def test_others_may_read_it_as_any_new_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o027)
    try:
        with whole_file("relative") as file:
            file.write(b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "relative").stat().st_mode) == 0o640


def test_a_folder_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "missing" / "file"):
        pass


def test_a_full_disk_is_named(tmp_path):
    """The system does not say which file it had no space for."""
    path = tmp_path / "file"
    with pytest.raises(OSError, match="No space left on device") as caught, whole_file(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == []
