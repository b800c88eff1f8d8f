"""Whoever waits for a compiler in front of a prompt is told why, once; nobody else hears of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import builtins, sys
{prompt}
from flipcert.engine import notice
notice._PATIENCE = {patience}
import numpy as np
from flipcert.flips._jit.ladder import highest, runner_up
highest(np.array([1.0, 2.0]))
runner_up(np.array([1.0, 2.0]), 1)
"""


def heard(prompt, patience, tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    script = SCRIPT.format(prompt=prompt, patience=patience)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return done.stderr


@pytest.mark.parametrize("prompt", ["sys.ps1 = '>>> '", "builtins.__IPYTHON__ = True"])
def test_one_line_for_who_waits_at_a_prompt(prompt, tmp_path):
    line = heard(prompt, 0.0, tmp_path)
    assert line.startswith("flipcert is compiling, the first time only; `flipcert warmup`")
    assert line.count("\n") == 1
    assert heard(prompt, 0.0, tmp_path) == "", "from the cache, nobody waits"


def test_nothing_for_a_short_wait_or_a_script(tmp_path):
    assert heard("sys.ps1 = '>>> '", 1000.0, tmp_path) == ""
    assert heard("", 0.0, tmp_path / "other") == ""
