"""The columns of certificates: what each of them holds, and how blocks of rows become certificates of a user.

Whatever works on all columns (joining, saving, tables, labels in place of class indices) asks here which there are. A
column is one field of :class:`flipcert.Certificates`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from flipcert.results.certificates import Certificates


# The field that holds the label space: labels, but one entry a class, not a point.
SPACE = "classes"


class Kind(Enum):
    """What the entries of a column are."""

    LABELS = "labels"
    RADII = "radii"
    FLAGS = "flags"


@dataclass(frozen=True)
class Column:
    """What is known about a column.

    Attributes
    ----------
    kind : Kind
        Labels are class indices until a user sees them, radii count what an attacker changes, flags are booleans.
    optional : bool
        Whether some models have no such column: it is None.
    gaps : bool
        Whether some points have no such label: the column is masked.
    """

    kind: Kind
    optional: bool = False
    gaps: bool = False


def holds(kind: Kind, *, optional: bool = False, gaps: bool = False) -> Mapping[str, Column]:
    """Metadata of a field that is a column."""
    return {"column": Column(kind, optional, gaps)}


def columns_of(certificates: Certificates | type[Certificates]) -> dict[str, Column]:
    """All columns by name, whether there or None."""
    return {own.name: own.metadata["column"] for own in fields(certificates) if "column" in own.metadata}


def values_of(certificates: Certificates) -> dict[str, NDArray[Any]]:
    """Values of the columns that are there."""
    values = {name: getattr(certificates, name) for name in columns_of(certificates)}
    return {name: own for name, own in values.items() if own is not None}


def header_of(certificates: Certificates | type[Certificates]) -> list[Field[Any]]:
    """Fields with plain values that are told once for all points."""
    return [own for own in fields(certificates) if "column" not in own.metadata and own.name != SPACE]


def certificates_of_blocks(
    blocks: Sequence[Certificates], classes: NDArray[Any], model: Mapping[str, Any], useful: int
) -> Certificates:
    """Certificates of all rows in the labels of the user, from blocks of rows in class indices.

    ``useful`` is how many units of the threat can have any effect.
    """
    return _in_user_labels(_joined(blocks), classes, model, useful)


def _joined(blocks: Sequence[Certificates]) -> Certificates:
    """The rows of all blocks; what is told once is the same in all of them."""
    columns = columns_of(blocks[0])
    joined: dict[str, Any] = {
        name: (np.ma.concatenate if columns[name].gaps else np.concatenate)([getattr(own, name) for own in blocks])
        for name in values_of(blocks[0])
    }
    return replace(blocks[0], **joined)


def _in_user_labels(
    certificates: Certificates, classes: NDArray[Any], model: Mapping[str, Any], useful: int
) -> Certificates:
    """Labels in place of class indices, and the largest radius where nothing that is possible changes anything."""
    columns, limit = columns_of(certificates), certificates.limit

    def lifted(radii: NDArray[np.int64]) -> NDArray[np.int64]:
        """Radii; who withstands all that can have an effect withstands any."""
        return np.where(radii >= useful, limit, radii)

    # What bounds alone call cheapest may be out of reach: a class is named only where an attack is known.
    beyond = lifted(certificates.radius_upper) == limit

    def shown(values: NDArray[Any], column: Column) -> Any:
        if column.kind is Kind.RADII:
            return lifted(values)
        if column.kind is Kind.FLAGS:
            return values
        if column.gaps:
            labels = classes[np.maximum(np.ma.getdata(values), 0)]
            return np.ma.masked_array(labels, mask=np.ma.getmaskarray(values) | beyond)
        return classes[values]

    seen = {name: shown(values, columns[name]) for name, values in values_of(certificates).items()}
    return replace(certificates, **seen, model=model, classes=classes)
