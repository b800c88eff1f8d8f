"""Which sources could change predictions alone, and how many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.datasets.table import Table
from flipcert.engine.sparse import of_type
from flipcert.labels.labels import Labels
from flipcert.labels.sources import Sources, check_sources
from flipcert.labels.threats import SOURCES
from flipcert.report.result import SourcePower
from flipcert.results.certificates import Certificates
from flipcert.runs.training import fit

# Sources that are shown, and test points of an ensemble whose attacks are looked for.
_SHOWN, _MOST_ATTACKED = 10, 200

# Test points that each source can change alone, and one such attack of a source: on which row, and all labels after it.
_Powers = tuple[NDArray[np.int64], Callable[[int], tuple[int, NDArray[Any]]]]


def powers_of_sources(
    model: Any, X_train: NDArray[Any], X_test: NDArray[Any], train: Table, certificates: Certificates
) -> tuple[SourcePower, ...]:
    """The sources with the most power over the test points: those that can change most of them alone, then by size.

    Of one label-linear model, all points are counted that a source can change alone. Other models tell one source for
    each point that a single one can change, of some points. One attack of each source that is shown
    is replayed: its labels are put there, the model is fitted again, and has to predict another class.
    """
    sources = check_sources(train.givers, train.n_labels)
    assert sources is not None, "there are radii in sources"
    alone = np.flatnonzero(certificates.radius_upper == 0)
    if isinstance(model, CertifiedByWeights):
        changed, attack = _of_weights(model, X_test, alone)
    else:
        changed, attack = _of_attacks(model, X_test, alone, sources, np.asarray(train.y))
    powers = []
    for own in strongest(sources.sizes, changed).tolist():
        count = int(changed[own])
        if count:
            row, labels = attack(own)
            after = fit(clone(model), X_train, replace(train, y=labels)).predict(X_test[row : row + 1])
            count = count if after[0] != certificates.prediction[row] else 0
        powers.append(SourcePower(_plain(sources.ids[own]), int(sources.sizes[own]), count))
    return tuple(powers)


def strongest(sizes: NDArray[np.int64], changed: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sources that are shown: those that change most points, then those of most labels, then the first."""
    return np.lexsort((np.arange(sizes.size), -sizes, -changed))[:_SHOWN]


def _plain(own: Any) -> Any:
    return own.item() if isinstance(own, np.generic) else own


def _of_weights(model: CertifiedByWeights, X: NDArray[Any], alone: NDArray[np.int64]) -> _Powers:
    """Powers from sums of weights, exactly: gains of a source add up over its labels."""
    linear, labels = model.label_linear_, model.label_linear_.labels
    assert labels.sources is not None, "there are radii in sources"
    changed, first = np.zeros(len(labels.sources), np.int64), np.full(len(labels.sources), -1)
    if alone.size == 0:
        return changed, _no_attack

    def powers(_: Any, rows: Any) -> NDArray[np.bool_]:
        return np.asarray(rows.powers())

    inputs = of_type(X[alone], linear.weights.dtype)
    does = np.concatenate(linear.map_rows(inputs, powers, threat=SOURCES))
    changed, first = np.count_nonzero(does, axis=0), alone[does.argmax(axis=0)]

    def attack(source: int) -> tuple[int, NDArray[Any]]:
        assert labels.sources is not None
        row = int(first[source])
        # What all others gave stays as it is.
        trusted = (labels.sources.codes != source) | ~labels.coded.movable
        alone_in_the_world = replace(
            linear, labels=Labels.of(labels.codes, labels.n_classes, trusted, labels.space_is_fixed, labels.sources)
        )
        (witness,) = alone_in_the_world.witnesses(of_type(X[row : row + 1], linear.weights.dtype), threat=SOURCES)
        return row, model.classes_[labels.codes if witness is None else witness.apply(labels.codes)]

    return changed, attack


def _of_attacks(model: Any, X: NDArray[Any], alone: NDArray[np.int64], sources: Sources, y: NDArray[Any]) -> _Powers:
    """Powers from attacks, which name one source for each point."""
    changed = np.zeros(len(sources), np.int64)
    if alone.size == 0:
        return changed, _no_attack
    rows = alone[np.linspace(0, alone.size - 1, min(alone.size, _MOST_ATTACKED)).astype(np.int64)]
    places = {own: place for place, own in enumerate(sources.ids.tolist())}
    known = {}
    for row, witness in zip(rows.tolist(), model.worst_flips(X[rows], threat=SOURCES.name), strict=True):
        if witness is not None and len(witness) == 1:
            place = places[witness.sources.tolist()[0]]
            changed[place] += 1
            known[place] = row, witness.apply(y)
    return changed, known.__getitem__


def _no_attack(source: int) -> tuple[int, NDArray[Any]]:
    raise LookupError(source)
