"""Collective certificates of any estimator: what is proven and what was found, put into the user's labels."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.collective.facing import Facing
from flipcert.collective.one_by_one import OneByOne
from flipcert.labels.validation import check_integers, check_number
from flipcert.results.certificates import Certificates
from flipcert.results.collective_certificate import CollectiveCertificate
from flipcert.results.witness import Witness, in_user_labels

if TYPE_CHECKING:
    from flipcert.classifiers.certified import CertifiedClassifier
    from flipcert.labels.threats import Threat


def certify_collectively(
    model: CertifiedClassifier, X: ArrayLike, flips: ArrayLike, y: ArrayLike | None, threat: str, time_limit: float
) -> CollectiveCertificate:
    """What one attack can do to all rows of X (see ``CertifiedClassifier.certify_collectively``)."""
    asked = model._proven_threat(threat)
    budgets = _checked_budgets(flips)
    check_number(time_limit, "time_limit")
    certificates = model.certify(X, threat=threat)
    counted = np.ones(len(certificates), np.bool_) if y is None else certificates.correct(y)
    # Who withstands all that there is withstands any budget.
    threatened = counted & (certificates.radius < np.minimum(budgets, certificates.limit)[:, None])
    one_by_one = threatened.sum(axis=1)
    facing = _facing(model, X, asked, certificates)
    deadline = time.monotonic() + time_limit
    at_most = np.minimum(facing.at_most(budgets, threatened, deadline), one_by_one)
    witnesses = facing.attacks(budgets, threatened, deadline)
    found = [_replayed(facing, model, certificates.prediction, counted, own) for own in witnesses]
    # An attacker need not use the whole budget: what fewer units can do, more can do as well.
    at_most = np.minimum.accumulate(at_most[::-1])[::-1]
    order = [max(range(k + 1), key=lambda place: found[place][0]) for k in range(budgets.size)]
    places = np.searchsorted(budgets, np.atleast_1d(np.asarray(flips)))
    chosen = [order[place] for place in places.tolist()]
    return CollectiveCertificate(
        flips=budgets[places],
        changed_at_most=at_most[places],
        changed_at_least=np.array([found[k][0] for k in chosen], np.int64),
        changed_one_by_one=one_by_one[places],
        attacks=[in_user_labels(witnesses[k], model.classes_, model._labels) for k in chosen],
        prediction=certificates.prediction,
        prediction_after=np.stack([found[k][1] for k in chosen]),
        counted=counted,
        counts_correct=y is not None,
        n_labels=certificates.n_labels,
        n_attackable=certificates.n_attackable,
        threat=threat,
        n_sources=certificates.n_sources,
        why_one_by_one=facing.why_one_by_one,
        model=certificates.model,
        classes=certificates.classes,
    )


def _facing(model: CertifiedClassifier, X: ArrayLike, threat: Threat, certificates: Certificates) -> Facing:
    """The model as one attack faces it on all rows of X."""
    return OneByOne(model, X, threat, certificates)


def _checked_budgets(flips: ArrayLike) -> NDArray[np.int64]:
    """Budgets in ascending order, each once."""
    given = np.asarray(flips)
    whole = check_integers(np.atleast_1d(given), "flips", minimum=0, ndim=1)
    if whole.size == 0:
        raise ValueError("flips is empty; give at least one budget, such as 10 or [10, 50, 100].")
    return np.unique(whole)


def _replayed(
    facing: Facing,
    model: CertifiedClassifier,
    prediction: NDArray[Any],
    counted: NDArray[np.bool_],
    witness: Witness | None,
) -> tuple[int, NDArray[Any]]:
    """How many counted predictions an attack changes, and what is predicted then."""
    if witness is None:
        return 0, prediction
    after = model.classes_[facing.predictions_after(witness)]
    return int(np.count_nonzero(counted & (after != prediction))), after
