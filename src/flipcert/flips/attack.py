"""Attacks that work: which labels to flip so that a class, or any other class, is predicted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.exceptions import CertificateError
from flipcert.flips._jit.ladder import UNDECIDED, new_ladder
from flipcert.flips._jit.level import level_cost
from flipcert.flips._jit.reach import (
    BY_LEVEL,
    NO_ATTACK,
    RECORDED,
    UPPER,
    attack_greedily,
    cheapest_change,
    reach_bounds,
)
from flipcert.flips._jit.rival import dearest_rival
from flipcert.flips.costs import radii_in_doubles, score_block
from flipcert.flips.rows import DoubleRow, IntegerRow, Row, recorded
from flipcert.flips.solver import cheapest_attack
from flipcert.labels.labels import Labels, check_labels
from flipcert.labels.validation import check_choice, check_integers, check_number, check_offset, check_weights
from flipcert.results.witness import Witness


def cheapest_flips(
    weights: ArrayLike,
    labels: ArrayLike,
    n_classes: int,
    *,
    target: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    bound: str = "upper",
    time_limit: float = 60.0,
) -> list[Witness | None]:
    """Label flips that lead to a class: the witness of a flip cost, one for each row.

    Parameters
    ----------
    weights, labels, n_classes, offset
        As in :func:`flipcert.flip_costs`.
    target : int or array-like of int of shape (n_test,), optional
        The class to be predicted. By default whichever class is cheapest to reach, other than the one predicted now;
        such a witness is always a smallest one.
    bound : {"upper", "exact"}, default="upper"
        Give the attack behind ``flip_costs(..., bound="upper")``, or a smallest one.
    time_limit : float, default=60.0
        Seconds for one integer program (``bound="exact"`` only).

    Returns
    -------
    list of Witness or None
        ``witness.indices`` and ``witness.labels`` say which labels to change to what, most influential first. None
        where no attack is known; an empty witness where the target is predicted already.

    See Also
    --------
    flip_costs : How many there are, for all classes.

    References
    ----------
    Mohgaonkar, Gosch, Sabanayagam, Ghoshdastidar and Günnemann, *Exact Certification of Neural Networks and
    Partition Aggregation Ensembles Against Label Poisoning*, 2026.

    Examples
    --------
    >>> import flipcert
    >>> (witness,) = flipcert.cheapest_flips([[3.0, 2.0, 2.0]], [0, 1, 1], n_classes=3, target=2)
    >>> witness.indices, witness.labels
    (array([0, 1]), array([2, 2]))
    """
    check_choice(bound, "bound", ("upper", "exact"))
    check_number(time_limit, "time_limit")
    encoded = check_labels(labels, n_classes)
    rows = check_weights(weights, encoded.codes.size)
    offsets = check_offset(offset, rows.shape[0], encoded.n_classes)
    if target is None:
        return change_predictions(rows, encoded, offsets)
    targets = np.asarray(target)
    targets = check_integers(targets, "target", minimum=0, maximum=encoded.n_classes - 1, ndim=1 if targets.ndim else 0)
    if targets.ndim and targets.size != rows.shape[0]:
        raise ValueError(f"target has {targets.size} entries, but weights has {rows.shape[0]} rows.")
    targets = np.broadcast_to(targets, rows.shape[0])
    witnesses = []
    for row, b, c in zip(rows, offsets, targets, strict=True):
        witness = reach_class(row, encoded, b, int(c))
        if bound == "exact":
            witness = improve_witness(row, encoded, b, int(c), witness, time_limit)
        witnesses.append(witness)
    return witnesses


def change_predictions(weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64]) -> list[Witness | None]:
    """Fewest flips that change the prediction of each row; None where nothing does.

    Row by row, as radii are found: what closes the gap is then still on the ladder.
    """
    ladder, replay = new_ladder(labels.n_labels, labels.n_classes), Replay(labels)
    witnesses: list[Witness | None] = []
    for t in range(weights.shape[0]):
        own = slice(t, t + 1)
        radii, decided = radii_in_doubles(weights[own], labels, offset[own], ladder)
        if decided[0]:
            first, winner, cost = (int(part[0]) for part in (radii.prediction, radii.target, radii.cost))
            witness = recorded(ladder, cost) if winner >= 0 else None
        else:
            row = IntegerRow(weights[t], labels, offset[t])
            cost, first, winner, _ = row.run(cheapest_change, 0, labels.unreachable)
            witness = row.recorded(cost) if winner >= 0 else None
        if witness is not None and replay.winner(witness, weights[t], offset[t]) == first:
            raise CertificateError("a witness did not change the prediction when replayed; please report this row.")
        witnesses.append(witness)
    return witnesses


class Replay:
    """Tells which class a row is given once flips are made: all weights are added up again, exactly.

    One copy of the labels serves all attacks, as each changes few of them, which are put back.
    """

    def __init__(self, labels: Labels) -> None:
        self._before = labels
        coded = labels.coded._replace(codes=labels.coded.codes.copy())
        self._after = replace(labels, codes=labels.codes.copy(), coded=coded)

    def winner(self, witness: Witness, weights: NDArray[Any], offset: NDArray[np.float64]) -> int:
        """The class of one row after the attack."""
        self._set(witness.indices, witness.labels)
        try:
            return int(score_block(weights[None], self._after, offset[None])[1][0])
        finally:
            self._set(witness.indices, self._before.codes[witness.indices])

    def _set(self, indices: NDArray[np.int64], codes: NDArray[np.int64]) -> None:
        self._after.codes[indices] = codes
        self._after.coded.codes[indices] = codes


def reach_class(weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], target: int) -> Witness | None:
    """The best attack known that makes ``target`` win one row: of the cost that ``flip_costs`` calls upper.

    Where rounding leaves the cost of *some* class open, the costs of the whole row are taken in integers, and so are
    its witnesses.
    """
    for make_row in (DoubleRow, IntegerRow):
        row = make_row(weights, labels, offset)
        if row.costs(UPPER) is None:
            continue
        witness = Witness.of([]) if row.prediction == target else _best_witness(row, target)
        if witness is not None:
            replayed = Replay(labels).winner(witness, weights, offset)
            if replayed != target:
                raise CertificateError(f"a witness reached class {replayed}, not {target}; please report this row.")
        return witness
    raise CertificateError("integers left a comparison undecided; please report this row.")


def attack_of_cost(
    weights: NDArray[Any], labels: Labels, offset: NDArray[np.float64], target: int, cost: int, time_limit: float
) -> Witness:
    """Flips that make ``target`` win one row, as many as it is known to cost."""
    for make_row in (DoubleRow, IntegerRow):
        row = make_row(weights, labels, offset)
        witness = None if row.prediction == UNDECIDED else _best_witness(row, target)
        if witness is not None and len(witness) == cost:
            break
    else:
        witness = cheapest_attack(IntegerRow(weights, labels, offset), target, cost, cost + 1, time_limit)
    if witness is None or Replay(labels).winner(witness, weights, offset) != target:
        raise CertificateError(f"class {target} was not reached with {cost} flips; please report this row.")
    return witness


def improve_witness(
    weights: NDArray[Any],
    labels: Labels,
    offset: NDArray[np.float64],
    target: int,
    known: Witness | None,
    time_limit: float,
) -> Witness | None:
    """A smallest attack that makes ``target`` win, given the best one known; None if none exists."""
    row = IntegerRow(weights, labels, offset)
    if row.prediction == target or not row.has_negative:
        return known
    lower, _ = row.run(dearest_rival, target, row.prediction, 0, labels.unreachable)
    upper = labels.unreachable if known is None else len(known)
    if lower == upper:
        return known
    better = cheapest_attack(row, target, lower, upper, time_limit)
    return known if better is None else better


def _best_witness(row: Row, target: int) -> Witness | None:
    """Decide between the attacks just as the flip costs of the row did."""
    unreachable = row.labels.unreachable
    if not row.has_negative:
        cost, _ = row.run(level_cost, target, row.slack, unreachable, 1, True)
        return row.recorded(cost) if 0 <= cost < unreachable else None
    fewest, first, winner, _ = row.run(cheapest_change, row.slack, unreachable)
    if winner == target:
        return row.recorded(fewest)
    _, upper, _, which = row.run(reach_bounds, target, first, row.slack, row.rounding, unreachable)
    if which == NO_ATTACK:
        return None
    if which == BY_LEVEL:
        row.run(level_cost, target, row.slack, unreachable, 1, True)
    elif which != RECORDED:
        row.run(attack_greedily, target, which, row.slack, unreachable)
    return row.recorded(upper)
