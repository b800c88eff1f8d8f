"""Choose the hyper-parameters of every method by one rule, certify the test set, keep what is finished.

The rule: the first 5,000 training rows are *trusted* (their labels are taken to be checked), and belong to no training
set. Each candidate is fitted on the first 80 % of them and certified on the rest, with as many rows a partition as it
would have in earnest. The one with the largest mean share of certified flips (certified flips of a point, none where it
is wrong, over the number of training rows) is taken. No label that an attacker could flip is looked at, so what is
certified afterwards is certified for the whole procedure.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flipcert
from paper.figures.cells import Cells
from paper.figures.models import SCALES
from paper.figures.source import Source
from paper.peers.methods import METHODS, TOGETHER, Method

Row = dict[str, Any]
FLIPS = (0, 1, 3, 10, 30, 100, 300, 1000)
# Trusted rows, and the share of them that candidates are fitted on.
TRUSTED, FITTED = 5000, 0.8


@dataclass(frozen=True)
class Plan:
    """How much is done.

    Attributes
    ----------
    data : tuple of str
        Names of the data.
    trusted : int
        Rows that hyper-parameters are chosen on.
    values : int or None
        Candidates of each hyper-parameter at most, for a quick look; None for all.
    seconds : float
        Time for one attack on all points, all numbers of flips together.
    points : int or None
        How many of the first test points are certified; None for all.
    methods : tuple of str or None
        Names of the methods that are run; None for all.
    """

    data: tuple[str, ...] = ("mnist", "cifar10")
    trusted: int = TRUSTED
    values: int | None = None
    seconds: float = 240.0
    points: int | None = None
    methods: tuple[str, ...] | None = None


QUICK = Plan(trusted=300, values=2, seconds=2.0)


def study(
    plan: Plan, folder: Path, load: Callable[[str], Source], say: Callable[[str], None], n_jobs: int | None = None
) -> Iterator[list[Row]]:
    """The rows of the table so far, after each method; what is kept in the folder is not computed again."""
    cells, rows = Cells(folder, load, say, n_jobs), list[Row]()
    for data in plan.data:
        for method in METHODS:
            if plan.methods is None or method.name in plan.methods:
                rows += _rows(plan, method, data, cells)
                yield rows


def _rows(plan: Plan, method: Method, data: str, cells: Cells) -> list[Row]:
    """The row of a method, and that of all its predictions together where that is asked for."""
    identity = {"peer": method.name, "grid": _grid(method, plan), "trusted": plan.trusted}
    source = cells.source(data)

    def chosen() -> list[Row]:
        cells.say(f"{data}: {method.name}: choosing")
        return [_choose(plan, method, source, cells.n_jobs)]

    def certified() -> list[Row]:
        cells.say(f"{data}: {method.name}: certifying")
        return _certified(plan, method, settings, source, cells.n_jobs)

    (choice,) = cells.kept({**identity, "part": "choice"}, data, chosen)
    settings = json.loads(choice["settings"])
    more = {"settings": choice["settings"], "points": plan.points, "part": "certificates"}
    found = cells.kept({**identity, **more}, data, certified)
    named = {"data": data, "method": method.name, "source": method.source, "proof": method.proof}
    return [{**named, **row, **choice} for row in found]


def _grid(method: Method, plan: Plan) -> Mapping[str, tuple[Any, ...]]:
    return {name: values[: plan.values] for name, values in method.grid.items()}


def _choose(plan: Plan, method: Method, source: Source, n_jobs: int | None) -> Row:
    """The candidate with the largest mean share of certified flips on trusted rows alone."""
    n_all, n_fit = source.y_train.size - plan.trusted, int(FITTED * plan.trusted)
    trusted = source.first(plan.trusted, 0)
    small = replace(
        source,
        X_train=trusted.X_train[:n_fit], y_train=trusted.y_train[:n_fit],
        X_test=trusted.X_train[n_fit:], y_test=trusted.y_train[n_fit:],
    )  # fmt: skip
    worth: dict[str, float] = {}
    for settings in replace(method, grid=_grid(method, plan)).candidates():
        scaled = dict(settings)
        if "partitions" in scaled:
            if scaled["partitions"] > n_all // 10:
                continue
            scaled["partitions"] = max(2, round(settings["partitions"] * n_fit / n_all))
        correct, radius, *_ = _radii(method, scaled, small, n_jobs)
        worth[json.dumps(settings)] = float(np.mean(np.where(correct, radius, 0)) / n_fit)
    best = max(worth, key=lambda settings: worth[settings])
    return {"settings": best, "n_candidates": len(worth), "share_on_trusted": worth[best]}


def _certified(plan: Plan, method: Method, settings: Mapping[str, Any], whole: Source, n_jobs: int | None) -> list[Row]:
    """What is certified of the test set, with the trusted rows left out."""
    shown = whole.first(whole.y_train.size, whole.y_test.size if plan.points is None else plan.points)
    source = replace(shown, X_train=shown.X_train[plan.trusted :], y_train=shown.y_train[plan.trusted :])
    correct, radius, exact, n_train, seconds, model, X_test = _radii(method, settings, source, n_jobs)
    row = {
        "n_train": n_train,
        "n_test": int(correct.size),
        "accuracy": float(correct.mean()),
        "flips": list(FLIPS),
        "certified": flipcert.certified_accuracy(correct, radius, FLIPS).tolist(),
        "median_all": flipcert.median_certified_robustness(correct, radius, over="all"),
        "median_correct": flipcert.median_certified_robustness(correct, radius),
        "share_exact": exact,
        "mean": float(np.mean(np.where(correct, radius, 0))),
        "together": False,
        **seconds,
    }
    if method.name != TOGETHER:
        return [row]
    start = time.perf_counter()
    labels = source.y_test
    one = model.certify_collectively(X_test, FLIPS[1:], labels, time_limit=plan.seconds)
    kept = [row["accuracy"], *((one.counted.sum() - one.changed_at_most) / labels.size).tolist()]
    together = {"certified": kept, "together": True, "seconds_certify": time.perf_counter() - start}
    return [row, {**row, **together, "median_all": None, "median_correct": None, "mean": None}]


def _radii(
    method: Method, settings: Mapping[str, Any], source: Source, n_jobs: int | None
) -> tuple[NDArray[np.bool_], NDArray[np.int64], float | None, int, dict[str, float], Any, NDArray[Any]]:
    """Fit and certify: which predictions are right, radii, share of exact ones, training rows, seconds, model, X."""
    rows, points = method.rows, method.points
    scaler = SCALES[settings["scale"]]().fit(source.X_train)
    X_train, X_test = scaler.transform(source.X_train[:rows]), scaler.transform(source.X_test[:points])
    y_train, y_test = source.y_train[:rows], source.y_test[:points]
    with warnings.catch_warnings():
        # That a published formula over-states is what the table says, not a reason to warn.
        warnings.filterwarnings("ignore", 'method="published"')
        start = time.perf_counter()
        model = method.make({**settings}, n_jobs).fit(X_train, y_train)
        fitted = time.perf_counter()
        certificates = model.certify(X_test)
        ended = time.perf_counter()
    radius = certificates.blackbox_radius if method.votes else certificates.radius
    seconds = {"seconds_fit": fitted - start, "seconds_certify": ended - fitted}
    exact = None if method.votes else float(certificates.exact.mean())
    return certificates.correct(y_test), radius, exact, int(y_train.size), seconds, model, X_test
