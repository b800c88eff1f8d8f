"""How features are scaled if nobody says it, and all that was done to them in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.table import Table
from flipcert.engine.mapped import row_pieces
from flipcert.labels.threats import THREATS
from flipcert.report.words import plural
from flipcert.runs.inputs import refuse_lost_squares
from flipcert.runs.settings import AUTO, Settings

# Columns whose spreads differ by more than this factor do not share one scale.
_ONE_SCALE = 10.0


def settled(settings: Sequence[Settings], train: Table, threat: str) -> list[Settings]:
    """The same models, with a scale in place of "auto"."""
    if not any(own.scale == AUTO for own in settings):
        return list(settings)
    chosen = _chosen(train, threat)
    return [replace(own, scale=chosen) if own.scale == AUTO else own for own in settings]


def _chosen(train: Table, threat: str) -> str:
    """The scale of features: that of arrays is left as it is, and so is one that an attacker could move."""
    if not train.tabular or THREATS[threat].changes_rows:
        return "none"
    if share_one_scale(train.X):
        return "centre"
    try:
        refuse_lost_squares("standard", train.X, train.X[:0])
    except ValueError:
        return "none"
    return "standard"


def share_one_scale(X: NDArray[Any]) -> bool:
    """Whether the largest spread of a column is at most ten times the smallest.

    The spread of a column is its standard deviation; that of a column with two values, such as yes and no, is half
    their distance, however rare one of them is. Constant columns have none.

    >>> share_one_scale(np.array([[0.0, 1.0, 5.1], [1.0, 0.0, 4.9], [0.0, 0.0, 6.3]]))
    True
    >>> share_one_scale(np.array([[0.0, 1000.0], [1.0, 2000.0], [0.0, 4000.0]]))
    False
    """
    least, most = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    for _, rows in row_pieces(X):
        least, most = np.minimum(least, rows.min(axis=0)), np.maximum(most, rows.max(axis=0))
    middle = least / 2 + most / 2
    with np.errstate(over="ignore"):
        reach = most - least
    if not np.isfinite(reach).all():
        return False
    two_values, squares, sums = np.ones(X.shape[1], bool), np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for _, rows in row_pieces(X):
        two_values &= ((rows == least) | (rows == most)).all(axis=0)
        # As parts of their range, numbers of any size can be squared.
        parts = (rows - middle) / np.where(reach > 0, reach, 1.0)
        sums += parts.sum(axis=0)
        squares += np.square(parts).sum(axis=0)
    deviations = reach * np.sqrt(np.maximum(squares / X.shape[0] - np.square(sums / X.shape[0]), 0.0))
    spreads = np.where(two_values, reach / 2, deviations)[reach > 0]
    return bool(spreads.size == 0 or spreads.max() <= _ONE_SCALE * spreads.min())


def preparation(train: Table, settings: Sequence[Settings], asked: str, threat: str) -> dict[str, Any] | None:
    """What was done to the features, as plain values and in one sentence; None if nothing was asked, and nothing done.

    ``asked`` is the scale that was asked for.
    """
    scale = settings[0].scale
    if not train.prepared and not train.tabular and scale == "none":
        return None
    done = {**train.prepared, "scale": scale}
    return {**done, "said": _said(train, done, asked == AUTO, threat)}


_SCALED = {
    "none": "not scaled",
    "centre": "the mean of each column is taken off",
    "standard": "columns are standardised",
    "unit": "rows are scaled to length 1",
}


def _said(train: Table, done: Mapping[str, Any], chosen: bool, threat: str) -> str:
    """One sentence about the features."""
    told = []
    if encoded := done.get("encoded"):
        told.append(f"{plural(len(encoded), 'column')} of text one-hot encoded ({sum(encoded.values()):,} columns)")
    for gaps, where in (("filled_in", ""), ("filled_in_test", " of the test points")):
        if filled := done.get(gaps):
            count = plural(sum(filled.values()), "missing value")
            told.append(f"{count}{where} in {plural(len(filled), 'column')} filled in ({_by(done, filled)})")
    scaled = _SCALED[done["scale"]]
    if chosen and train.tabular:
        moved = THREATS[threat].changes_rows
        why = {
            "none": f", as --threat {threat} changes the rows that a scale goes by"
            if moved
            else ", as squares of some of these numbers are beyond the range of doubles",
            "centre": ", as all share one scale",
            "standard": ", as they do not share one scale",
        }[done["scale"]]
        scaled += why
    told.append(scaled)
    if unknown := done.get("unknown"):
        told += [
            f"{plural(count, 'test point')} with a {name} that no training row has, which is encoded as none of them"
            for name, count in unknown.items()
        ]
    fitted = "encode" in done or "impute" in done or done["scale"] in ("centre", "standard")
    by = ". All of it goes by the training rows, without labels" if fitted else ""
    return f"{plural(train.X.shape[1], 'feature')}: {'; '.join(told)}{by}."


def _by(done: Mapping[str, Any], filled: Mapping[str, int]) -> str:
    texts = [name for name in filled if name in done.get("encoded", {})]
    if done["impute"] == "most-frequent" or len(texts) == len(filled):
        return "most frequent value"
    return "median, and most frequent text" if texts else "median"
