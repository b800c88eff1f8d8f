"""Classifiers that certify through what is known about the flips that lead to each class."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.classifiers.certified import CertifiedClassifier
from flipcert.engine.blocks import watched_blocks
from flipcert.engine.watch import current_watcher
from flipcert.flips.label_space import NAME_THE_SPACE
from flipcert.flips.source_costs import costs_in_sources
from flipcert.labels.encoding import predicted_indices
from flipcert.labels.threats import SOURCES, Threat
from flipcert.labels.validation import check_integers
from flipcert.results.certificates import Certificates
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness


class CertifiedByCosts(CertifiedClassifier):
    """Base of classifiers that certify through :class:`FlipCosts`.

    A subclass says what is known of them (``_known_costs``) and which class comes second (``_runner_up``).
    """

    @abstractmethod
    def _known_costs(self, X: ArrayLike, exact: bool) -> FlipCosts:
        """Check the inputs and bound their flip costs; ``exact`` asks for as much as can be had, class by class."""

    def _cheapest_costs(self, X: ArrayLike) -> FlipCosts:
        """Flip costs where only the cheapest change of prediction matters."""
        return self._known_costs(X, exact=False)

    def costs_and_attacks(self, X: ArrayLike, exact: bool = False, threat: str = "flips") -> FlipCosts:
        """Flip costs in class indices with the attacks behind them, as an ensemble asks its base classifiers for them.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        exact : bool, default=False
            Find out as much as can be had, class by class.
        threat : str, default="flips"
            What costs count, as in :meth:`certify`.

        Returns
        -------
        FlipCosts
            As if the label space were fixed.
        """
        return self._against(self._proven_threat(threat), self._known_costs(X, exact))

    def _against(self, threat: Threat, costs: FlipCosts) -> FlipCosts:
        """Costs that were found in flips, in units of a threat."""
        return costs_in_sources(costs, self._labels) if threat is SOURCES else costs

    def _in_label_space(self, X: ArrayLike, costs: FlipCosts, threat: Threat) -> FlipCosts:
        """What is left of costs of some rows if the label space is read from the labels."""
        return costs.in_label_space(self._labels, threat)

    @abstractmethod
    def _check_test(self, X: ArrayLike) -> NDArray[Any]:
        """Test inputs, validated."""

    @abstractmethod
    def _runner_up(self, X: ArrayLike, prediction: NDArray[np.int64]) -> NDArray[np.int64]:
        """Class with the second highest score."""

    def _flip_costs(self, X: ArrayLike, threat: Threat, bound: str, time_limit: float) -> NDArray[np.int64]:
        costs = self._in_label_space(X, self.costs_and_attacks(X, bound != "lower", threat.name), threat)
        how_to_close = self._how_to_close if self._labels.space_is_fixed else self._how_to_close + NAME_THE_SPACE
        return costs.of_bound(bound, self.classes_, how_to_close)

    _how_to_close = ""

    def _certify(self, X: ArrayLike, threat: Threat, exact: bool, time_limit: float) -> list[Certificates]:
        rows = self._check_test(X)
        return watched_blocks(partial(self._certify_rows, threat), rows, self._rows_together, current_watcher())

    # Rows that are certified at a time, and kept if someone watches; None takes all at once.
    _rows_together: int | None = None

    def _certify_rows(self, threat: Threat, rows: NDArray[Any]) -> Certificates:
        """Certificates of some rows, in class indices."""
        costs = self._in_label_space(rows, self._against(threat, self._cheapest_costs(rows)), threat)
        lower, upper, target = costs.cheapest(threat.limit(self._labels))
        return Certificates(
            prediction=costs.prediction,
            radius=lower - 1,
            radius_upper=upper - 1,
            blackbox_radius=None,
            runner_up=self._runner_up(rows, costs.prediction),
            target=np.ma.masked_less(target, 0),
            rounding_sensitive=costs.sensitive,
            n_labels=self._labels.n_labels,
            n_attackable=self._labels.n_movable,
            threat=threat.name,
            n_sources=self._labels.n_sources,
        )

    def _attacks(self, X: ArrayLike, threat: Threat, exact: bool, time_limit: float) -> list[Witness | None]:
        costs = self._in_label_space(X, self._against(threat, self._cheapest_costs(X)), threat)
        limit = threat.limit(self._labels)
        _, upper, target = costs.cheapest(limit)
        return [
            costs.attack(t, int(c)) if cost <= limit else None
            for t, (cost, c) in enumerate(zip(upper, target, strict=True))
        ]


def costs_of(model: Any, X: NDArray[Any], exact: bool) -> FlipCosts:
    """Ask a fitted model what its votes cost: one of ours, or any that answers ``flip_costs(X, bound="lower")``."""
    if hasattr(model, "costs_and_attacks") and not tells_other_costs(type(model)):
        own: FlipCosts = model.costs_and_attacks(X, exact=exact)
        return own
    prediction = predicted_indices(model, X, model.classes_, "it must keep to its own classes_")
    name = f"flip_costs of {type(model).__name__}"
    told = np.asarray(model.flip_costs(X, bound="lower"))
    if told.dtype.kind not in "iufb":
        raise ValueError(f"{name} must be an array of whole numbers; got an array of type {told.dtype}.")
    # However large, unreachable is unreachable.
    wide = (
        told.astype(np.float64)
        if told.dtype.kind == "f"
        else told.astype(np.uint64 if told.dtype.kind == "u" else np.int64)
    )
    lower = check_integers(np.minimum(wide, 2**62), name, minimum=0, ndim=2)
    if lower.shape != (X.shape[0], model.classes_.size):
        raise ValueError(f"{name} must have shape {(X.shape[0], model.classes_.size)}; got {lower.shape}.")
    return FlipCosts.proven(prediction, lower, limit=2**62)


def tells_other_costs(kind: type) -> bool:
    """Whether a class has flip costs of its own, and inherits attacks that know nothing of them."""
    for own in kind.__mro__:
        if not vars(own).keys().isdisjoint(("costs_and_attacks", "_known_costs")):
            return False
        if not vars(own).keys().isdisjoint(("flip_costs", "_flip_costs")):
            return True
    return False
