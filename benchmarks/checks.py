"""Every row is checked against the plain path on some of its points; a difference ends the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flipcert
from benchmarks import published
from benchmarks.data import Features
from benchmarks.plain import ensemble_weights, fewest_row_changes, svm_weights


class Mismatch(AssertionError):
    """The fast path and the plain path disagree."""


def steady(certificates: flipcert.Certificates, count: int) -> NDArray[np.int64]:
    """The first points whose certificate does not hang on how a product was rounded: there both paths must agree."""
    points = np.flatnonzero(~certificates.rounding_sensitive)[:count]
    if points.size == 0:
        raise Mismatch("nothing to check: every point is rounding-sensitive; check this job in double precision.")
    return points


def agree(what: str, point: int, ours: Any, plain: Any) -> None:
    """Raise unless two results are equal."""
    if ours != plain:
        raise Mismatch(f"{what} of test point {point}: flipcert says {ours}, the plain path {plain}.")


def check_stand_alone(
    certificates: flipcert.Certificates,
    features: Features,
    count: int,
    weights_of: Any = svm_weights,
) -> str:
    """Radii of one model against a full sort for every class."""
    points = steady(certificates, count)
    weights = weights_of(features.train, features.test[points])
    for t, row in zip(points, weights, strict=True):
        plain = published.stand_alone(row, features.labels, features.n_classes)
        ours = published.Certificate(*_triple(certificates, t))
        agree("certificate", t, ours, plain)
    return f"sorted in full: {points.size} points equal"


def check_row_changes(certificates: flipcert.Certificates, features: Features, max_norm: float, count: int) -> str:
    """Radii of one SVM in rows that come and go, where they are exact, against full sorts."""
    points = np.flatnonzero(~certificates.rounding_sensitive & certificates.exact)[:count]
    if points.size == 0:
        raise Mismatch("nothing to check: every point is rounding-sensitive, or open.")
    weights = svm_weights(features.train, features.test[points])
    for t, row in zip(points, weights, strict=True):
        new = float(np.linalg.norm(features.test[t].astype(np.float64))) * max_norm
        plain = fewest_row_changes(row, features.labels, features.n_classes, certificates.threat, new)
        agree(f"radius in {certificates.threat}", t, int(certificates.radius[t]), plain - 1)
    return f"sorted in full: {points.size} points equal"


def check_in_double(model: Any, features: Features, count: int, weights_of: Any) -> str:
    """Radii of one model whose every point is rounding-sensitive in float32.

    In double precision all are decided, and must agree; how many agree in float32 too is told, not demanded.
    """
    narrow = model.fit(features.train, features.labels).certify(features.test[:count])
    wide = replace(features, train=features.train.astype(np.float64), test=features.test[:count].astype(np.float64))
    checked = check_stand_alone(model.fit(wide.train, wide.labels).certify(wide.test), wide, count, weights_of)
    weights = weights_of(features.train, features.test[:count])
    plain = [published.stand_alone(row, features.labels, features.n_classes) for row in weights]
    equal = sum(_triple(narrow, t) == tuple(own) for t, own in enumerate(plain))
    return f"{checked} in float64, {equal} of {count} in float32"


def check_exact_vote(
    certificates: flipcert.Certificates, model: flipcert.PartitionEnsemble, features: Features, count: int
) -> str:
    """Radii of an ensemble with weights >= 0 against exact costs of every vote and the dynamic program."""
    points = steady(certificates, count)
    n_labels, n_classes = features.labels.size, features.n_classes
    costs = []
    for members, weights in ensemble_weights(features, model.partition_, features.test[points], None):
        part = flipcert.flip_costs(weights, features.labels[members], n_classes, bound="exact")
        costs.append(np.where(part > members.size, n_labels + 1, part))
    for k, t in enumerate(points):
        table = np.array([part[k] for part in costs])
        votes = (table == 0).argmax(axis=1)
        radius = published.vote_radius(votes, table, n_labels)
        winner = int(np.bincount(votes, minlength=n_classes).argmax())
        agree("certificate", t, _triple(certificates, t), (winner, radius, radius))
    # Exact costs come from the package itself; the published bounds share nothing with it.
    enclosed = check_bounds(certificates, model, features, min(count, 3))
    return f"exact costs and dynamic program: {points.size} points equal; {enclosed}"


def check_bounds(
    certificates: flipcert.Certificates,
    model: flipcert.PartitionEnsemble,
    features: Features,
    count: int,
    reg: float | None = None,
    exact: bool = False,
) -> str:
    """Radii of an ensemble with weights of both signs: between the published bounds, and every attack works."""
    points = steady(certificates, count)
    witnesses = model.worst_flips(features.test[points], exact=exact)
    parts = list(ensemble_weights(features, model.partition_, features.test[points], reg))
    labels = [features.labels[members] for members, _ in parts]
    for k, t in enumerate(points):
        weights = [part[k] for _, part in parts]
        plain = published.certify_sample(weights, labels, features.n_classes, features.labels.size)
        prediction, radius, radius_upper = _triple(certificates, t)
        agree("prediction", t, prediction, plain.prediction)
        if not plain.radius <= radius <= radius_upper or radius > plain.radius_upper:
            raise Mismatch(
                f"radii of test point {t}: flipcert says {radius} to {radius_upper}, "
                f"the published bounds are {plain.radius} to {plain.radius_upper}."
            )
        witness = witnesses[k]
        if witness is not None:
            agree("size of the attack", t, len(witness), radius_upper + 1)
            flipped = witness.apply(features.labels)
            votes = [
                int(published.class_scores(w, flipped[members], features.n_classes).argmax())
                for w, (members, _) in zip(weights, parts, strict=True)
            ]
            if np.bincount(votes, minlength=features.n_classes).argmax() == prediction:
                raise Mismatch(f"attack on test point {t}: {len(witness)} flips leave the prediction at {prediction}.")
    return f"between the published bounds, attacks replayed: {points.size} points"


def _triple(certificates: flipcert.Certificates, t: int) -> tuple[int, int, int]:
    """Prediction and both radii of one point."""
    return tuple(int(part[t]) for part in (certificates.prediction, certificates.radius, certificates.radius_upper))  # type: ignore[return-value]
