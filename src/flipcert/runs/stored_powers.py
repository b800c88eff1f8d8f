"""What a run says of single sources, looked at again: is it there, and are labels and points those of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.datasets.table import Table
from flipcert.labels.threats import SOURCES
from flipcert.report.words import plural
from flipcert.runs.comparisons import POWERS, RECOUNTED, Place, Verification
from flipcert.runs.source_power import strongest
from flipcert.runs.stored_run import StoredRun

_NAMES = ("source", "labels", "points_changed_alone")


def compare_powers(
    run: StoredRun, number: int, train: Table, model: Any, X_test: NDArray[Any], verification: Verification
) -> None:
    """Compare the strongest sources of a summary with those of a model; without one, with labels and the table."""
    if run.threat != SOURCES.name or train.givers is None:
        return
    told, place = run.told[number]["strongest_sources"], Place(run.settings[number].name)
    ids, sizes = np.unique(train.givers, return_counts=True)
    # Nobody looks for attacks of single sources if no attacks are asked for.
    wanted = strongest(sizes, sizes).size if run.n_attacks else 0
    stored, found = (plural(n, "source") for n in (len(told), wanted))
    verification.note(
        POWERS, place, stored, found, len({str(own.get("source")) for own in told}) == len(told) == wanted
    )
    if not told:
        return
    alone = [line for line in run.points[number] if line["radius_upper"] == 0]
    counts = dict(zip(ids.tolist(), sizes.tolist(), strict=True))
    for own in told:
        source, labels, points = (own.get(name) for name in _NAMES)
        known = counts.get(source) if isinstance(source, (int, float, str)) else None
        agrees = type(labels) is type(points) is int and labels == known and 0 <= points <= len(alone)
        verification.note(POWERS, place, _words(own), f"{known} labels, at most {len(alone)} points", agrees)
    if not isinstance(model, CertifiedByWeights):
        verification.leave_out("How many points a single source can change was not counted again.")
        return
    changed = np.zeros(ids.size, np.int64)
    if alone:
        ids, sizes, changed = model.source_powers(X_test[[line["row"] for line in alone]])
    everybody = [
        dict(zip(_NAMES, own, strict=True)) for own in zip(ids.tolist(), sizes.tolist(), changed.tolist(), strict=True)
    ]
    # In another block, weights may round to another model, and an attack may fail; the run says where.
    slack = sum(bool(line["rounding_sensitive"]) for line in alone)
    for own, rank in zip(told, strongest(sizes, changed).tolist(), strict=False):
        mine, points = everybody[rank], own.get(_NAMES[2])
        agrees = own == mine and _words(own) == _words(mine)
        if slack and type(points) is int:
            mine = next((other for other in everybody if other[_NAMES[0]] == own.get(_NAMES[0])), mine)
            agrees = agrees or points == 0 or abs(points - mine[_NAMES[2]]) <= slack
        verification.note(RECOUNTED, place, _words(own), _words(mine), agrees)


def _words(own: dict[str, Any]) -> str:
    source, labels, points = (own.get(name) for name in _NAMES)
    return f"{source}: {labels} labels, {points} points"
