"""Collective certificates of any estimator: what is proven and what was found, put into the user's labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.collective.facing import Facing
from flipcert.collective.linear import FacingLinear
from flipcert.collective.one_by_one import OneByOne
from flipcert.collective.votes import FacingVotes
from flipcert.engine.clock import working_time
from flipcert.engine.sparse import indexable
from flipcert.engine.watch import current_watcher
from flipcert.ensemble.partition_ensemble import PartitionEnsemble
from flipcert.labels.encoding import class_indices
from flipcert.labels.threats import FLIPS, SOURCES, Threat
from flipcert.labels.validation import check_integers, check_number
from flipcert.results.certificates import Certificates
from flipcert.results.collective_certificate import CollectiveCertificate
from flipcert.results.witness import Witness, in_user_labels

if TYPE_CHECKING:
    from flipcert.classifiers.certified import CertifiedClassifier


def certify_collectively(
    model: CertifiedClassifier, X: ArrayLike, flips: ArrayLike, y: ArrayLike | None, threat: str, time_limit: float
) -> CollectiveCertificate:
    """What one attack can do to all rows of X (see ``CertifiedClassifier.certify_collectively``)."""
    model._proven_threat(threat)
    _checked_budgets(flips)
    X = indexable(X)
    check_number(time_limit, "time_limit")
    if y is not None and np.shape(y)[:1] != np.shape(X)[:1]:  # told before anything is certified
        raise ValueError(f"y has shape {np.shape(y)}, but X has shape {np.shape(X)}; give one label for each row of X.")
    return Targets(model, X, y, model.certify(X, threat=threat)).certify(flips, time_limit)


class Targets:
    """All rows of X as one attack meets them: what is known point by point, and what the model says beyond that.

    Who asks about one budget after the other asks the same one, so that what was prepared is prepared once.

    Parameters
    ----------
    model : CertifiedClassifier
        A fitted model.
    X : array-like of shape (n_test, n_features)
        Test inputs.
    y : array-like of shape (n_test,) or None
        True labels: only predictions that are right count; without them all do.
    certificates : Certificates
        What ``model.certify`` says of these rows, under the threat in question.
    """

    def __init__(
        self, model: CertifiedClassifier, X: ArrayLike, y: ArrayLike | None, certificates: Certificates
    ) -> None:
        self._model, self._certificates, self._labelled = model, certificates, y is not None
        self._counted = np.ones(len(certificates), np.bool_) if y is None else certificates.correct(y)
        threat = model._proven_threat(certificates.threat)
        self._alone = OneByOne(model, X, threat, certificates)
        self._facing = _facing(model, X, threat, certificates, self._alone)

    def certify(self, flips: ArrayLike, time_limit: float) -> CollectiveCertificate:
        """The collective certificate for some budgets, within so many seconds for all of them."""
        budgets, known, counted = _checked_budgets(flips), self._certificates, self._counted
        # Who withstands all that there is withstands any budget.
        threatened = counted & (known.radius < np.minimum(budgets, known.limit)[:, None])
        one_by_one = threatened.sum(axis=1)
        watcher = current_watcher()
        for budget, points in zip(budgets.tolist(), one_by_one.tolist(), strict=True):
            watcher.narrowed(budget, points, 0)
        deadline = working_time() + time_limit
        at_most = np.minimum(self._facing.at_most(budgets, threatened, deadline), one_by_one)
        # An attacker need not use the whole budget: what fewer units can do, more can do as well.
        at_most = np.minimum.accumulate(at_most[::-1])[::-1]
        for budget, points in zip(budgets.tolist(), at_most.tolist(), strict=True):
            watcher.narrowed(budget, at_most=points)
        alone = self._alone.smallest(budgets, threatened, self._facing.replays)
        witnesses = self._facing.attacks(budgets, threatened, deadline, alone)
        found = [self._replayed(own) for own in witnesses]
        for k, own in enumerate(alone):
            # A search goes by rounded scores: where points nearly tie, it may miss what is known of one of them.
            if own is not None and found[k][0] == 0:
                witnesses[k], found[k] = own, self._replayed(own)
        order = [max(range(k + 1), key=lambda place: found[place][0]) for k in range(budgets.size)]
        for budget, place in zip(budgets.tolist(), order, strict=True):
            watcher.narrowed(budget, at_least=found[place][0])
        places = np.searchsorted(budgets, np.atleast_1d(np.asarray(flips)))
        chosen = [order[place] for place in places.tolist()]
        classes, labels = self._model.classes_, self._model._labels
        return CollectiveCertificate(
            flips=budgets[places],
            changed_at_most=at_most[places],
            changed_at_least=np.array([found[k][0] for k in chosen], np.int64),
            changed_one_by_one=one_by_one[places],
            attacks=[in_user_labels(witnesses[k], classes, labels) for k in chosen],
            prediction=known.prediction,
            prediction_after=np.stack([found[k][1] for k in chosen]),
            counted=counted,
            counts_correct=self._labelled,
            n_labels=known.n_labels,
            n_attackable=known.n_attackable,
            threat=known.threat,
            n_sources=known.n_sources,
            why_one_by_one=self._facing.why_one_by_one,
            replayed=self._facing.replays,
            model=known.model,
            classes=known.classes,
        )

    def _replayed(self, witness: Witness | None) -> tuple[int, NDArray[Any]]:
        """How many counted predictions an attack changes, and what is predicted then."""
        before = self._certificates.prediction
        if witness is None:
            return 0, before
        after = self._model.classes_[self._facing.predictions_after(witness)]
        return int(np.count_nonzero(self._counted & (after != before))), after


def _facing(
    model: CertifiedClassifier, X: ArrayLike, threat: Threat, certificates: Certificates, alone: OneByOne
) -> Facing:
    """The model as one attack faces it on all rows of X."""
    linear = model._label_linear(X) if threat in (FLIPS, SOURCES) else None
    if linear is not None:
        complaint = "{label} is none of the classes {classes}."
        prediction = class_indices(certificates.prediction, model.classes_, complaint)
        return FacingLinear(*linear, prediction, threat)
    if isinstance(model, PartitionEnsemble) and threat in (FLIPS, SOURCES) and model.electorate_.parts_units(threat):
        return FacingVotes(model, X, threat, certificates, alone)
    return alone


def _checked_budgets(flips: ArrayLike) -> NDArray[np.int64]:
    """Budgets in ascending order, each once."""
    given = np.asarray(flips)
    whole = check_integers(np.atleast_1d(given), "flips", minimum=0, ndim=1)
    if whole.size == 0:
        raise ValueError("flips is empty; give at least one budget, such as 10 or [10, 50, 100].")
    return np.unique(whole)
