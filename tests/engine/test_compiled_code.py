"""Compiled code: cached between processes, but never a version older than its source."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from numba.core.caching import IndexDataCacheFile

import flipcert
from flipcert.cli.progress import Display
from flipcert.engine import jit, parts, sources
from flipcert.engine.cluster.packing import unpack
from flipcert.engine.cluster.worker import Parcel

PACKAGE = Path(flipcert.__file__).parent
SCRIPT = """
import numpy as np
from flipcert.flips._jit.ladder import beats, leader
print(leader(np.array([1.0, 1.0]), 0.0), sum(leader.stats.cache_hits.values()))
"""
# A compiled function that adds up a tuple, whose type is defined in a file that holds no compiled code.
CALLER = """
from flipcert.engine.jit import compiled
from flipcert.engine.pair import LIMIT, Pair

@compiled
def total(pair):
    return pair.first + 10 * pair.second + LIMIT
"""
PAIR = """
from typing import NamedTuple

LIMIT = 100

class Pair(NamedTuple):
    first: int
    second: int
"""


def run(folder, script=SCRIPT):
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True, cwd=folder
    )
    return done.stdout.split()


def test_a_changed_callee_in_another_file_is_seen(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "flipcert", ignore=shutil.ignore_patterns("__pycache__"))
    assert run(tmp_path) == ["0", "0"]
    assert run(tmp_path) == ["0", "1"]  # the second process finds the machine code
    # Touch another compiled file only: everything beside it is compiled again.
    other = tmp_path / "flipcert" / "flips" / "_jit" / "rival.py"
    other.write_text(other.read_text() + "\n# changed\n")
    assert run(tmp_path) == ["0", "0"]
    # What no compiled code comes from costs nothing.
    face = tmp_path / "flipcert" / "flips" / "attack.py"
    face.write_text(face.read_text() + "\n# changed\n")
    assert run(tmp_path) == ["0", "1"]


def test_stamps_follow_imports_through_files_and_folders(tmp_path, monkeypatch):
    package = tmp_path / "flipcert"
    (package / "far" / "deep").mkdir(parents=True)
    (package / "near").mkdir()
    for name in ("lost.py", "far/__init__.py", "far/deep/end.py", "far/alone.py"):
        (package / name).write_text("VALUE = 1\n")
    (package / "near" / "code.py").write_text("from flipcert.far.alone import VALUE\n")
    monkeypatch.setattr(sources, "_PACKAGE", package)

    def moves(changed, imports):
        (package / "far" / "alone.py").write_text(imports)
        before = sources.digest_of_imports.__wrapped__(package / "near")
        with open(package / changed, "a") as file:
            file.write("# changed\n")
        return sources.digest_of_imports.__wrapped__(package / "near") != before

    assert not moves("lost.py", "VALUE = 2\n")
    assert moves("far/deep/end.py", "    from flipcert.far.deep.end import VALUE\n")
    assert moves("far/deep/end.py", "from flipcert.far import (\n    deep,\n)\n")
    assert not moves("lost.py", "from flipcert.far import deep\n")
    # What does not say from where may come from anywhere.
    for words in ("import flipcert\n", "from flipcert import lost\n", "from .. import lost\n", "from . import lost\n"):
        assert moves("lost.py", words)


def test_a_changed_type_or_number_in_another_file_is_seen(tmp_path):
    """Whatever the file is called: numba looks at the file of the function only."""
    shutil.copytree(PACKAGE, tmp_path / "flipcert", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "flipcert" / "engine" / "_caller.py").write_text(CALLER)
    pair = tmp_path / "flipcert" / "engine" / "pair.py"
    pair.write_text(PAIR)
    script = "from flipcert.engine._caller import total, Pair; print(total(Pair(first=1, second=2)))"
    assert run(tmp_path, script) == ["121"]
    pair.write_text(PAIR.replace("LIMIT = 100", "LIMIT = 200"))
    assert run(tmp_path, script) == ["221"]
    pair.write_text(PAIR.replace("first: int\n    second: int", "second: int\n    first: int"))
    assert run(tmp_path, script) == ["121"]


def test_workers_compare_all_sources():
    content = unpack(Parcel.of(len, 1, by_content=False).content)
    assert sources.digest_of_sources() in content


def test_python_without_compiling():
    """Everything runs without numba's compiler, slowly: for debugging and coverage."""
    script = (
        "import flipcert; print(flipcert.flip_costs([[3.0, 2.0, 2.0, -1.0]], [0, 1, 1, 2], 3, bound='exact').tolist(), "
        "flipcert.ensemble_radius([[0, 0, 1]], [[[0, 3], [0, 4], [2, 0]]]))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    compiled = flipcert.flip_costs([[3.0, 2.0, 2.0, -1.0]], [0, 1, 1, 2], 3, bound="exact").tolist()
    assert done.stdout.strip() == f"{compiled} {flipcert.ensemble_radius([[0, 0, 1]], [[[0, 3], [0, 4], [2, 0]]])}"


def test_only_sums_and_maxima_are_taken_in_any_order():
    """Rounding bounds depend on the order of operations; only these functions may leave it to the compiler."""
    reordered = set()
    for file in PACKAGE.rglob("*.py"):
        if file not in {Path(jit.__file__), Path(parts.__file__)}:
            assert "njit" not in file.read_text(), "compile through flipcert.engine.jit"
            assert "fastmath" not in file.read_text()
            reordered |= set(re.findall(r"@compiled_in_any_order\ndef (\w+)", file.read_text()))
    # The last one looks for attacks, which are replayed: nothing is proven by it.
    assert reordered == {"sum_of_magnitudes", "_note_tops", "_magnitudes", "_scaled", "_dot", "trials"}


def test_without_a_folder_to_cache_in(monkeypatch):
    def refuse(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(parts, "njit", refuse)
    assert jit.compiled(abs)(-3) == 3


def _double(x):
    return 2 * x


def test_a_full_disk_costs_the_cache_and_not_the_job(tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(IndexDataCacheFile, "_save_data", full)
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    double = jit.compiled(_double)
    with Display(quiet=True):
        assert double(3) == 6
        assert double(1.5) == 3.0
    said = capsys.readouterr().err
    assert said.startswith(str(tmp_path))
    assert said.endswith("make room there, or let NUMBA_CACHE_DIR name another folder.\n")
    # Its stamp cannot be written either.
    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "other"))
    assert jit.compiled(_double)(4) == 8
    jit.full_caches.clear()
