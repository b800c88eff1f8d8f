"""Folders of runs: stopped, killed or interrupted runs go on; other, damaged or busy folders are refused."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import flipcert
from flipcert.datasets.files import Columns, read_table
from flipcert.engine import blocks
from flipcert.runs import folder as run_folder
from flipcert.runs.job import Job, Stages, _Keeper, run_job
from flipcert.runs.settings import Settings
from flipcert.runs.store import read_results
from tests.helpers.command_line import (
    MODEL,
    refused,
    run,
    summary_of,
)


def test_a_run_of_a_version_with_fewer_options_is_called_that():
    assert run_folder._difference({"data": {"a": None}}, {"data": {"a": None, "b": None}}).startswith("made by another")
    assert run_folder._difference({"data": {}, "seed": 1}, {"data": {"b": None}, "seed": 2}) == "seed was 1, is 2"


def test_folders_of_other_runs_are_refused_not_overwritten(data):
    summary_of("certify", "train.npz", "test.npz", *MODEL, "--out", "run")
    before = {file.name: file.read_bytes() for file in (data / "run").iterdir()}
    other = (*MODEL[:-1], "5")
    assert "holds another run" in refused("certify", "train.npz", "test.npz", *other, "--out", "run")
    assert "(models: partitions was 3, is 5)" in refused("certify", "train.npz", "test.npz", *other, "--out", "run")
    assert "inputs: test: sha256 was" in refused("certify", "train.npz", "train.npz", *MODEL, "--out", "run")
    assert {file.name: file.read_bytes() for file in (data / "run").iterdir()} == before
    (data / "mine").mkdir()
    (data / "mine" / "thesis.txt").write_text("words")
    assert "holds other files and no run" in refused("certify", "train.npz", "test.npz", "--out", "mine")
    assert "is a file" in refused("certify", "train.npz", "test.npz", "--out", "train.npz")
    assert "has not finished" in refused("report", "mine")
    assert "is not the folder of a run" in refused("report", "nowhere")
    Path("empty").mkdir()
    assert "empty has no summary.json: it is no run, or one that has not finished" in refused("report", "empty")


def test_a_run_without_attacks_is_read_again(data):
    summary_of("certify", "train.npz", "test.npz", *MODEL, "--attacks", "0", "--out", "run")
    assert run("report", "run", "--out", "page.html").exit_code == 0
    (result,) = read_results(data / "run")
    assert result.attacks == ()


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


def stop_after(monkeypatch, number):
    """Let a run end with an error when it has kept so many blocks; what to call to let it go on."""
    keep, kept = run_folder.RunFolder.keep, []

    def keep_some(folder, name, outcome):
        if len(kept) == number:
            raise KeyboardInterrupt
        kept.append(name)
        keep(folder, name, outcome)

    monkeypatch.setattr(run_folder.RunFolder, "keep", keep_some)
    return lambda: monkeypatch.setattr(run_folder.RunFolder, "keep", keep)


def damages(content, other):
    yield b""
    yield b"not an archive"
    yield content[: len(content) // 2]
    yield content[:-1]
    yield bytes([*content[:200], content[200] ^ 4, *content[201:]])
    yield other


def test_a_block_waits_until_naming_its_question_is_worth_it(monkeypatch):
    asked = []

    class Question:
        @property
        def name(self):
            asked.append(self)
            return "name"

    class Folder:
        def __init__(self, holds_blocks):
            self.holds_blocks, self.kept = holds_blocks, []

        def keep(self, name, block):
            self.kept.append(block)

        def recall(self, name):
            return "recalled"

    keeper = _Keeper(Stages(), Folder(holds_blocks=False), patience=3600.0)
    assert keeper.recall(Question()) is None
    keeper.keep(Question(), 1)
    keeper.keep(Question(), 2)
    assert asked == [] == keeper._folder.kept
    monkeypatch.setattr(keeper, "_keeps_from", 0.0)
    keeper.keep(Question(), 3)
    keeper.keep(Question(), 4)
    assert keeper._folder.kept == [1, 2, 3, 4]
    assert _Keeper(Stages(), Folder(holds_blocks=True), patience=3600.0).recall(Question()) == "recalled"


def test_damaged_blocks_are_computed_again(data, monkeypatch, small_blocks):
    command = ("certify", "train.npz", "test.npz", *MODEL, "--quiet")
    assert run(*command, "--out", "whole").exit_code == 0
    for damage in range(6):
        go_on = stop_after(monkeypatch, 3)
        assert run(*command, "--out", f"run-{damage}").exit_code == 130
        go_on()
        first, second, _ = sorted((data / f"run-{damage}" / "blocks").glob("*.npz"))
        content = list(damages(first.read_bytes(), second.read_bytes()))[damage]
        first.write_bytes(content)
        assert run(*command, "--out", f"run-{damage}").exit_code == 0
        for name in ("certificates.parquet", "attacks.parquet", "report.html"):
            assert (data / f"run-{damage}" / name).read_bytes() == (data / "whole" / name).read_bytes(), damage


def test_another_model_is_not_given_the_blocks_of_the_first(data, tmp_path):
    """A folder has one run; but nobody has to rely on that."""
    folder = run_folder.RunFolder(tmp_path / "run", {"a": 1})
    train, test = (read_table(name, Columns(), labelled=True) for name in ("train.npz", "test.npz"))
    told = []
    with folder.opened():
        for reg in (0.5, 50.0, 0.5):
            job = Job(train, test, [Settings("ridge", {"reg": reg, "kernel": "rbf"})], n_attacks=0)
            told.append(run_job(job, folder)[0].certificates)
    alone = flipcert.KernelRidge(flipcert.kernels.RBF(), reg=50.0).fit(train.X, train.y).certify(test.X)
    assert np.array_equal(told[1].radius, alone.radius)
    assert not np.array_equal(told[0].radius, told[1].radius)
    assert np.array_equal(told[0].radius, told[2].radius)


def test_damaged_runs_are_refused(data):
    command = ("certify", "train.npz", "test.npz", "--out", "run")
    summary_of(*command)
    for name in ("certificates.parquet", "attacks.parquet", "summary.json"):
        path = data / "run" / name
        whole = path.read_bytes()
        for content in (whole[:-20], b"", bytes([*whole[:100], whole[100] ^ 1, *whole[101:]])):
            path.write_bytes(content)
            for refusal in (refused("report", "run"), refused(*command)):
                assert f"run does not hold a complete run: {name} is missing, or not what was written" in refusal
        path.write_bytes(whole)
    (data / "run" / "attacks.parquet").unlink()
    assert "attacks.parquet is missing, or not what was written" in refused(*command)
    for content in ("{", "[]", "null", "3", '"run"', "[" * 100_000, "\xff"):
        (data / "run" / "run.json").write_bytes(content.encode("latin-1"))
        assert "is damaged" in refused(*command)


def test_a_finished_run_whose_table_was_changed_is_refused(data):
    """Another radius, in a table that is as good as any."""
    command = ("certify", "train.npz", "test.npz", "--out", "run")
    summary_of(*command)
    path = data / "run" / "certificates.parquet"
    frame = pd.read_parquet(path)
    frame.loc[3, ["radius", "radius_upper"]] += 1
    frame.to_parquet(path)
    assert "certificates.parquet is missing, or not what was written" in refused("report", "run")
    assert "certificates.parquet is missing, or not what was written" in refused(*command)


@pytest.mark.parametrize(
    ("name", "other", "differs"),
    [
        ("threat", "deletions", 'threat was "flips", is "deletions"'),
        ("threat", None, 'threat was "flips", is null'),
        ("models", [], "models was [{"),
        ("inputs", {}, "inputs: test was {"),
        ("attacks", 0, "attacks was 100, is 0"),
    ],
)
def test_a_summary_of_another_run_is_refused(data, name, other, differs):
    """Its digest is right, but the run was asked for something else."""
    command = ("certify", "train.npz", "test.npz", "--out", "run")
    summary_of(*command)
    path = data / "run" / "summary.json"
    whole = path.read_text()
    summary = {**json.loads(whole), name: other}
    del summary["sha256"]
    path.write_text(json.dumps({**summary, "sha256": run_folder._digest_of(summary)}))
    said = f"run does not hold a complete run: summary.json is not that of the run in run.json ({differs}"
    assert said in refused("report", "run")
    assert said in refused(*command)
    if name == "threat" and other is not None:
        assert said in refused("verify", "run", "train.npz", "test.npz")
    path.write_text(whole)
    (data / "run" / "run.json").unlink()
    assert "run.json is missing, or not what was written" in refused("report", "run")
    assert "run.json is missing, or not what was written" in refused("verify", "run", "train.npz", "test.npz")


@pytest.mark.parametrize("odd", [None, True, -1, 2**80, "x", [], {}, [[1]], {"a": {}}])
def test_odd_summaries_are_told_in_a_sentence(data, odd):
    command = ("certify", "train.npz", "test.npz", "--out", "run")
    summary_of(*command)
    path = data / "run" / "summary.json"
    summary = json.loads(path.read_text())
    changed = [odd, *({**summary, name: odd} for name in summary if summary[name] != odd)]
    changed += [{other: own for other, own in summary.items() if other != name} for name in summary]
    for content in changed:
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match=r"summary\.json is missing, or not what was written"):
            read_results(data / "run")
    assert "summary.json is missing, or not what was written" in refused("report", "run")
    assert "summary.json is missing, or not what was written" in refused(*command)


def test_two_processes_do_not_share_a_folder(data):
    identity = {"a": 1}
    second = run_folder.RunFolder(data / "run", identity).opened()
    with run_folder.RunFolder(data / "run", identity).opened(), pytest.raises(ValueError, match="in use by another"):
        second.__enter__()


def test_two_processes_that_start_at_once_do_not_share_a_folder(data, monkeypatch):
    """The second comes when the first has seen an empty folder and is about to make it its own."""
    refusals = []
    write = run_folder.RunFolder.write_json

    def meanwhile(folder, name, value):
        monkeypatch.setattr(run_folder.RunFolder, "write_json", write)
        with (
            pytest.raises(ValueError, match="in use by another") as refusal,
            run_folder.RunFolder(data / "run", {"a": 1}).opened(),
        ):
            pass
        refusals.append(refusal)
        write(folder, name, value)

    monkeypatch.setattr(run_folder.RunFolder, "write_json", meanwhile)
    with run_folder.RunFolder(data / "run", {"a": 1}).opened():
        assert len(refusals) == 1


def test_a_file_system_without_locks_serves_as_well(data, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    summary_of("certify", "train.npz", "test.npz", *MODEL, "--out", "run")
    assert (data / "run" / "summary.json").exists()
