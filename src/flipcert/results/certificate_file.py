"""Certificates in a file: what is written there, and that nothing else is read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from flipcert.results.columns import SPACE, Kind, columns_of, header_of, values_of
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

if TYPE_CHECKING:
    from flipcert.results.certificates import Certificates

    Own = TypeVar("Own", bound=Certificates)

_FORMAT, _FIRST_FORMAT = "flipcert-certificates-2", "flipcert-certificates-1"


def write_certificates(path: str | os.PathLike[str], certificates: Certificates) -> None:
    """Write a file of certificates; what could not be read again is refused."""
    write_stored(path, arrays_of(certificates))


def read_certificates(kind: type[Own], path: str | os.PathLike[str]) -> Own:
    """Read a file of certificates; a ValueError if it holds anything else."""
    return read_stored(path, lambda arrays: certificates_of(kind, arrays), "saved certificates")


def arrays_of(certificates: Certificates) -> dict[str, NDArray[Any]]:
    """Certificates as arrays by name, none of which needs a pickle: columns, their gaps, and a header in JSON."""
    columns, values = columns_of(certificates), values_of(certificates)
    header = {own.name: getattr(certificates, own.name) for own in header_of(certificates)}
    header["model"] = dict(certificates.model)
    arrays = {name: np.ma.getdata(own) for name, own in values.items()}
    try:
        check_certificates(certificates, exceeding=True)
        check_model(header["model"])
        labels = {name: own for name, own in arrays.items() if columns[name].kind is Kind.LABELS}
        space = {} if certificates.classes is None else {SPACE: certificates.classes}
        arrays |= storable_labels(labels | space)
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
        raise ValueError(f"only a {listed([name for name in columns if columns[name].gaps], 'or')} may be missing")
    if len({own.dtype.kind for own in labels.values()}) > 1:
        raise ValueError(f"{listed(list(labels), 'and')} must hold labels of the same kind")
    for name, own in labels.items():
        check_labels(name, np.ma.getdata(own))
    if c.classes is not None:
        check_space(c.classes, labels)


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
    form, told = told_in(stored)
    if form == _FIRST_FORMAT:
        raise ValueError("an earlier version wrote it and did not say how many labels can be attacked; certify again")
    if form != _FORMAT:
        raise ValueError(f"its format is {short(form)}, and this version reads {_FORMAT!r}")
    whole = told.keys() | later == {*names, "radius_exceeds_upper"}
    if not whole or type(told["radius_exceeds_upper"]) is not bool:
        raise ValueError(f"its header must tell {', '.join(names)} and radius_exceeds_upper")
    check_exposure(told)
    check_model(told["model"])
    return told
