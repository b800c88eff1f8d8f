"""Cells are certified once: what is finished is kept as rows of tables, which a run that was stopped goes on from."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flipcert
from flipcert.kernels import Kernel
from paper.figures.bounds import published_radii
from paper.figures.figure import Cell
from paper.figures.models import ModelInputs, model_of
from paper.figures.source import Source
from paper.figures.table import Row, certified, parts_of, published, read_table, write_table
from paper.figures.timing import time_parts

# Test points that the parts of the work are timed on.
_TIMED = 512


class Cells:
    """Certifies cells and keeps what is finished.

    Parameters
    ----------
    folder : Path
        Where finished rows and kernels are kept.
    load : callable
        Returns the data of a name.
    say : callable, optional
        Is told what is begun.
    n_jobs : int, optional
        Threads; all cores by default.
    known : sequence of Row, optional
        Rows of tables that are there already: those of the same settings, data and version are not computed again.
    """

    def __init__(
        self,
        folder: Path,
        load: Callable[[str], Source],
        say: Callable[[str], None] = lambda line: None,
        n_jobs: int | None = None,
        known: Sequence[Row] = (),
    ) -> None:
        self._rows = folder / "cells"
        self._kernels = folder / "kernels"
        self._rows.mkdir(parents=True, exist_ok=True)
        self.say = say
        self.n_jobs = n_jobs
        self._load = load
        self.source = cache(self._announced)
        self._data_digest = cache(lambda name: self.source(name).digest)
        self._inputs: tuple[str, ModelInputs] | None = None
        self._mean_diags: dict[tuple[str, str, str], float] = {}
        self._known: dict[str, Row] = {}
        for row in known:
            # One figure may ask for more parts of a cell than another.
            told = {name: value for name, value in row.items() if value is not None}
            self._known.setdefault(told.get("digest", ""), {}).update(told)

    def row(self, cell: Cell) -> Row:
        """All that is told about one certified test set, computed as far as it is not there."""
        fitted = _Fitted(cell, self)
        parts: dict[str, Callable[[], Row]] = {"certificates": fitted.certificates_row}
        # One model has exact costs in the paper as well.
        if cell.published and cell.partitions > 1:
            parts["published"] = fitted.published_row
        if cell.timed:
            parts["times"] = fitted.times_row
        own = {"features": self.source(cell.data).described, "digest": self.digest(cell.identity, cell.data)}
        found: Row = {**cell.identity, **own}
        known = self._known.get(own["digest"], {})
        taken = parts_of({name: value for name, value in known.items() if name not in found})
        for name, compute in parts.items():
            (row,) = self.kept({**cell.identity, "part": name}, cell.data, partial(_known_or, taken[name], compute))
            found |= row
        return found

    def kept(self, identity: Mapping[str, Any], data: str, compute: Callable[[], list[Row]]) -> list[Row]:
        """Rows about these very data, by this version; computed if they are not there."""
        path = self._rows / f"{self.digest(identity, data)}.parquet"
        if not path.exists():
            write_table(compute(), path)
        return read_table(path)

    def digest(self, identity: Mapping[str, Any], data: str) -> str:
        """A digest of settings, of these very data, and of this version."""
        whole = {"identity": identity, "digest": self._data_digest(data), "version": flipcert.__version__}
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:24]

    def clear(self) -> None:
        """Remove the kernels."""
        self._inputs = None
        shutil.rmtree(self._kernels, ignore_errors=True)

    def inputs(self, name: str) -> ModelInputs:
        """Inputs of models on one of the data; those of other data are let go."""
        if self._inputs is None or self._inputs[0] != name:
            folder = self._kernels / self._data_digest(name)[:24]
            folder.mkdir(parents=True, exist_ok=True)
            self._inputs = (name, ModelInputs(self.source(name), folder, self.n_jobs))
        return self._inputs[1]

    def sizes(self, cell: Cell) -> dict[str, float]:
        """Sizes of the kernel that hyper-parameters are compared with."""
        source = self.source(cell.data)
        alone = model_of(replace(cell, partitions=1), source.image_shape, self.n_jobs)
        kernel = getattr(alone, "kernel", None)
        if not isinstance(kernel, Kernel):
            return {}
        X = self.inputs(cell.data).scaled(cell.scale)[0]
        key = (cell.data, cell.scale, repr(kernel))
        if key not in self._mean_diags:
            self._mean_diags[key] = float(kernel.diag(X).mean(dtype=np.float64))
        found = {"mean_diag": self._mean_diags[key]}
        # Without finite features this takes the whole training kernel.
        if cell.model == "svm" and cell.partitions == 1 and kernel.n_features(X.shape[1]) is not None:
            found["C_max"] = float(alone.fit(X, source.y_train).C_max_)
        return found

    def _announced(self, name: str) -> Source:
        self.say(f"reading {name}")
        return self._load(name)


def _known_or(known: Row, compute: Callable[[], Row]) -> list[Row]:
    return [known or compute()]


class _Fitted:
    """The model of a cell, fitted when something of it is missing."""

    def __init__(self, cell: Cell, cells: Cells) -> None:
        self._cell = cell
        self._cells = cells
        self._name = describe(cell)

    def certificates_row(self) -> Row:
        """What is certified."""
        X_test, model = self._fit
        self._cells.say(f"{self._name}: certifying")
        start = time.perf_counter()
        certificates = _quietly(model.certify, X_test)
        seconds = {**self._seconds, "seconds_certify": time.perf_counter() - start}
        return certified(certificates, self._source, self._cells.sizes(self._cell), self._cell["reg"]) | seconds

    def published_row(self) -> Row:
        """What the paper's own bounds certify."""
        X_test, model = self._fit
        self._cells.say(f"{self._name}: the paper's bounds")
        start = time.perf_counter()
        bounds = published_radii(model, X_test)
        seconds = time.perf_counter() - start
        return published(bounds, model.predict(X_test) == self._source.y_test) | {"seconds_published": seconds}

    def times_row(self) -> Row:
        """How long the parts of the work take."""
        X_test, model = self._fit
        self._cells.say(f"{self._name}: timing")
        return time_parts(model, X_test[:_TIMED]) | {"timed_fit": self._seconds["seconds_fit"] / X_test.shape[0]}

    @cached_property
    def _source(self) -> Source:
        source = self._cells.source(self._cell.data)
        return source if self._cell.points is None else source.first(source.y_train.size, self._cell.points)

    @cached_property
    def _fit(self) -> tuple[NDArray[Any], Any]:
        start = time.perf_counter()
        X_train, X_test, model = self._cells.inputs(self._cell.data).prepare(self._cell, self._cells.say)
        prepared = time.perf_counter()
        self._cells.say(f"{self._name}: fitting")
        _quietly(model.fit, X_train, self._source.y_train)
        self._seconds = {"seconds_prepare": prepared - start, "seconds_fit": time.perf_counter() - prepared}
        return X_test[: self._cell.points], model


def _quietly(call: Callable[..., Any], *arguments: Any) -> Any:
    """That a published formula over-states is what the figure shows, not a reason to warn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", 'method="published"')
        return call(*arguments)


def describe(cell: Cell) -> str:
    """A cell in a few words."""
    options = " ".join(f"{name} {value}" for name, value in cell.options)
    scale = "" if cell.scale == "none" else f" ({cell.scale})"
    count = "one model" if cell.partitions == 1 else f"{cell.partitions} partitions"
    seed = "" if cell.seed is None else f" at random ({cell.seed})"
    return f"{cell.data}{scale} {cell.model} {options}, {count}{seed}".replace(" ,", ",")
