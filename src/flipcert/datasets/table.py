"""Features and labels as read from a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from flipcert.datasets.spelling import first_missing, text_of_labels
from flipcert.engine.mapped import is_large, mapped_rows, row_pieces
from flipcert.engine.words import plural

# Whole numbers up to here are doubles; beyond, several share one.
LARGEST_WHOLE = 2**53


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of features, with their labels where the file has them.

    Attributes
    ----------
    source : str
        Where it was read from, for messages.
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        Features, float32 or float64.
    y : ndarray of shape (n_rows,) or None
        Labels.
    names : tuple of str or None
        Names of the features, if the file has them.
    trusted : ndarray of bool or None
        Which labels are trusted, if the file says so.
    givers : ndarray or None
        Who gave each label, if the file says so: the ids of sources.
    ids : ndarray or None
        What each row is called, if the file says so.
    rows : ndarray of int64 or None
        The row of each label, where rows have several: labels, trust and givers then have one entry a label, not a row.
    cap : int or None
        Labels that a source may have until each of them counts less, where rows have several.
    spelled : bool
        Whether labels that are numbers were text that they are the only spelling of, so that they can be text again.
    texts : mapping of str to ndarray of object
        Columns of text that are going to be encoded, by their names; None where a text is missing.
    gaps : bool
        Whether missing numbers (nan) are going to be filled in.
    tabular : bool
        Whether features are columns with a meaning of their own, and not vectors or the columns of an array.
    prepared : mapping of str to Any
        What was done to the features before any scaling, without labels: :mod:`flipcert.datasets.preparation` says how.
    kinds : mapping of str to str
        What each column of the file holds, in their order, where all of them were asked for.
    different : mapping of str to int
        Then also the number of different values of columns of whole numbers that doubles cannot tell apart.
    """

    source: str
    X: NDArray[Any]
    y: NDArray[Any] | None
    names: tuple[str, ...] | None = None
    trusted: NDArray[np.bool_] | None = None
    spelled: bool = False
    givers: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None
    rows: NDArray[np.int64] | None = None
    cap: int | None = None
    texts: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    gaps: bool = False
    tabular: bool = False
    prepared: Mapping[str, Any] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    different: Mapping[str, int] = field(default_factory=dict)

    @property
    def n_labels(self) -> int:
        """Number of labels: one a row, unless rows have several."""
        return self.X.shape[0] if self.rows is None else self.rows.size

    def checked(self) -> Table:
        """The same table, if it can be used: finite numbers in rows and columns, one label for each row."""
        X = self._checked_features()
        if X.shape[0] == 0 or (X.shape[1] == 0 and not self.texts):
            what = "rows" if X.shape[0] == 0 else "features"
            raise ValueError(f"{self.source} has no {what}; it must hold at least one.")
        y = None if self.y is None else self._checked_labels(X.shape[0])
        if self.trusted is not None and (self.trusted.dtype != np.bool_ or self.trusted.shape != (X.shape[0],)):
            numbers = "; write true instead of 1, and false instead of 0" if self.trusted.dtype.kind in "iuf" else ""
            raise ValueError(
                f"the trusted column of {self.source} must hold true or false for each of its "
                f"{plural(X.shape[0], 'row')}; got shape {self.trusted.shape} of type {self.trusted.dtype}{numbers}."
            )
        givers, ids = (self._checked_ids(own, what) for own, what in ((self.givers, "source"), (self.ids, "id")))
        return replace(self, X=X, y=y, givers=givers, ids=ids)

    def _checked_ids(self, ids: NDArray[Any] | None, what: str) -> NDArray[Any] | None:
        """Ids of sources or of rows, one each; text, numbers or dates."""
        if ids is None:
            return None
        ids = np.char.decode(ids, "utf-8", "replace") if ids.dtype.kind == "S" else ids
        if ids.shape != (self.X.shape[0],):
            raise ValueError(
                f"{self.source} has {plural(self.X.shape[0], 'row')}, but a column of {what}s of shape {ids.shape}; "
                f"give one {what} a row."
            )
        if ids.dtype.kind not in "fiubUmM":
            raise ValueError(f"the {what}s of {self.source} must be text or numbers; got type {ids.dtype}.")
        row = None
        if ids.dtype.kind == "U":
            row = first_missing(ids)
        elif ids.dtype.kind in "fmM" and (missing := ids != ids).any():
            row = int(missing.argmax())
        if row is not None:
            raise ValueError(no_id(self.source, what, row))
        return ids

    def aligned_to(self, train: Table) -> Table:
        """The same table with its features in the order of the training table, matched by name if both have names."""
        if self.names is not None and train.names is not None:
            self._check_columns(self.names, train, train.names)
        if self.names is not None and train.names is not None and self.names != train.names:
            order = [self.names.index(name) for name in train.names]
            return replace(self, X=np.ascontiguousarray(self.X[:, order]), names=train.names)
        if self.X.shape[1] != train.X.shape[1]:
            raise ValueError(
                f"{self.source} has {plural(self.X.shape[1], 'feature')}, but {train.source} has {train.X.shape[1]:,}; "
                "both must have the same."
            )
        return self

    def _check_columns(self, names: tuple[str, ...], train: Table, others: tuple[str, ...]) -> None:
        """Raise ValueError unless the training table has the same columns of numbers, and of text."""
        for name in (*others, *train.texts):
            if name in (names if name in train.texts else self.texts):
                kinds = ("numbers", "text") if name in train.texts else ("text", "numbers")
                raise ValueError(
                    f"column {name!r} of {self.source} holds {kinds[0]}, and that of {train.source} {kinds[1]}; "
                    "make them alike."
                )
            if name not in names and name not in self.texts:
                raise ValueError(f"{self.source} has no column {name!r}, which {train.source} has.")
        extra = [name for name in (*names, *self.texts) if name not in others and name not in train.texts]
        if extra:
            raise ValueError(f"{self.source} has a column {extra[0]!r}, which {train.source} has not.")

    def with_labels_like(self, other: Table) -> Table:
        """The same table, its labels as text if those of the other one are text and these were spelled so."""
        if self.y is None or other.y is None or not self.spelled or other.y.dtype.kind != "U":
            return self
        return replace(self, y=text_of_labels(self.y))

    def _checked_features(self) -> NDArray[Any]:
        X: Any = self.X
        if X.ndim != 2:
            raise ValueError(
                f"the features of {self.source} have shape {X.shape}; they must be a matrix, one row a sample "
                "(flatten images, and give their shape)."
            )
        if X.dtype.kind not in "fiub":
            raise ValueError(f"the features of {self.source} must be numbers; got values of type {X.dtype}.")
        if issparse(X):
            self._refuse_sparse(X.tocoo())
            return X
        # In pieces: the features may be larger than memory.
        for place, rows in row_pieces(X) if X.dtype.kind in "iu" else ():
            check_exact(rows, self.source, self.names, place.start)
        precision = np.float32 if X.dtype in (np.float16, np.float32) else np.float64
        if is_large(X, precision) and not (X.dtype == precision and X.flags.c_contiguous):
            X = mapped_rows(lambda rows: rows, X, X.shape[1], precision)
        X = X.astype(precision, copy=False)
        for place, rows in row_pieces(X):
            wrong = np.argwhere(np.isinf(rows) if self.gaps else ~np.isfinite(rows))
            if wrong.size:
                row, column = wrong[0] + (place.start, 0)
                raise self._not_finite(X[row, column], row, column)
        return X

    def _refuse_sparse(self, entries: Any) -> None:
        """Raise ValueError if an entry of sparse features is not finite."""
        wrong = np.flatnonzero(~np.isfinite(entries.data))
        if wrong.size:
            raise self._not_finite(*(own[wrong[0]] for own in (entries.data, entries.row, entries.col)))

    def _not_finite(self, value: float, row: int, column: int) -> ValueError:
        name = repr(self.names[column]) if self.names else str(column)
        return ValueError(
            f"{self.source} has {value} in row {row}, column {name}; fill in or drop what is missing or infinite."
        )

    def _checked_labels(self, n_rows: int) -> NDArray[Any]:
        y = np.asarray(self.y)
        if y.shape != (n_rows,):
            raise ValueError(
                f"{self.source} has {plural(n_rows, 'row')}, but labels of shape {y.shape}; give one label a row."
            )
        if y.dtype.kind == "S":
            try:
                y = np.char.decode(y, "utf-8")
            except UnicodeDecodeError:
                raise ValueError(f"the labels of {self.source} are bytes that are no UTF-8 text; save text.") from None
        if y.dtype.kind not in "fiubU":
            raise ValueError(f"the labels of {self.source} must be numbers or strings; got type {y.dtype}.")
        missing = ~np.isfinite(y) if y.dtype.kind == "f" else y == "" if y.dtype.kind == "U" else np.zeros(n_rows, bool)
        if missing.any():
            raise no_label(self.source, missing)
        if y.dtype.kind == "f" and (y != np.floor(y)).any():
            raise ValueError(
                f"the labels of {self.source} are fractions, such as {y[y != np.floor(y)][0]}; labels are classes, so "
                "give whole numbers or words."
            )
        return y


