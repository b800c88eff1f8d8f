"""Compiled functions are parts, analysed once; machine code is made where Python calls, and how much is counted."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core import event

from flipcert.engine import jit
from flipcert.engine.jit import compiled

# With other releases, numba compiles every function by itself.
quickly = pytest.mark.skipif(not numba.__version__.startswith(jit._KNOWN), reason="insides of numba are not known")


def _twice(x):
    return 2 * x


def _chain(x, size):
    total = 0
    for i in range(size):
        total += twice(x) + twice(3) + twice(i)
    return total


def _own_sum(numbers):
    total = 0.0
    for i in range(numbers.size):
        total += twice(numbers[i])
    return total


twice, chain, own_sum = compiled(_twice), compiled(_chain), compiled(_own_sum)

# What the way of a job takes: all functions that are reached from the doors that it opens, for any types.
COUNT = """
import sys
import numpy as np
import flipcert
from numba.core.dispatcher import Dispatcher

X = np.random.default_rng(0).standard_normal((60, 4))
y = np.arange(60) % 3
model = {"svm": flipcert.KernelSVM(), "ensemble": flipcert.PartitionEnsemble(flipcert.KernelRidge(), n_partitions=4)}
model[sys.argv[1]].fit(X, y).certify(X[:5])

ours = {name: module for name, module in sys.modules.items() if name.startswith("flipcert.")}
found = {id(d): d for module in ours.values() for d in vars(module).values() if isinstance(d, Dispatcher)}
doors = [d for d in found.values() if d.overloads]
reached, waiting = {}, list(doors)
while waiting:
    one = waiting.pop()
    if id(one) not in reached:
        reached[id(one)] = one
        names = [one.py_func.__globals__.get(name) for name in one.py_func.__code__.co_names]
        waiting += [other for other in names if isinstance(other, Dispatcher)]
print(sum(len(d.overloads) for d in doors), len(reached))
"""

# A part of what is compiled for "both" returns an array and a tuple, for which a wrapper needs types of Python.
BOTH = """
import sys
import numpy as np
from flipcert.engine.jit import compiled

@compiled
def part(size):
    numbers = np.empty(size)
    for i in range(size):
        numbers[i] = i
    return numbers, size

@compiled
def both(size):
    numbers, n = part(size)
    return numbers[size - 1] + n
"""


class _Heard(event.Listener):
    def __init__(self):
        self.names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


@quickly
def test_a_part_is_compiled_once_for_all_callers_and_constants(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    names = globals()
    for name, function in (("twice", _twice), ("chain", _chain), ("own_sum", _own_sum)):
        monkeypatch.setitem(names, name, compiled(function))
    with event.install_listener("numba:compile", _Heard()) as heard:
        assert names["chain"](5, 4) == 4 * (10 + 6) + 2 * (0 + 1 + 2 + 3)
        assert heard.names.count("_twice") == 1, "constants are no other types"
        assert names["own_sum"](np.array([1.0, 2.5])) == 7.0
        assert heard.names.count("_twice") == 2, "doubles are"
        # A door to what is a part already: it has its own event, and nothing is analysed again.
        before = len(heard.names)
        assert names["twice"](7) == 14
        assert heard.names[before:] == ["_twice"]
    assert len(list(tmp_path.rglob("*.nbc"))) == 3, "doors alone are cached: chain, own_sum, twice"


@pytest.mark.parametrize("orders", [["bp", "bp"], ["p", "b", "bp", "pb"], ["pb", "bp"], ["b", "p", "bp"]])
def test_what_is_a_part_and_called_from_python_finds_its_results_in_every_process(tmp_path, orders):
    """Programs that hold a part are cached apart from what a wrapper for it needs, whichever is loaded first."""
    (tmp_path / "own.py").write_text(BOTH)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    script = "import own, sys; print([{'b': own.both, 'p': own.part}[name](3) for name in sys.argv[1]])"
    expected = {"b": "5.0", "p": "(array([0., 1., 2.]), 3)"}
    for order in orders:
        command = [sys.executable, "-c", script, order]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == f"[{', '.join(expected[name] for name in order)}]"


@quickly
@pytest.mark.parametrize(("job", "most_doors", "most_functions"), [("svm", 4, 32), ("ensemble", 4, 85)])
def test_how_many_functions_a_first_answer_needs(job, most_doors, most_functions):
    """More than that, and the first minute of a user is longer: see what was added, and whether it has to be there."""
    done = subprocess.run([sys.executable, "-c", COUNT, job], env=dict(os.environ), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    doors, functions = map(int, done.stdout.split())
    assert 1 <= doors <= most_doors
    assert 10 < functions <= most_functions


def test_releases_of_numba_that_nobody_knows_compile_as_they_do(monkeypatch):
    monkeypatch.setattr(numba, "__version__", "0.999.0")
    monkeypatch.setitem(sys.modules, "flipcert.engine.parts", None)
    own = compiled(_own_sum)
    monkeypatch.setitem(globals(), "twice", compiled(_twice))
    assert own(np.array([1.0, 2.5])) == 7.0
