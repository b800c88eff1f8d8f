"""What a check does: labels that were checked are trusted, all else of a fitted model stays as it is."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.ensemble.partition_ensemble import PartitionEnsemble
from flipcert.ensemble.white_box import WhiteBox
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, SOURCES, Threat


@dataclass(frozen=True)
class Units:
    """What can be checked: single labels, or sources with all their labels.

    Attributes
    ----------
    labels : Labels
        Training labels, with those that are trusted already.
    threat : Threat
        Flips, or sources.
    """

    labels: Labels
    threat: Threat

    @property
    def count(self) -> int:
        """Number of all units."""
        return self.threat.limit(self.labels)

    @property
    def of_label(self) -> NDArray[np.int64]:
        """The unit of each label."""
        if self.threat is FLIPS:
            return np.arange(self.labels.n_labels)
        assert self.labels.sources is not None, "refused otherwise"
        return self.labels.sources.codes

    @property
    def attackable(self) -> NDArray[np.int64]:
        """Units with a label that is not trusted yet."""
        return np.unique(self.of_label[self.labels.coded.movable])

    def after(self, checked: NDArray[np.int64]) -> Labels:
        """The labels once these units were checked, and found right."""
        labels = self.labels
        trusted = ~labels.coded.movable | np.isin(self.of_label, checked)
        return Labels.of(labels.codes, labels.n_classes, trusted, labels.space_is_fixed, labels.sources)

    def labels_of(self, checked: NDArray[np.int64]) -> NDArray[np.int64]:
        """Labels of these units that are not trusted yet, unit by unit."""
        if self.threat is FLIPS:
            return checked
        left = np.flatnonzero(self.labels.coded.movable)
        order = left[np.argsort(self.of_label[left], kind="stable")]
        ends = np.searchsorted(self.of_label[order], np.arange(self.count + 1))
        return np.concatenate([order[:0], *(order[ends[unit] : ends[unit + 1]] for unit in checked.tolist())])


def trusting(model: Any, labels: Labels) -> Any:
    """The fitted model as a fit on these labels, of which more are trusted, would be: weights never see a label."""
    same = copy(model)
    same._labels = labels
    if isinstance(model, CertifiedByWeights):
        same.label_linear_ = replace(model.label_linear_, labels=labels)
    else:
        same.electorate_ = model.electorate_.trusting(labels)
    return same


def refusal(model: Any, threat: Threat) -> str | None:
    """Why checks cannot be planned for a model, in words that end a sentence; None where they can."""
    if threat not in (FLIPS, SOURCES):
        return f'labels or sources can be checked; got threat="{threat.name}"'
    if isinstance(model, CertifiedByWeights) and not model.has_costs_of_its_own:
        return None
    name = type(model).__name__
    if isinstance(model, PartitionEnsemble):
        if model.electorate_.any_empty:
            return f"a partition of {name} holds no label; use fewer partitions, or another rule than hash"
        if model.vote != "majority" or model.copies != 1:
            return f'{name} is planned for vote="majority" and copies=1; got vote="{model.vote}", copies={model.copies}'
        if not isinstance(model.electorate_, WhiteBox):
            return f"{name} needs label-linear base classifiers, such as KernelRidge; got {model.estimator!r}"
        if threat is SOURCES:
            return f'{name} is planned for flips only; got threat="sources"'
        return None
    return (
        f"it needs a label-linear model, such as KernelRidge, KernelSVM or WeightedNeighbors, or a PartitionEnsemble "
        f"of these; got {name}, whose certificate would have to be fitted again after every check"
    )