def no_label(source: str, missing: NDArray[np.bool_], first_row: int = 0) -> ValueError:
    """What to say about rows without a label."""
    row = first_row + int(missing.argmax())
    if (count := int(missing.sum())) == 1:
        return ValueError(f"{source} has no label in row {row}; fill it in or drop the row.")
    return ValueError(
        f"{source} has no label in row {row}, and in {count - 1:,} more; fill them in or drop these rows."
    )


def no_id(source: str, what: str, row: int) -> str:
    """What to say about a row without an id."""
    if what == "source":
        return (
            f"{source} has no source in row {row}; give labels of unknown origin an id of their own, or one in common."
        )
    return f"{source} has no {what} in row {row}; fill it in or drop the row."


def check_exact(X: NDArray[Any], source: str, names: tuple[str, ...] | None = None, first_row: int = 0) -> None:
    """Refuse whole numbers that doubles cannot tell apart."""
    if X.dtype.kind not in "iu" or X.dtype.itemsize < 8:
        return
    wrong = np.argwhere((X > LARGEST_WHOLE) | (X < -LARGEST_WHOLE))
    if wrong.size:
        row, column = wrong[0]
        raise too_large(source, X[row, column], first_row + row, repr(names[column]) if names else str(column))


def is_inexact(text: str) -> bool:
    """Whether a text spells a whole number that doubles cannot tell from its neighbours."""
    found = re.fullmatch(r"\s*[+-]?0*(\d+)\s*", text)
    return found is not None and (len(found[1]) > 16 or int(found[1]) > LARGEST_WHOLE)


def too_large(source: str, value: object, row: int, column: str) -> ValueError:
    """What to say about a whole number that doubles cannot tell from its neighbours."""
    return ValueError(
        f"{source} has {value} in row {row}, column {column}; features are doubles, which cannot tell whole numbers "
        "beyond 2**53 apart, so drop the column (an identifier?) or scale it down."
    )
