"""Collective certificates in a file: what is written there, and that nothing else is read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import pairwise
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.threats import DELETIONS, EDITS, FLIPS, INSERTIONS, REPLACEMENTS, SOURCES
from flipcert.results.columns import SPACE
from flipcert.results.storable import (
    check_exposure,
    check_labels,
    check_model,
    check_space,
    listed,
    read_stored,
    storable_labels,
    told_in,
    write_stored,
)
from flipcert.results.witness import Witness

if TYPE_CHECKING:
    from flipcert.results.collective_certificate import CollectiveCertificate

    Own = TypeVar("Own", bound=CollectiveCertificate)

_FORMAT = "flipcert-collective-1"
_COUNTS = ("flips", "changed_at_least", "changed_at_most", "changed_one_by_one")
# What is told once, in a header.
_TOLD = ("counts_correct", "n_labels", "n_attackable", "threat", "n_sources", "why_one_by_one", "replayed", "model")
# Parts of an attack by what has as many entries: labels that change, sources, rows that go, rows that come.
_PARTS = (("indices", "labels"), ("sources",), ("deleted",), ("inserted", "inserted_labels"))
# The parts that an attack has under each threat.
_OF_THREAT = {
    FLIPS.name: (0,),
    SOURCES.name: (0, 1),
    DELETIONS.name: (2,),
    INSERTIONS.name: (3,),
    REPLACEMENTS.name: (2, 3),
    EDITS.name: (0, 2, 3),
}
_LENGTHS = "attack_lengths"


def write_collective(path: str | os.PathLike[str], certificate: CollectiveCertificate) -> None:
    """Write a file of one collective certificate; what could not be read again is refused."""
    write_stored(path, arrays_of(certificate))


def read_collective(kind: type[Own], path: str | os.PathLike[str]) -> Own:
    """Read such a file; a ValueError if it holds anything else."""
    return read_stored(path, lambda arrays: collective_of(kind, arrays), "a saved collective certificate")


def arrays_of(certificate: CollectiveCertificate) -> dict[str, NDArray[Any]]:
    """A collective certificate as arrays by name, none of which needs a pickle; attacks lie end to end."""
    c = certificate
    header = {name: getattr(c, name) for name in _TOLD} | {"model": dict(c.model)}
    arrays: dict[str, NDArray[Any]] = {name: getattr(c, name) for name in (*_COUNTS, "counted")}
    try:
        check_collective(c)
        check_exposure(header)
        check_model(header["model"])
        # A budget without a known attack has no lengths, which is not the same as an attack that changes nothing.
        arrays[_LENGTHS] = np.array([_lengths(attack) for attack in c.attacks], np.int64)
        known = [attack for attack in c.attacks if attack is not None]
        joined = {name: _end_to_end(known, name) for part in _PARTS for name in part}
        labels = {
            "prediction": c.prediction,
            "prediction_after": c.prediction_after.ravel(),
            "attack_labels": joined.pop("labels"),
            "attack_inserted_labels": joined.pop("inserted_labels"),
        } | ({} if c.classes is None else {SPACE: c.classes})
        stored = storable_labels({name: own for name, own in labels.items() if own.size})
        arrays |= {name: stored.get(name, stored["prediction"][:0]) for name in labels}
        arrays |= {f"attack_{name}": own for name, own in joined.items()}
        arrays |= storable_labels({"attack_sources": joined["sources"]}) if joined["sources"].size else {}
    except ValueError as error:
        raise ValueError(f"this certificate cannot be saved: {error}.") from None
    arrays["prediction_after"] = arrays["prediction_after"].reshape(c.prediction_after.shape)
    arrays["header"] = np.array(json.dumps({"format": _FORMAT, **header}))
    return arrays


def collective_of(kind: type[Own], arrays: Mapping[str, NDArray[Any]]) -> Own:
    """A collective certificate from such arrays, wherever they come from; a ValueError if they are none."""
    told = _read_header(arrays.get("header"))
    attacks = {f"attack_{name}": name for part in _PARTS for name in part}
    names = {*_COUNTS, "prediction", "prediction_after", "counted", _LENGTHS, *attacks}
    if names - arrays.keys() or arrays.keys() - names - {"header", SPACE}:
        raise ValueError(f"it does not hold just the arrays {', '.join(sorted(names))}")
    values: dict[str, Any] = {name: arrays[name] for name in (*_COUNTS, "prediction", "prediction_after", "counted")}
    parts = {own: arrays[name] for name, own in attacks.items()}
    certificate = kind(
        **values,
        **told,
        attacks=_attacks(arrays[_LENGTHS], parts, told["threat"], told["n_labels"]),
        classes=arrays.get(SPACE),
    )
    check_collective(certificate)
    return certificate


def check_collective(certificate: CollectiveCertificate) -> None:
    """Refuse what cannot be a collective certificate."""
    c = certificate
    if c.flips.size == 0:
        raise ValueError("a collective certificate without budgets says nothing")
    for name in _COUNTS:
        own = getattr(c, name)
        if own.dtype != np.int64 or own.ndim != 1 or own.size != c.flips.size or own.min() < 0:
            raise ValueError(f"{name} must hold one whole number for each budget, none of them negative")
    if c.counted.dtype != np.bool_ or c.counted.ndim != 1 or not (c.counts_correct or c.counted.all()):
        raise ValueError("counted must say of each point whether it counts, and all count unless labels were given")
    if c.prediction.shape != c.counted.shape or c.prediction_after.shape != (c.flips.size, c.counted.size):
        raise ValueError("prediction must hold one label a point, and prediction_after one for each budget and point")
    bounds = (c.changed_at_least, c.changed_at_most, c.changed_one_by_one, np.array([c.n_counted]))
    if any(np.any(low > high) for low, high in pairwise(bounds)):
        raise ValueError("changed_at_least, changed_at_most, changed_one_by_one and the points that count must ascend")
    order = np.argsort(c.flips, kind="stable")
    for name in _COUNTS[1:]:
        steps, more = np.diff(getattr(c, name)[order]), np.diff(c.flips[order]) > 0
        if np.any(steps < 0) or np.any(steps[~more] != 0):
            raise ValueError(f"{name} must not fall where the budget grows")
    _check_labels(c)
    if len(c.attacks) != c.flips.size:
        raise ValueError("there must be one attack, or none, for each budget")
    for k, attack in enumerate(c.attacks):
        if attack is not None:
            _check_attack(c, attack, int(c.flips[k]))
        elif np.any(c.prediction_after[k] != c.prediction):
            raise ValueError("predictions change where no attack is known")
        if c.changed(k).size != c.changed_at_least[k]:
            raise ValueError("changed_at_least is not the number of counted points whose prediction changes")


def _check_labels(c: CollectiveCertificate) -> None:
    given = [("prediction", c.prediction), ("prediction_after", c.prediction_after.ravel())]
    for attack in filter(None, c.attacks):
        given += [("labels of an attack", attack.labels), ("inserted_labels of an attack", attack.inserted_labels)]
    labels = {"prediction": c.prediction}
    for name, own in given:
        check_labels(name, own)
        if own.size:
            labels[name] = own
    if len({own.dtype.kind for own in labels.values()}) > 1:
        raise ValueError(f"{listed(list(labels), 'and')} must be labels of the same kind")
    if c.classes is not None:
        check_space(c.classes, labels)


def _check_attack(c: CollectiveCertificate, attack: Witness, budget: int) -> None:
    """Refuse an attack that is beyond the budget, or that nobody could make."""
    if attack.threat != c.threat or len(attack) > budget:
        raise ValueError(f"an attack must be of at most {budget:,} {c.threat}")
    allowed = _OF_THREAT.get(c.threat, range(len(_PARTS)))
    lengths = _lengths(attack)
    if any(length and part not in allowed for part, length in enumerate(lengths)):
        raise ValueError(f"an attack does something else than {c.threat}")
    if any(
        getattr(attack, name).shape[:1] != (length,)
        for part, length in zip(_PARTS, lengths, strict=True)
        for name in part
    ):
        raise ValueError("the parts of an attack must be of the same length")
    for name in ("indices", "deleted"):
        own = getattr(attack, name)
        outside = own.size and (own.dtype != np.int64 or own.min() < 0 or own.max() >= c.n_labels)
        if own.ndim != 1 or outside or np.unique(own).size < own.size or own.size > c.n_attackable:
            raise ValueError(f"{name} of an attack must be different ones of the {c.n_labels:,} labels")
    if attack.sources.ndim != 1 or len(set(attack.sources.tolist())) < attack.sources.size:
        raise ValueError("sources of an attack must be different ones")
    if attack.inserted.dtype.kind not in "fiu" or attack.inserted.ndim != 2 or not np.isfinite(attack.inserted).all():
        raise ValueError("rows that an attack inserts must be of finite numbers")


def _lengths(attack: Witness | None) -> list[int]:
    """How many entries each part has; negative where there is no attack."""
    return [-1] * len(_PARTS) if attack is None else [len(getattr(attack, part[0])) for part in _PARTS]


def _end_to_end(attacks: list[Witness], name: str) -> NDArray[Any]:
    own = [getattr(attack, name) for attack in attacks]
    return np.concatenate([values for values in own if len(values)] or own[:1] or [getattr(_NOTHING, name)])


_NOTHING = Witness.of([])


def _attacks(
    lengths: NDArray[Any], joined: Mapping[str, NDArray[Any]], threat: str, n_labels: int
) -> list[Witness | None]:
    """The attacks of all budgets, from arrays in which they lie end to end."""
    if lengths.dtype != np.int64 or lengths.ndim != 2 or lengths.shape[1] != len(_PARTS):
        raise ValueError(f"{_LENGTHS} must say how long the parts of each attack are")
    known = lengths[:, 0] >= 0
    if np.any((lengths >= 0) != known[:, None]):
        raise ValueError(f"{_LENGTHS} must say of each attack whether it is known")
    ends = np.cumsum(np.where(known[:, None], lengths, 0), axis=0)
    for part, end in zip(_PARTS, ends[-1:].T.tolist(), strict=True):
        for name in part:
            if joined[name].ndim < 1 or joined[name].shape[:1] != tuple(end):
                raise ValueError(f"attack_{name} does not hold as much as the attacks have")
    attacks: list[Witness | None] = []
    for k in range(lengths.shape[0]):
        own: dict[str, Any] = {}
        for p, part in enumerate(_PARTS):
            own |= {name: joined[name][ends[k, p] - lengths[k, p] : ends[k, p]] for name in part}
        attacks.append(Witness(**own, threat=threat, n_labels=n_labels) if known[k] else None)
    return attacks


def _read_header(stored: NDArray[Any] | None) -> dict[str, Any]:
    form, told = told_in(stored)
    if form != _FORMAT:
        raise ValueError(f"its format is {short(form)}, and this version reads {_FORMAT!r}")
    if told.keys() != set(_TOLD) or any(type(told[name]) is not bool for name in ("counts_correct", "replayed")):
        raise ValueError(f"its header must tell {', '.join(_TOLD)}")
    if not isinstance(told["why_one_by_one"], str | None):
        raise ValueError("why_one_by_one must be words, or nothing")
    check_exposure(told)
    check_model(told["model"])
    return told
