"""Certificates in a file: what is written there, and that nothing else is read."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.files import refuse_odd_files, whole_file
from flipcert.engine.npz import read_arrays

if TYPE_CHECKING:
    from flipcert.results.certificates import Certificates

_FORMAT, _FIRST_FORMAT = "flipcert-certificates-2", "flipcert-certificates-1"
_THREATS = ("flips",)
_LABELS = ("prediction", "runner_up", "target")
_RADII = ("radius", "radius_upper", "blackbox_radius")
# Kinds of labels, as NumPy calls them: booleans, numbers, strings, bytes, dates; and those that are Python's objects.
_PLAIN, _OBJECTS = "biufUSmM", "OT"


def write_certificates(
    path: str | os.PathLike[str], certificates: Certificates, columns: Mapping[str, Any], header: Mapping[str, Any]
) -> None:
    """Write columns and what is told once for all of them; what could not be read again is refused."""
    arrays = {name: np.ma.getdata(values) for name, values in columns.items() if values is not None}
    try:
        check_certificates(certificates, exceeding=True)
        _check_model(header["model"])
        arrays |= _storable_labels({name: arrays[name] for name in _LABELS})
    except ValueError as error:
        raise ValueError(f"these certificates cannot be saved: {error}.") from None
    arrays["target_missing"] = np.ma.getmaskarray(certificates.target)
    # The formula of a paper may say more than is true. Only a file that says so may hold a radius above a known attack.
    exceeding = bool(np.any(certificates.radius > certificates.radius_upper))
    arrays["header"] = np.array(json.dumps({"format": _FORMAT, **header, "radius_exceeds_upper": exceeding}))
    with whole_file(path) as file:
        np.savez_compressed(file, **cast(dict[str, Any], arrays))


def read_certificates(
    kind: type[Certificates], path: str | os.PathLike[str], columns: Collection[str], header: Collection[str]
) -> Certificates:
    """Read certificates, which have these columns and this header; a ValueError if the file holds anything else."""
    refuse_odd_files(path)
    with open(path, "rb") as file:
        try:
            arrays = read_arrays(file)
            told = _read_header(arrays.pop("header", None), header)
            exceeding = told.pop("radius_exceeds_upper")
            names = {*columns, "target_missing"}
            if names - arrays.keys() - {"blackbox_radius"} or arrays.keys() - names:
                raise ValueError(f"it does not hold just the arrays {', '.join(sorted(names))}")
            arrays["target"] = _masked(arrays["target"], arrays.pop("target_missing"))
            certificates = kind(**{"blackbox_radius": None} | cast(dict[str, Any], arrays), **told)
            check_certificates(certificates, exceeding)
        except ValueError as error:
            raise ValueError(f"path={os.fspath(path)!r} is not a file of saved certificates: {error}.") from error
    return certificates


def check_certificates(certificates: Certificates, exceeding: bool = False) -> None:
    """Refuse what cannot be certificates; ``exceeding``: a radius may be above the smallest known attack."""
    c = certificates
    radii = {name: getattr(c, name) for name in _RADII if getattr(c, name) is not None}
    labels = {name: getattr(c, name) for name in _LABELS}
    for name, values in {**radii, **labels, "rounding_sensitive": c.rounding_sensitive}.items():
        if values.ndim != 1 or values.size != c.radius.size:
            raise ValueError(f"{name} has shape {values.shape}, and radius {c.radius.shape}, not one value a point")
    for name, values in radii.items():
        if values.dtype != np.int64 or np.any(values < 0) or np.any(values > c.limit):
            raise ValueError(f"{name} must hold whole numbers from 0 to {c.limit:,}")
    if not exceeding and np.any(c.radius > c.radius_upper):
        raise ValueError("a radius is above radius_upper")
    if c.rounding_sensitive.dtype != np.bool_:
        raise ValueError("rounding_sensitive must hold booleans")
    if np.ma.is_masked(c.prediction) or np.ma.is_masked(c.runner_up):
        raise ValueError("only a target may be missing")
    if len({values.dtype.kind for values in labels.values()}) > 1:
        raise ValueError("prediction, runner_up and target must hold labels of the same kind")
    for name, values in labels.items():
        _check_labels(name, np.ma.getdata(values))


def _check_labels(name: str, labels: NDArray[Any]) -> None:
    if labels.dtype.kind not in _PLAIN + _OBJECTS:
        raise ValueError(f"{name} holds {labels.dtype}; labels must be numbers, booleans or strings")
    if labels.dtype.kind in "fmM" and np.any(labels != labels):
        raise ValueError(f"{name} holds a label that is no number or no date")
    if labels.dtype.kind == "U":
        try:
            "".join(labels.tolist()).encode()
        except ValueError:
            raise ValueError(f"{name} holds characters that do not exist") from None


def _masked(values: NDArray[Any], missing: NDArray[Any]) -> np.ma.MaskedArray[Any, Any]:
    if missing.dtype != np.bool_ or missing.shape != values.shape:
        raise ValueError("target_missing must say of each target whether it is missing")
    return np.ma.masked_array(values, mask=missing)


def _read_header(stored: NDArray[Any] | None, names: Collection[str]) -> dict[str, Any]:
    """What is told once for all points."""
    try:
        told = json.loads(str(stored))
        form = told.pop("format")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError("it has no header") from None
    if form == _FIRST_FORMAT:
        raise ValueError("an earlier version wrote it and did not say how many labels can be attacked; certify again")
    if form != _FORMAT:
        raise ValueError(f"its format is {short(form)}, and this version reads {_FORMAT!r}")
    if told.keys() != {*names, "radius_exceeds_upper"} or type(told["radius_exceeds_upper"]) is not bool:
        raise ValueError(f"its header must tell {', '.join(names)} and radius_exceeds_upper")
    n_labels, n_attackable = told["n_labels"], told["n_attackable"]
    if type(n_labels) is not int or type(n_attackable) is not int or not 0 <= n_attackable <= n_labels < 2**62:
        raise ValueError(f"{short(n_attackable)} of {short(n_labels)} labels cannot be those to attack")
    if told["threat"] not in _THREATS:
        raise ValueError(f"this version does not know the threat {short(told['threat'])}")
    _check_model(told["model"])
    return cast(dict[str, Any], told)


def _check_model(described: Any) -> None:
    """Refuse a description of a model that is not names of parameters with plain values, or lists of them."""
    if not isinstance(described, dict) or not all(isinstance(name, str) for name in described):
        raise ValueError(f"model must map names to plain values, and is {short(described)}")
    for name, value in described.items():
        if not _is_plain(value):
            raise ValueError(
                f"model must hold numbers, strings, booleans, None or lists, not {short(value)} for {name!r}"
            )
    partitions = described.get("partitions", 1)
    if type(partitions) is not int or partitions < 1:
        raise ValueError(f"model must name a number of partitions that is at least 1, not {short(partitions)}")


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _storable_labels(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Labels of all columns as arrays that need no pickle, and from which they come back as they are."""
    together = np.concatenate(list(columns.values()))
    if together.dtype.kind in _OBJECTS:
        together = _told_apart(together.tolist())
    return dict(zip(columns, np.split(together, len(columns)), strict=True))


def _told_apart(labels: list[Any]) -> NDArray[Any]:
    """Labels that are Python's objects as an array of NumPy, in which 1 and "1" would be the same."""
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    for label in labels:
        if type(label) not in (str, bool, int, float):
            raise ValueError(f"labels must be numbers, booleans or strings; got {short(label)}")
    stored = np.array(labels or [""])[: len(labels)]
    if stored.dtype.kind not in _PLAIN:
        raise ValueError("a label is a whole number of more than 64 bits")
    for label, back in zip(labels, stored.tolist(), strict=True):
        if type(label) is not type(back) or label != back:
            raise ValueError(f"the label {short(label)} would come back as {short(back)}; use labels of one kind")
    _check_labels("prediction, runner_up or target", stored)
    return stored
