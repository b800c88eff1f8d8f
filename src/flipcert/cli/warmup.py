"""All that is compiled, compiled once: small jobs of every kind, in one process a core."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any

import numpy as np
from numba.core import event
from numpy.typing import NDArray

from flipcert.cli.console import notes, results
from flipcert.report.words import plural

Data = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def warmup_command() -> None:
    """Compile, and say how much there was to do."""
    begin, cores = time.perf_counter(), os.cpu_count() or 1
    jobs = [(name, precision) for name in _JOBS for precision in ("float32", "float64") if _can_run(name)]
    notes.print(f"Compiling on {plural(cores, 'core')}; a minute or so if nothing was compiled before ...")
    # Threads would wait for each other: numba compiles one function at a time.
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        count = sum(done.result() for done in as_completed([pool.submit(_compile, *job) for job in jobs]))
    seconds = time.perf_counter() - begin
    what = f"compiled {plural(count, 'function')}" if count else "everything was compiled before"
    results.print(
        f"Ready: {what}, in {seconds:.0f} s. Commands and notebooks that use this installation start without it."
    )


def _can_run(name: str) -> bool:
    return name != "networks" or find_spec("torch") is not None


def _compile(name: str, precision: str) -> int:
    """Run one job; returns how many functions Python calls were made machine code of, none if all were cached."""
    heard = _Count()
    with event.install_listener("numba:compile", heard):
        _JOBS[name](_data(precision))
    return heard.count


class _Count(event.Listener):  # type: ignore[misc]
    """Counts functions that are compiled; those that another one calls are a part of it."""

    def __init__(self) -> None:
        self.count = self._depth = 0

    def on_start(self, event: event.Event) -> None:
        self._depth += 1
        self.count += self._depth == 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1


def _data(precision: str) -> Data:
    """Three classes in five features of both signs, and some test points."""
    X = np.random.default_rng(0).standard_normal((72, 5)).astype(precision)
    return X[:60], np.arange(60) % 3, X[60:]


def _ask(model: Any, X: NDArray[Any]) -> None:
    """All that one model is asked as a rule."""
    model.predict(X)
    model.certify(X)
    model.worst_flips(X[:3])
    for bound in ("lower", "upper"):
        model.flip_costs(X[:3], bound=bound)


def _linear(data: Data) -> None:
    X, y, X_test = data
    for model in _models():
        _ask(model.fit(X, y), X_test)
        # Weights that are not negative have algorithms of their own.
        _ask(model.fit(np.abs(X), y, trusted=np.arange(y.size) % 7 == 0), np.abs(X_test))


def _models() -> Iterator[Any]:
    import flipcert

    yield flipcert.KernelSVM()
    yield flipcert.KernelRidge(flipcert.kernels.NTK(activation="relu"))
    yield flipcert.KernelRidge("rbf", classes=[0, 1, 2, 3])
    yield flipcert.WeightedNeighbors(5, weights="distance")
    yield flipcert.LabelSpreading(5)


def _ensembles(data: Data) -> None:
    import flipcert

    X, y, X_test = data
    for base in (flipcert.KernelSVM(), flipcert.KernelRidge("rbf")):
        for inputs, asked in ((X, X_test), (np.abs(X), np.abs(X_test))):
            ensemble = flipcert.PartitionEnsemble(base, 5).fit(inputs, y)
            ensemble.certify(asked)
            ensemble.worst_flips(asked[:3])
    flipcert.PartitionEnsemble(base, 5, vote="runoff", copies=2).fit(X, y).certify(X_test)


def _threats(data: Data) -> None:
    import flipcert

    X, y, X_test = data
    model = flipcert.KernelSVM("rbf").fit(X, y, source=np.arange(y.size) % 9)
    for threat in ("sources", "deletions", "insertions", "replacements", "edits"):
        model.certify(X_test, threat=threat)
        model.worst_flips(X_test[:3], threat=threat)
    flipcert.PartitionEnsemble(flipcert.KernelSVM(), 5).fit(X, y, source=np.arange(60) % 9).certify(
        X_test, threat="sources"
    )


def _collective(data: Data) -> None:
    import flipcert

    X, y, X_test = data
    flipcert.KernelRidge("rbf").fit(X, y).certify_collectively(X_test, [1, 2], time_limit=2.0)
    flipcert.PartitionEnsemble(flipcert.KernelRidge("rbf"), 5).fit(X, y).certify_collectively(X_test, 2, time_limit=2.0)


def _audits(data: Data) -> None:
    import flipcert

    X, y, X_test = data
    model = flipcert.KernelRidge("rbf").fit(X, y)
    flipcert.plan_audit(model, X_test, 5, flips=2)
    flipcert.suspicious_labels(model, X, y)


def _others(data: Data) -> None:
    import flipcert

    X, y, X_test = data
    for model in (flipcert.LogisticRegression(C=0.1), flipcert.SmoothedLinear()):
        model.fit(X, y).certify(X_test)


def _networks(data: Data) -> None:
    import flipcert

    X, y, X_test = data
    flipcert.BoundedNetwork(epochs=1, max_flips=2).fit(X, y).certify(X_test)


# The longest ones first, so that no core is left with one of them at the end.
_JOBS: dict[str, Callable[[Data], None]] = {
    "ensembles": _ensembles,
    "label-linear models": _linear,
    "collective certificates": _collective,
    "other threats": _threats,
    "other models": _others,
    "audits": _audits,
    "networks": _networks,
}
