"""After ``flipcert warmup`` a first answer compiles nothing."""

from __future__ import annotations

import subprocess
import sys
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from flipcert.cli import app, warmup

ASK = """
import numpy as np
from numba.core import event
import flipcert

heard = []
class Listener(event.Listener):
    def on_start(self, event): heard.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event): pass

X = np.random.default_rng(1).standard_normal((90, 7)).astype("{precision}")
y = np.array(list("abc"))[np.arange(90) % 3]
with event.install_listener("numba:compile", Listener()):
    for model in (flipcert.KernelSVM(), flipcert.PartitionEnsemble(flipcert.KernelRidge("rbf"), 6)):
        model.fit(X, y).certify(X[:9])
        model.worst_flips(X[:2])
print(heard)
"""


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_first_answer_compiles_nothing(precision):
    """The very jobs of the command, one after the other."""
    for name in ("label-linear models", "ensembles"):
        warmup._compile(name, precision)
    done = subprocess.run(
        [sys.executable, "-c", ASK.format(precision=precision)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", warmup._JOBS)
def test_every_job_runs(name):
    warmup._compile(name, "float64")


def test_the_command_says_what_there_was_to_do(monkeypatch):
    class Pool:
        def __init__(self, cores, mp_context):
            assert cores >= 1

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def submit(self, function, name, precision):
            asked.append((name, precision))
            return done

    asked, done = [], Mock()
    monkeypatch.setattr(warmup, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(warmup, "as_completed", lambda jobs: jobs)
    for count, words in ((0, "everything was compiled before"), (1, f"compiled {2 * len(warmup._JOBS)} functions")):
        done.result.return_value = count
        told = CliRunner().invoke(app, ["warmup"])
        assert told.exit_code == 0, told.output
        assert words in " ".join(told.output.split())
    assert len({*asked}) == 2 * len(warmup._JOBS)
