"""Where cells are worked on: data and kernels are there once, and what is finished is kept."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert import __version__
from flipcert.engine.watch import watched_by
from flipcert.experiments.bounds import published_radii
from flipcert.experiments.figure import Cell
from flipcert.experiments.parts import Part
from flipcert.experiments.source import Source
from flipcert.experiments.table import Row, read_table, write_table
from flipcert.experiments.timing import time_parts
from flipcert.kernels.base import Kernel
from flipcert.runs.inputs import ModelInputs
from flipcert.runs.job import Stages
from flipcert.runs.settings import Settings

# Test points that the parts of the work are timed on.
_TIMED = 512


class Workshop:
    """Certifies cells, each once.

    Parameters
    ----------
    folder : path-like
        Where finished parts and kernels are kept.
    load : callable
        Returns the data of a name.
    stages : Stages, optional
        Whoever looks on.
    n_jobs : int, optional
        Threads; all cores by default.
    """

    def __init__(
        self, folder: Path, load: Callable[[str], Source], stages: Stages | None = None, n_jobs: int | None = None
    ) -> None:
        self._cells = folder / "cells"
        self._kernels = folder / "kernels"
        self._cells.mkdir(parents=True, exist_ok=True)
        self.stages = stages or Stages()
        self._n_jobs = n_jobs
        self._load = load
        self.source = cache(self._announced)
        self._digest = cache(lambda name: self.source(name).digest)
        self._inputs: tuple[str, ModelInputs] | None = None
        self._mean_diags: dict[tuple[str, str, str], float] = {}

    def parts(self, cell: Cell) -> dict[str, Part]:
        """All that the cell asks for, computed if it is not there."""
        wanted = ["certificates"]
        # One model has exact costs in the paper as well.
        wanted += ["published"] if cell.published and cell.partitions > 1 else []
        wanted += ["times"] if cell.timed else []
        paths = {name: self._cells / f"{self._key(cell.identity, cell.data)}-{name}.parquet" for name in wanted}
        missing = [name for name, path in paths.items() if not path.exists()]
        if missing:
            with watched_by(self.stages), warnings.catch_warnings():
                # That a published formula over-states is what the figure shows.
                warnings.filterwarnings("ignore", 'method="published"')
                self._compute(cell, {name: paths[name] for name in missing})
        return {name: Part.read(path) for name, path in paths.items()}

    def kept(self, identity: Mapping[str, Any], data: str, compute: Callable[[Source], list[Row]]) -> list[Row]:
        """Rows of something else than certificates, computed from the data if they are not there."""
        path = self._cells / f"{self._key(identity, data)}-rows.parquet"
        if not path.exists():
            write_table(compute(self.source(data)), path)
        return read_table(path)

    def clear(self) -> None:
        """Remove the kernels."""
        self._inputs = None
        shutil.rmtree(self._kernels, ignore_errors=True)

    def _announced(self, name: str) -> Source:
        self.stages.stage(f"reading {name}")
        return self._load(name)

    def _key(self, identity: Mapping[str, Any], data: str) -> str:
        """A name for files that hold what was found, about these very data and by this version."""
        whole = {"identity": identity, "digest": self._digest(data), "version": __version__}
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:24]

    def _compute(self, cell: Cell, paths: dict[str, Path]) -> None:
        """Fit the model of a cell once, for all that is missing."""
        source, settings = self.source(cell.data), self.settings(cell)
        name = describe(cell)
        start = time.perf_counter()
        X_train, X_test, model = self._inputs_of(cell.data).prepare(settings, True, self.stages.stage)
        prepared = time.perf_counter()
        self.stages.stage(f"{name}: fitting")
        model.fit(X_train, source.y_train)
        fitted = time.perf_counter()
        if "certificates" in paths:
            self.stages.stage(f"{name}: certifying")
            certificates = model.certify(X_test)
            certified = time.perf_counter()
            columns: dict[str, NDArray[Any]] = {
                "correct": certificates.correct(source.y_test),
                "radius": certificates.radius,
                "radius_upper": certificates.radius_upper,
            }
            if certificates.blackbox_radius is not None:
                columns["blackbox_radius"] = certificates.blackbox_radius
            facts = {
                "n_train": int(source.y_train.size),
                "n_classes": int(np.unique(source.y_train).size),
                "seconds_prepare": prepared - start,
                "seconds_fit": fitted - prepared,
                "seconds_certify": certified - fitted,
                **self._facts(cell.data, settings),
            }
            Part(columns, facts).write(paths["certificates"])
        if "published" in paths:
            self.stages.stage(f"{name}: the paper's bounds")
            start = time.perf_counter()
            bounds = published_radii(model, X_test)
            Part(vars(bounds), {"seconds_published": time.perf_counter() - start}).write(paths["published"])
        if "times" in paths:
            self.stages.stage(f"{name}: timing")
            times = time_parts(model, X_test[:_TIMED]) | {"timed_fit": (fitted - prepared) / X_test.shape[0]}
            Part({}, times).write(paths["times"])

    def settings(self, cell: Cell) -> Settings:
        """The model of a cell; a convolution takes its shape from the data."""
        options = dict(cell.options)
        if options.get("kernel") == "conv-ntk":
            options["image_shape"] = self.source(cell.data).image_shape
        return Settings(model=cell.model, options=options, partitions=cell.partitions, scale=cell.scale)

    def _inputs_of(self, name: str) -> ModelInputs:
        """Inputs for models on one of the data; those of other data are let go."""
        if self._inputs is None or self._inputs[0] != name:
            source = self.source(name)
            scratch = self._kernels / self._digest(name)[:24]
            scratch.mkdir(parents=True, exist_ok=True)
            inputs = ModelInputs(source.X_train, source.X_test, scratch, self._n_jobs, source.partition_by)
            self._inputs = (name, inputs)
        return self._inputs[1]

    def _facts(self, data: str, settings: Settings) -> dict[str, float]:
        """Sizes of the kernel that hyper-parameters are compared with."""
        alone = replace(settings, partitions=1).estimator(self._n_jobs)
        kernel = getattr(alone, "kernel", None)
        if not isinstance(kernel, Kernel):
            return {}
        source = self.source(data)

        def inputs() -> NDArray[Any]:
            return np.asarray(settings.scaler().fit(source.X_train).transform(source.X_train))

        key = (data, settings.scale, repr(kernel))
        if key not in self._mean_diags:
            self._mean_diags[key] = float(kernel.diag(inputs()).mean(dtype=np.float64))
        facts = {"mean_diag": self._mean_diags[key]}
        # Without finite features this takes the whole training kernel.
        finite = kernel.n_features(source.X_train.shape[1]) is not None
        if settings.model == "svm" and settings.partitions == 1 and finite:
            facts["C_max"] = float(alone.fit(inputs(), source.y_train).C_max_)
        return facts


def describe(cell: Cell) -> str:
    """A cell in a few words."""
    options = " ".join(f"{name} {value}" for name, value in cell.options)
    scale = "" if cell.scale == "none" else f" ({cell.scale})"
    count = "one model" if cell.partitions == 1 else f"{cell.partitions} partitions"
    return f"{cell.data}{scale} {cell.model} {options}, {count}".replace(" ,", ",")
