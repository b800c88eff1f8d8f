"""Certificates in a file: what is written there, and that nothing else is read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.files import refuse_odd_files, whole_file
from flipcert.engine.npz import read_arrays
from flipcert.labels.threats import SOURCES, THREATS
from flipcert.results.columns import SPACE, Kind, columns_of, header_of, values_of

if TYPE_CHECKING:
    from flipcert.results.certificates import Certificates

    Own = TypeVar("Own", bound=Certificates)

_FORMAT, _FIRST_FORMAT = "flipcert-certificates-2", "flipcert-certificates-1"
# Kinds of labels, as NumPy calls them: booleans, numbers, strings, bytes, dates; and those that are Python's objects.
_PLAIN, _OBJECTS = "biufUSmM", "OT"


def write_certificates(path: str | os.PathLike[str], certificates: Certificates) -> None:
    """Write a file of certificates; what could not be read again is refused."""
    arrays = arrays_of(certificates)
    with whole_file(path) as file:
        np.savez_compressed(file, **cast(dict[str, Any], arrays))


def read_certificates(kind: type[Own], path: str | os.PathLike[str]) -> Own:
    """Read a file of certificates; a ValueError if it holds anything else."""
    refuse_odd_files(path)
    with open(path, "rb") as file:
        try:
            return certificates_of(kind, read_arrays(file))
        except ValueError as error:
            raise ValueError(f"path={os.fspath(path)!r} is not a file of saved certificates: {error}.") from error


def arrays_of(certificates: Certificates) -> dict[str, NDArray[Any]]:
    """Certificates as arrays by name, none of which needs a pickle: columns, their gaps, and a header in JSON."""
    columns, values = columns_of(certificates), values_of(certificates)
    header = {own.name: getattr(certificates, own.name) for own in header_of(certificates)}
    header["model"] = dict(certificates.model)
    arrays = {name: np.ma.getdata(own) for name, own in values.items()}
    try:
        check_certificates(certificates, exceeding=True)
        _check_model(header["model"])
        labels = {name: own for name, own in arrays.items() if columns[name].kind is Kind.LABELS}
        space = {} if certificates.classes is None else {SPACE: certificates.classes}
        arrays |= _storable_labels(labels | space)
    except ValueError as error:
        raise ValueError(f"these certificates cannot be saved: {error}.") from None
    arrays |= {_gaps_of(name): np.ma.getmaskarray(own) for name, own in values.items() if columns[name].gaps}
    # The formula of a paper may say more than is true. Only a file that says so may hold a radius above a known attack.
    exceeding = bool(np.any(certificates.radius > certificates.radius_upper))
    arrays["header"] = np.array(json.dumps({"format": _FORMAT, **header, "radius_exceeds_upper": exceeding}))
    return arrays


def certificates_of(kind: type[Own], arrays: Mapping[str, NDArray[Any]]) -> Own:
    """Certificates from such arrays, wherever they come from; a ValueError if they are none."""
    columns = columns_of(kind)
    told = _read_header(arrays.get("header"), kind)
    exceeding = told.pop("radius_exceeds_upper")
    names = {*columns, *(_gaps_of(name) for name, column in columns.items() if column.gaps)}
    optional = {name for name, column in columns.items() if column.optional}
    optional |= {_gaps_of(name) for name in optional}
    if names - arrays.keys() - optional or arrays.keys() - names - {"header", SPACE}:
        raise ValueError(f"it does not hold just the arrays {', '.join(sorted(names))}")
    values: dict[str, Any] = {name: arrays.get(name) for name in columns}
    for name, column in columns.items():
        if column.gaps and values[name] is not None:
            values[name] = _masked(name, values[name], arrays.get(_gaps_of(name)))
    certificates = kind(**values, **told, classes=arrays.get(SPACE))
    check_certificates(certificates, exceeding)
    return certificates


def check_certificates(certificates: Certificates, exceeding: bool = False) -> None:
    """Refuse what cannot be certificates; ``exceeding``: a radius may be above the smallest known attack."""
    c, columns, values = certificates, columns_of(certificates), values_of(certificates)
    radii, labels, flags = (
        {name: own for name, own in values.items() if columns[name].kind is kind}
        for kind in (Kind.RADII, Kind.LABELS, Kind.FLAGS)
    )
    for name, own in {**radii, **labels, **flags}.items():
        if own.ndim != 1 or own.size != c.radius.size:
            raise ValueError(f"{name} has shape {own.shape}, and radius {c.radius.shape}, not one value a point")
    for name, own in radii.items():
        if own.dtype != np.int64 or np.any(own < 0) or np.any(own > c.limit):
            raise ValueError(f"{name} must hold whole numbers from 0 to {c.limit:,}")
    if not exceeding and np.any(c.radius > c.radius_upper):
        raise ValueError("a radius is above radius_upper")
    for name, own in flags.items():
        if own.dtype != np.bool_:
            raise ValueError(f"{name} must hold booleans")
    if any(np.ma.is_masked(own) and not columns[name].gaps for name, own in labels.items()):
        raise ValueError(f"only a {_listed([name for name in columns if columns[name].gaps], 'or')} may be missing")
    if len({own.dtype.kind for own in labels.values()}) > 1:
        raise ValueError(f"{_listed(list(labels), 'and')} must hold labels of the same kind")
    for name, own in labels.items():
        _check_labels(name, np.ma.getdata(own))
    if c.classes is not None:
        _check_space(c.classes, labels)


def _check_space(classes: NDArray[Any], labels: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a label space that does not hold the labels, each class once."""
    if classes.ndim != 1 or classes.dtype.kind != labels["prediction"].dtype.kind:
        raise ValueError(f"{SPACE} must be one list of labels of the same kind as prediction")
    _check_labels(SPACE, classes)
    known = set(classes.tolist())
    if len(known) != classes.size:
        raise ValueError(f"{SPACE} names a label twice")
    for name, own in labels.items():
        if not known.issuperset(np.ma.compressed(own).tolist()):
            raise ValueError(f"{name} holds a label that is not among {SPACE}")


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


