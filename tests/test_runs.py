"""Folders of runs: stopped, killed or interrupted runs go on; other, damaged or busy folders are refused."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from command_line import (
    MODEL,
    refused,
    run,
    summary_of,
)
from flipcert.engine import blocks
from flipcert.runs import folder as run_folder


def test_folders_of_other_runs_are_refused_not_overwritten(data):
    summary_of("certify", "train.npz", "test.npz", *MODEL, "--out", "run")
    before = {file.name: file.read_bytes() for file in (data / "run").iterdir()}
    other = (*MODEL[:-1], "5")
    assert "holds another run" in refused("certify", "train.npz", "test.npz", *other, "--out", "run")
    assert "models: 0: partitions was 3, is 5" in refused("certify", "train.npz", "test.npz", *other, "--out", "run")
    assert "inputs: test: sha256 was" in refused("certify", "train.npz", "train.npz", *MODEL, "--out", "run")
    assert {file.name: file.read_bytes() for file in (data / "run").iterdir()} == before
    (data / "mine").mkdir()
    (data / "mine" / "thesis.txt").write_text("words")
    assert "holds other files and no run" in refused("certify", "train.npz", "test.npz", "--out", "mine")
    assert "is a file" in refused("certify", "train.npz", "test.npz", "--out", "train.npz")
    assert "has not finished" in refused("report", "mine")
    assert "is not the folder of a run" in refused("report", "nowhere")


@pytest.mark.parametrize("moment", ["keep", "write_json"], ids=["half-way", "at once"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_folder_that_cannot_be_written_is_told_in_a_sentence(data, monkeypatch, moment, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(run_folder.RunFolder, moment, refuse)
    said = refused("certify", "train.npz", "test.npz", *MODEL, "--out", "run")
    assert said == f"Error: --out run cannot be written: {os.strerror(number).lower()}."


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "SMALLEST_BLOCK", 8)


def test_a_run_that_was_stopped_ends_with_the_same_bytes(data, monkeypatch, small_blocks):
    command = ("certify", "train.npz", "test.npz", *MODEL, "--image-shape", "2,2", "--quiet")
    assert run(*command, "--out", "whole").exit_code == 0
    keep, kept = run_folder.RunFolder.keep, []

    def keep_some(folder, name, outcome):
        if len(kept) % 3 == 2:
            kept.append("stopped")
            raise KeyboardInterrupt
        kept.append(name)
        keep(folder, name, outcome)

    monkeypatch.setattr(run_folder.RunFolder, "keep", keep_some)
    codes = []
    while not codes or codes[-1] != 0:
        codes.append(run(*command, "--out", "parts").exit_code)
    assert len(codes) >= 3
    assert len(kept) == len(set(kept)) + kept.count("stopped") - 1  # no block twice
    for name in ("certificates.parquet", "attacks.parquet", "images.npz", "report.html", "run.json"):
        assert (data / "parts" / name).read_bytes() == (data / "whole" / name).read_bytes(), name
    assert sorted(file.name for file in (data / "parts").iterdir()) == sorted(
        ["certificates.parquet", "attacks.parquet", "images.npz", "report.html", "run.json", "summary.json"]
    )


@pytest.fixture
def long_command(data):
    """A run of many blocks, one after the other."""
    rng = np.random.default_rng(0)
    np.savez("large.npz", X=rng.normal(size=(3000, 20)).astype("f4"), y=rng.integers(0, 3, 3000))
    np.savez("many.npz", X=rng.normal(size=(20_000, 20)).astype("f4"))
    return [sys.executable, "-m", "flipcert", "certify", "large.npz", "many.npz", "--attacks", "5",
            "--partitions", "20", "--jobs", "1", "--out"]  # fmt: skip


def stopped_half_way(command, folder, number):
    """Send a signal to a run that has finished some blocks; what it said, and how it ended."""
    with subprocess.Popen([*command, folder], stderr=subprocess.PIPE, text=True) as process:
        while len(list(folder.glob("blocks/*.npz"))) < 3:
            assert process.poll() is None, "it ended before it could be stopped"
            time.sleep(0.01)
        process.send_signal(number)
        return process.communicate()[1], process.returncode


def test_a_run_that_is_killed_goes_on(data, long_command):
    """A real kill: the process has no chance to tidy up."""
    _, code = stopped_half_way(long_command, data / "killed", signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not (data / "killed" / "summary.json").exists()
    assert "has not finished" in refused("report", "killed")
    for folder in ("killed", "whole"):
        subprocess.run([*long_command, folder, "--quiet"], check=True, capture_output=True)
    for name in ("certificates.parquet", "attacks.parquet", "report.html"):
        assert (data / "killed" / name).read_bytes() == (data / "whole" / name).read_bytes()
    assert not list((data / "killed").glob(".*"))


def test_a_run_that_is_interrupted_says_how_to_go_on(data, long_command):
    """Ctrl-C: no block is waited for, and nothing but words is left to do."""
    said, code = stopped_half_way(long_command, data / "stopped", signal.SIGINT)
    assert code == 130
    assert f"Interrupted. What is finished is in {data / 'stopped'}; give the same command again to go on." in said
    assert "Traceback" not in said
    assert len(list((data / "stopped").glob("blocks/*.npz"))) < 40
    assert "has not finished" in refused("report", "stopped")


def test_damaged_runs_are_refused(data):
    summary_of("certify", "train.npz", "test.npz", "--out", "run")
    whole = (data / "run" / "certificates.parquet").read_bytes()
    (data / "run" / "certificates.parquet").write_bytes(whole[:-20])
    assert "does not hold a complete run" in refused("report", "run")
    (data / "run" / "run.json").write_text("{")
    assert "is damaged" in refused("certify", "train.npz", "test.npz", "--out", "run")


def test_two_processes_do_not_share_a_folder(data):
    identity = {"a": 1}
    second = run_folder.RunFolder(data / "run", identity).opened()
    with run_folder.RunFolder(data / "run", identity).opened(), pytest.raises(ValueError, match="in use by another"):
        second.__enter__()
