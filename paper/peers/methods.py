"""The methods that are compared: how each model is made, what it may choose from, and what is proven of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import flipcert

Settings = Mapping[str, Any]
SOUND, UNSOUND = "sound", "not sound"
REGS = (1.0, 30.0, 1000.0)
SCALES = ("centre", "standard")


@dataclass(frozen=True)
class Method:
    """A method of the table.

    Attributes
    ----------
    name, source : str
        What it is called, and where it is from.
    proof : str
        Whether radii are sound.
    make : callable
        The model, from settings and the number of threads.
    grid : mapping
        Values to choose from; ``partitions`` are those of the whole training set.
    votes : bool
        Whether the radius is what votes alone prove, for a model that could prove more.
    rows, points : int or None
        Training rows and test points that it is tried on; None for all.
    """

    name: str
    source: str
    proof: str
    make: Callable[[Settings, int | None], Any]
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    votes: bool = False
    rows: int | None = None
    points: int | None = None

    def candidates(self) -> Iterator[dict[str, Any]]:
        """All combinations of settings."""
        for values in product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))


def _ridge(given: Settings, n_jobs: int | None) -> Any:
    return flipcert.KernelRidge(reg=given["reg"], n_jobs=n_jobs)


def _votes(vote: str = "majority", copies: int = 1) -> Callable[[Settings, int | None], Any]:
    def make(given: Settings, n_jobs: int | None) -> Any:
        return flipcert.PartitionEnsemble(
            _ridge(given, n_jobs), n_partitions=given["partitions"], vote=vote, copies=copies, n_jobs=n_jobs
        )

    return make


def _svm(given: Settings, n_jobs: int | None) -> Any:
    return flipcert.KernelSVM(n_jobs=n_jobs)


def _svms(given: Settings, n_jobs: int | None) -> Any:
    return flipcert.PartitionEnsemble(
        flipcert.KernelSVM(n_jobs=n_jobs), n_partitions=given["partitions"], n_jobs=n_jobs
    )


def _spread(given: Settings, n_jobs: int | None) -> Any:
    return flipcert.LabelSpreading(n_neighbors=given["neighbors"], alpha=given["alpha"], n_jobs=n_jobs)


def _smoothed(method: str) -> Callable[[Settings, int | None], Any]:
    def make(given: Settings, n_jobs: int | None) -> Any:
        q, reg = given["flip_probability"], given["reg"]
        return flipcert.SmoothedLinear(flip_probability=q, reg=reg, method=method, n_jobs=n_jobs)

    return make


def _network(method: str) -> Callable[[Settings, int | None], Any]:
    def make(given: Settings, n_jobs: int | None) -> Any:
        return flipcert.BoundedNetwork(clip=given["clip"], method=method, n_jobs=n_jobs)

    return make


def _milp(given: Settings, n_jobs: int | None) -> Any:
    return flipcert.MilpSVM(C=given["C"], time_limit=5.0, n_jobs=n_jobs)


PARTITIONS = (10, 50, 250, 1000, 3000)
_BLACK_BOX = {"scale": SCALES, "reg": REGS, "partitions": PARTITIONS}
# Each base model of copies sees as many rows as one without, so these are dear: 4 copies are 4 times the models.
_COPIES = 4
_SMOOTHING = {"scale": SCALES, "reg": REGS, "flip_probability": (0.0001, 0.0125, 0.1)}
_CLIPS = {"scale": ("unit",), "clip": (None, 0.2, 0.1)}

METHODS = (
    Method("SS-DPA", "Levine and Feizi 2021", SOUND, _votes(), _BLACK_BOX, votes=True),
    Method("Finite Aggregation", "Wang et al. 2022", SOUND, _votes(copies=_COPIES), _BLACK_BOX, votes=True),
    Method("Run-Off Election", "Rezaei et al. 2023", SOUND, _votes("runoff"), _BLACK_BOX, votes=True),
    Method(
        "Finite Aggregation and Run-Off", "Rezaei et al. 2023", SOUND, _votes("runoff", _COPIES), _BLACK_BOX, votes=True
    ),
    Method("smoothing, as published", "Rosenfeld et al. 2020", UNSOUND, _smoothed("published"), _SMOOTHING),
    Method("smoothing, sound", "as above, Neyman-Pearson", SOUND, _smoothed("neyman-pearson"), _SMOOTHING),
    Method("gradient bounding", "Sosnin et al. 2024", SOUND, _network("published"), _CLIPS),
    Method(
        "LabelCert, 60 rows",
        "Sabanayagam et al. 2025",
        SOUND,
        _milp,
        {"scale": SCALES, "C": (1e-4, 1e-2)},
        rows=60,
        points=50,
    ),
    Method("one SVM", "ScaLabelCert", SOUND, _svm, {"scale": SCALES}),
    Method("one ridge regression", "ScaLabelCert", SOUND, _ridge, {"scale": SCALES, "reg": REGS}),
    Method("ensemble of SVMs", "EnsembleCert", SOUND, _svms, {"scale": SCALES, "partitions": PARTITIONS}),
    Method("ensemble of ridge regressions", "EnsembleCert", SOUND, _votes(), _BLACK_BOX),
    Method("Run-Off Election, white-box", "their vote, our flip costs", SOUND, _votes("runoff"), _BLACK_BOX),
    Method(
        "label spreading",
        "flipcert",
        SOUND,
        _spread,
        {"scale": SCALES, "neighbors": (10, 30, 100), "alpha": (0.5, 0.9)},
    ),
    Method("smoothing, white-box", "their smoothing, our bound", SOUND, _smoothed("white-box"), _SMOOTHING),
    Method("gradient bounding, label-linear", "their training, our bounds", SOUND, _network("auto"), _CLIPS),
)
# Whose predictions are certified together as well.
TOGETHER = "one ridge regression"
