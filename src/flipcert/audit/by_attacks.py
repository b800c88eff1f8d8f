"""Plans for ensembles: labels that the smallest attacks on nearly proven predictions need are checked next."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from flipcert.audit.checks import Units, trusting
from flipcert.audit.potential import Chosen
from flipcert.engine.watch import Watcher, current_watcher, watched_by
from flipcert.results.certificates import Certificates

# Attacks are looked for anew after so many parts of all checks.
_ROUNDS = 20


def choose_by_attacks(
    model: Any,
    X: ArrayLike,
    n_units: int,
    units: Units,
    budget: int,
    start: Certificates,
    counted: NDArray[np.bool_],
) -> Chosen:
    """Count labels in the smallest known attacks on points that are not proven, and more where little is missing.

    An attack that loses one label has to find another, so labels of one attack are worth less once one is taken.
    """
    chosen, weighs_on = np.empty(n_units, np.int64), np.zeros(n_units, np.int64)
    done, left, goal = 0, units.attackable, budget
    watcher = current_watcher()
    watcher.begin(n_units, "labels")
    certificates = start
    while done < n_units and budget <= left.size:
        own = trusting(model, units.after(chosen[:done]))
        with watched_by(Watcher()):
            certificates = own.certify(X) if done else start
            rows = np.flatnonzero(counted & (certificates.radius < budget))
            attacks = own.worst_flips(_safe_indexing(X, rows)) if rows.size else []
        worth = 1.0 / (budget - certificates.radius[rows]) ** 2.0
        known = [(attack.indices, value) for attack, value in zip(attacks, worth, strict=True) if attack is not None]
        batch = min(n_units - done, -(-n_units // _ROUNDS))
        found = _most_counted(known, units.count, batch)
        for label, points in found:
            chosen[done], weighs_on[done] = label, points if budget == goal else 0
            done += 1
        watcher.advance(len(found))
        if not found:
            budget *= 2
    rest = np.setdiff1d(left, chosen[:done])[: n_units - done]
    chosen[done:] = rest
    watcher.advance(rest.size)
    return Chosen(chosen, weighs_on)


def _most_counted(attacks: list[tuple[NDArray[np.int64], float]], n_labels: int, count: int) -> list[tuple[int, int]]:
    """Labels that are worth most, one after the other, and how many attacks each is in; spoiled ones count half."""
    value, worth = np.zeros(n_labels), [own for _, own in attacks]
    for indices, own in attacks:
        value[indices] += own
    found: list[tuple[int, int]] = []
    taken: set[int] = set()
    while len(found) < count:
        best = int(value.argmax())
        if value[best] < 1e-12:
            break
        taken.add(best)
        points = 0
        for k, (indices, _) in enumerate(attacks):
            if best in indices:
                points += 1
                value[indices] -= worth[k] / 2
                worth[k] /= 2
        value[list(taken)] = 0.0
        found.append((best, points))
    return found