def _gaps_of(name: str) -> str:
    """Name of the array that says where a column has gaps."""
    return f"{name}_missing"


def _masked(name: str, values: NDArray[Any], missing: NDArray[Any] | None) -> np.ma.MaskedArray[Any, Any]:
    if missing is None or missing.dtype != np.bool_ or missing.shape != values.shape:
        raise ValueError(f"{_gaps_of(name)} must say of each {name} whether it is missing")
    return np.ma.masked_array(values, mask=missing)


def _read_header(stored: NDArray[Any] | None, kind: type[Certificates]) -> dict[str, Any]:
    """What is told once for all points; what is keyword-only came later, and files from before do not tell it."""
    names = [own.name for own in header_of(kind)]
    later = {own.name for own in header_of(kind) if own.kw_only}
    try:
        told = json.loads(str(stored))
        form = told.pop("format")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError("it has no header") from None
    if form == _FIRST_FORMAT:
        raise ValueError("an earlier version wrote it and did not say how many labels can be attacked; certify again")
    if form != _FORMAT:
        raise ValueError(f"its format is {short(form)}, and this version reads {_FORMAT!r}")
    whole = told.keys() | later == {*names, "radius_exceeds_upper"}
    if not whole or type(told["radius_exceeds_upper"]) is not bool:
        raise ValueError(f"its header must tell {', '.join(names)} and radius_exceeds_upper")
    n_labels, n_attackable = told["n_labels"], told["n_attackable"]
    if type(n_labels) is not int or type(n_attackable) is not int or not 0 <= n_attackable <= n_labels < 2**62:
        raise ValueError(f"{short(n_attackable)} of {short(n_labels)} labels cannot be those to attack")
    if told["threat"] not in tuple(THREATS):
        raise ValueError(f"this version does not know the threat {short(told['threat'])}")
    n_sources = told.get("n_sources")
    if n_sources is None and told["threat"] == SOURCES.name:
        raise ValueError("its radii count sources, but it does not say how many there are")
    if n_sources is not None and (type(n_sources) is not int or not 1 <= n_sources <= n_labels):
        raise ValueError(f"{n_labels} labels cannot come from {short(n_sources)} sources")
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
        together = _told_apart(together.tolist(), _listed(list(columns), "or"))
    ends = np.cumsum([labels.size for labels in columns.values()])
    return dict(zip(columns, np.split(together, ends[:-1]), strict=True))


def _told_apart(labels: list[Any], names: str) -> NDArray[Any]:
    """Labels of these columns that are Python's objects as an array of NumPy, in which 1 and "1" would be the same."""
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
    _check_labels(names, stored)
    return stored


def _listed(names: list[str], last: str) -> str:
    """Names in a sentence: one, two and three."""
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
