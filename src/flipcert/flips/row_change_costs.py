"""Costs of all classes where training rows come and go: bounds, and the attacks behind them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.exceptions import CertificateError
from flipcert.flips._jit import row_change_costs as jit
from flipcert.flips._jit.ladder import new_ladder
from flipcert.flips.new_rows import NewRows
from flipcert.flips.operations import KINDS, Operations, integer_row, pair_attack, replayed
from flipcert.flips.rows import IntegerRow
from flipcert.labels.labels import Labels
from flipcert.labels.threats import DELETIONS, EDITS, INSERTIONS, REPLACEMENTS, Threat
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness


def row_change_costs(
    threat: Threat,
    weights: NDArray[Any],
    labels: Labels,
    offset: NDArray[np.float64],
    new_rows: NewRows,
    tolerance: NDArray[np.float64] | None,
) -> FlipCosts:
    """Costs of one block of rows to every class, in a fixed label space: all rows may go, and no score is left then.

    Exact but for edits where weights are negative, and for new rows that may weigh more than is known.
    """
    n_rows, n_classes, unreachable = weights.shape[0], labels.n_classes, threat.unreachable(labels)
    prediction = np.zeros(n_rows, np.int64)
    lower, upper = np.zeros((n_rows, n_classes), np.int64), np.zeros((n_rows, n_classes), np.int64)
    sensitive, decided = np.zeros(n_rows, np.bool_), np.zeros(n_rows, np.bool_)
    movable = np.bincount(labels.codes[labels.coded.movable], minlength=n_classes)
    jit.class_cost_rows(
        weights, labels.coded, offset, KINDS[threat.name], new_rows.most, new_rows.real, movable, labels.n_movable,
        np.zeros(n_rows) if tolerance is None else tolerance, unreachable, new_ladder(labels.n_labels, n_classes),
        np.zeros(labels.n_labels + n_classes + 1), prediction, lower, upper, sensitive, decided,
    )  # fmt: skip
    for t in np.flatnonzero(~decided).tolist():
        row = integer_row(threat, weights[t], labels, offset[t], new_rows, t)
        prediction[t] = row.prediction
        # Integers of Python throughout: numbers of NumPy, multiplied with large ones, would overflow.
        state = row.run(
            jit.class_costs, row.prediction, KINDS[threat.name], *row.others, movable.tolist(), labels.n_movable,
            np.zeros(labels.n_labels + n_classes + 1, object), 0, row.has_negative, unreachable, lower[t], upper[t],
        )  # fmt: skip
        assert state == 0, "integers decide everything"
    if new_rows.within < labels.n_labels:
        np.minimum(lower, new_rows.within + 1, out=lower)
        upper[upper > new_rows.within] = unreachable
    return FlipCosts(prediction, lower, upper, sensitive)


def attack_by_rows(
    threat: Threat,
    weights: NDArray[Any],
    labels: Labels,
    offset: NDArray[np.float64],
    target: int,
    cost: int,
    new_rows: NewRows,
) -> Witness:
    """The operations behind an upper cost of a class; ``new_rows`` is that of this row alone."""
    row = integer_row(threat, weights, labels, offset, new_rows, 0)
    new = row.others[1]
    attacks = (own for own in _attacks(row, threat, target, new, cost) if own is not None and len(own) == cost)
    for attack in attacks:
        if replayed(row, attack, new, in_fixed_space=True) == target:
            return attack.witness(threat, new_rows.inputs[0] if new_rows.inputs.size else None)
    raise CertificateError(f"class {target} was not reached with {cost} {threat.name}; please report this row.")


def _attacks(row: IntegerRow, threat: Threat, c: int, new: int, cost: int) -> Iterator[Operations | None]:
    """Attacks that may be the ones of this cost."""
    if row.prediction == c:
        yield Operations([], [], c)
    elif threat is INSERTIONS:
        yield Operations([], [], c, cost)
    elif threat is REPLACEMENTS:
        yield _replacements(row, c, new, cost)
    elif threat is EDITS:
        yield _edits(row, c, new, cost)
        first, classes = row.prediction, range(row.labels.n_classes)
        pairs = [(q, c) for q in classes if q != c] + [(first, q) for q in classes if q not in (first, c)]
        for ahead, lifted in pairs:
            yield pair_attack(row, threat, ahead, lifted, new, cost)
    else:
        yield _removals(row, c, None if threat is DELETIONS else new, cost)


def _sorted_rows(row: IntegerRow, q: int, largest_first: bool = True) -> list[int]:
    """Rows of a class that can be touched, by weight."""
    rows = np.flatnonzero((row.labels.codes == q) & row.labels.coded.movable).tolist()
    return sorted(rows, key=lambda i: row.weights[i], reverse=largest_first)


def _sums(row: IntegerRow, rows: list[int]) -> list[int]:
    """Sums of the first weights."""
    return list(accumulate((row.weights[i] for i in rows), initial=0))


def _removals(row: IntegerRow, c: int, new: int | None, cost: int) -> Operations | None:
    """Deletions, and new rows if it is known what they weigh, that make class c win."""
    others = [q for q in range(row.labels.n_classes) if q != c]
    positive = {q: [i for i in _sorted_rows(row, q) if row.weights[i] > 0] for q in others}
    sums = {q: _sums(row, positive[q]) for q in others}
    own = [i for i in _sorted_rows(row, c, largest_first=False) if row.weights[i] < 0]
    own_sums = _sums(row, own)
    for steps in range(min(cost, len(own) if new is None else cost) + 1):
        level = row.scores[c] - own_sums[steps] if new is None else row.scores[c] + steps * new
        # Whole numbers: to be below a class that wins ties takes one more.
        taken = {q: bisect_left(sums[q], row.scores[q] - level + (c > q)) for q in others}
        if steps + sum(taken.values()) == cost and all(taken[q] < len(sums[q]) for q in others):
            deleted = [i for q in others for i in positive[q][: taken[q]]]
            if new is None:
                return Operations([], own[:steps] + deleted, c)
            return Operations([], deleted, c, steps)
    return None


def _replacements(row: IntegerRow, c: int, new: int, cost: int) -> Operations | None:
    """So many replacements that make class c win."""
    others = [q for q in range(row.labels.n_classes) if q != c]
    rows = {q: _sorted_rows(row, q) for q in others}
    sums = {q: _sums(row, rows[q]) for q in others}
    turn = {q: sum(row.weights[i] > 0 for i in rows[q]) for q in others}
    own = _sorted_rows(row, c, largest_first=False)
    own_sums = _sums(row, own)
    for steps in range(min(cost, len(own)) + 1):
        level = row.scores[c] + cost * new - own_sums[steps]
        need = {q: row.scores[q] - level + (c > q) for q in others}
        if any(sums[q][turn[q]] < need[q] for q in others):
            continue
        taken = {q: bisect_left(sums[q], need[q], 0, turn[q]) for q in others}
        most = {q: bisect_right(sums[q], -need[q], turn[q], key=lambda total: -total) - 1 for q in others}
        left = cost - steps - sum(taken.values())
        if left < 0 or left > sum(most[q] - taken[q] for q in others):
            continue
        for q in others:
            more = min(left, most[q] - taken[q])
            taken[q] += more
            left -= more
        deleted = own[:steps] + [i for q in others for i in rows[q][: taken[q]]]
        return Operations([], deleted, c, cost, replaces=True)
    return None


def _edits(row: IntegerRow, c: int, new: int, cost: int) -> Operations | None:
    """Flips of positive weights to class c, and new rows of it, that make it win."""
    others = [q for q in range(row.labels.n_classes) if q != c]
    positive = {q: [i for i in _sorted_rows(row, q) if row.weights[i] > 0] for q in others}
    scores = {q: row.scores[q] for q in others}
    gained = row.scores[c]
    flips: list[tuple[int, int]] = []
    while len(flips) <= cost:
        top = max(others, key=lambda q: (scores[q], -q))
        missing = scores[top] - gained + (c > top)
        inserted = 0 if missing <= 0 else -(-missing // new) if new > 0 else cost + 1
        if len(flips) + inserted == cost:
            return Operations(flips, [], c, inserted)
        if not positive[top]:
            break
        i = positive[top].pop(0)
        scores[top] -= row.weights[i]
        gained += row.weights[i]
        flips.append((i, c))
    return None
