"""Annotations: several labels a row, each with a source and a weight. They are what a user passes as ``y``."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, column_or_1d

from flipcert.engine.words import plural
from flipcert.labels.sources import Sources, check_sources
from flipcert.labels.validation import check_integers, check_mask, check_number, refuse_masked

# Sources that a message names, at most.
_NAMED = 5


class Annotations:
    """Several labels a row, to be passed as ``y`` to ``fit`` of a label-linear model, or of an ensemble of them.

    Each row is fitted to the weighted mean of its labels, so every label counts by itself: flips, ``trusted``,
    ``n_labels`` and the indices of a witness are about annotations, not about rows. Weights must not depend on labels
    under attack, or the certificate is void; those of a row are scaled to add up to 1. What is certified is the model
    whose weights are the stored numbers: the weight of the row times the scaled weight of the annotation, rounded once.

    Labels that were made *before* training from several others, by a majority vote for example, do not add up: a
    certificate for them counts the labels that came out of the vote, and says nothing about those that went into it.

    Parameters
    ----------
    row : array-like of int of shape (n_annotations,)
        Row of X that each annotation is about, counted from 0; every row of X needs at least one.
    label : array-like of shape (n_annotations,)
        Its labels, of any type.
    source : array-like of shape (n_annotations,), optional
        Who gave each label; ``threat="sources"`` counts these.
    weight : array-like of float of shape (n_annotations,), optional
        How much each label counts beside the others of its row, 0 or more; all the same by default. An annotation of
        weight 0 still names a class.
    trusted : array-like of bool of shape (n_annotations,), optional
        Annotations that an attacker cannot change.

    Attributes
    ----------
    row, label, weight, trusted : ndarray
        As given, and read-only; None for what was not.
    source : ndarray or None
        As given.
    share : ndarray of float64 of shape (n_annotations,)
        Weights that add up to 1 in each row.
    n_rows : int
        Number of rows.

    See Also
    --------
    KernelRidge : One of the models that take it as ``y``.

    Examples
    --------
    >>> import flipcert
    >>> X = [[0.0], [1.0], [3.0], [4.0]]
    >>> who = ["ann", "bob", "cid"]
    >>> votes = flipcert.Annotations(
    ...     row=[0, 0, 0, 1, 1, 2, 2, 2, 3, 3],
    ...     label=["no", "no", "yes", "no", "no", "yes", "yes", "no", "yes", "yes"],
    ...     source=who + who[:2] + who + who[1:],
    ... )
    >>> votes
    Annotations(10 labels of 4 rows by 3 sources)
    >>> model = flipcert.KernelRidge("rbf", classes=["no", "yes"]).fit(X, votes)
    >>> model.certify([[0.5]]).radius, model.certify([[0.5]], threat="sources").radius
    (array([1]), array([0]))
    """

    row: NDArray[np.int64]
    label: NDArray[Any]
    sources: Sources | None
    weight: NDArray[np.float64] | None
    trusted: NDArray[np.bool_] | None
    share: NDArray[np.float64]

    def __init__(
        self,
        row: ArrayLike,
        label: ArrayLike,
        source: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        trusted: ArrayLike | None = None,
    ) -> None:
        rows = check_integers(row, "row", minimum=0, ndim=1)
        n_annotations = rows.size
        if n_annotations == 0:
            raise ValueError("row is empty; give at least one annotation.")
        for name, given in (("label", label), ("source", source), ("weight", weight), ("trusted", trusted)):
            _refuse_other_length(given, name, n_annotations)
        weights = None if weight is None else _read_weights(weight)
        self._hold(
            row=rows,
            label=_read_labels(label),
            sources=check_sources(source, n_annotations),
            weight=weights,
            trusted=check_mask(trusted, n_annotations),
            share=_scaled(rows, weights),
        )

    def _hold(self, **parts: Any) -> None:
        """Keep what these annotations consist of, once and for all; of arrays, copies."""
        for name, part in parts.items():
            self.__dict__[name] = _kept(part) if isinstance(part, np.ndarray) else part

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} of Annotations cannot be set; make others, or take relabelled(label).")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} of Annotations cannot be deleted.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays arrive writable from elsewhere.
        self.__dict__.update(state)
        for part in state.values():
            if isinstance(part, np.ndarray):
                part.flags.writeable = False

    @classmethod
    def capped(
        cls, row: ArrayLike, label: ArrayLike, source: ArrayLike, cap: float = 100, trusted: ArrayLike | None = None
    ) -> Self:
        """Annotations whose sources have less weight a label the more labels they gave: ``1 / max(labels, cap)``.

        Who gave very many labels would otherwise be the one to attack. How many a source gave does not depend on what
        they say, so the weights are label-free.

        Parameters
        ----------
        row, label, source, trusted
            As above; the source is needed.
        cap : float, default=100
            Sources with at most so many labels have weight alike.

        Returns
        -------
        Annotations

        Examples
        --------
        >>> import flipcert
        >>> votes = flipcert.Annotations.capped(
        ...     row=[0, 1, 2, 2],
        ...     label=["no", "no", "yes", "no"],
        ...     source=["ann", "ann", "ann", "bob"],
        ...     cap=2,
        ... )
        >>> votes.weight
        array([0.33333333, 0.33333333, 0.33333333, 0.5       ])
        """
        most = check_number(cap, "cap")
        if source is None:
            raise ValueError("source must name who gave each label, as weights are capped by source; got None.")
        n_annotations = check_integers(row, "row", minimum=0, ndim=1).size
        _refuse_other_length(source, "source", n_annotations)
        sources = check_sources(source, n_annotations)
        assert sources is not None
        return cls(row, label, source, 1.0 / np.maximum(sources.sizes, most)[sources.codes], trusted)

    @property
    def source(self) -> NDArray[Any] | None:
        """Who gave each label, as named by the user."""
        return None if self.sources is None else self.sources.ids[self.sources.codes]

    @cached_property
    def n_rows(self) -> int:
        """Number of rows that have labels."""
        return int(self.row.max()) + 1

    def require_rows(self, n_rows: int) -> None:
        """Raise ValueError unless these are annotations of so many rows, all of them.

        Parameters
        ----------
        n_rows : int
            Number of rows of X.
        """
        if self.n_rows > n_rows:
            raise ValueError(
                f"row must hold whole numbers from 0 to {n_rows - 1}, as X has {plural(n_rows, 'row')}; got "
                f"{self.n_rows - 1}."
            )
        missing = np.flatnonzero(np.bincount(self.row, minlength=n_rows) == 0)
        if missing.size:
            raise ValueError(
                f"every row of X needs an annotation, and {missing.size} of {n_rows} have none, row {missing[0]} "
                "first; leave rows without labels out of X."
            )

    def relabelled(self, label: ArrayLike) -> Annotations:
        """The same annotations with other labels, as :meth:`flipcert.Witness.apply` returns them.

        Parameters
        ----------
        label : array-like of shape (n_annotations,)
            The labels.

        Returns
        -------
        Annotations

        Examples
        --------
        >>> import flipcert
        >>> votes = flipcert.Annotations(row=[0, 0, 1], label=["no", "yes", "yes"])
        >>> votes.relabelled(["no", "no", "yes"]).label
        array(['no', 'no', 'yes'], dtype='<U3')
        """
        _refuse_other_length(label, "label", len(self))
        other = copy(self)
        other._hold(label=_read_labels(label))
        return other

    def some(self, chosen: NDArray[np.int64], partition: int) -> tuple[Annotations, NDArray[np.int64]]:
        """Some of the annotations by themselves, and the rows that these are about.

        Rows are counted anew, in the order they had, and weights of a row add up to 1 again. Rows of which all chosen
        annotations have weight 0 are none of these rows: they add nothing to a score, but name classes.

        Parameters
        ----------
        chosen : ndarray of int64
            Places of annotations.
        partition : int
            What to call them where they cannot be used.

        Returns
        -------
        annotations : Annotations
        rows : ndarray of int64
        """
        row = self.row[chosen]
        rows = np.unique(row if self.weight is None else row[self.weight[chosen] > 0])
        if rows.size == 0:
            raise ValueError(
                f"weight is 0 for all annotations of partition {partition}{self._whose(chosen)}; leave their sources "
                "out, or merge them with others."
            )
        place = np.minimum(np.searchsorted(rows, row), rows.size - 1)
        row = np.where(rows[place] == row, place, 0)
        sources = self.sources
        if sources is not None:
            own, codes = np.unique(sources.codes[chosen], return_inverse=True)
            sources = Sources(sources.ids[own], codes)
        weight = None if self.weight is None else self.weight[chosen]
        part = copy(self)
        part.__dict__.pop("n_rows", None)
        part._hold(
            row=row,
            label=self.label[chosen],
            sources=sources,
            weight=weight,
            trusted=None if self.trusted is None else self.trusted[chosen],
            share=_scaled(row, weight),
        )
        return part, rows

    def _whose(self, chosen: NDArray[np.int64]) -> str:
        """Who gave some of the annotations, in brackets; nothing if nobody said."""
        if self.sources is None:
            return ""
        ids = self.sources.ids[np.unique(self.sources.codes[chosen])].tolist()
        more = "" if len(ids) <= _NAMED else f" and {len(ids) - _NAMED} more"
        return f" ({'source' if len(ids) == 1 else 'sources'} {', '.join(map(repr, ids[:_NAMED]))}{more})"

    def __len__(self) -> int:
        return self.row.size

    def __repr__(self) -> str:
        n_rows = np.unique(self.row).size
        told = f"{_count(len(self), 'label')} of {_count(n_rows, 'row')}"
        if self.sources is not None:
            told += f" by {_count(len(self.sources), 'source')}"
        if self.trusted is not None:
            told += f", {np.count_nonzero(self.trusted):,} trusted"
        return f"{type(self).__name__}({told})"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _kept(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that nobody writes to: a fitted model is about the labels as they were."""
    own = values.copy()
    own.flags.writeable = False
    return own


def _refuse_other_length(values: ArrayLike | None, name: str, n_annotations: int) -> None:
    """Raise ValueError unless there is one entry an annotation; what is no list at all is told by others."""
    if values is None and name != "label":
        return
    shape: tuple[int, ...] = np.asarray(values).shape
    if len(shape) != 1:
        raise ValueError(f"{name} must be one-dimensional, one entry an annotation; got shape {shape}.")
    if shape[0] != n_annotations:
        raise ValueError(
            f"{name} has {plural(shape[0], 'entry')}, but row has {n_annotations}; give one of each for every "
            "annotation."
        )


def _read_labels(label: ArrayLike) -> NDArray[Any]:
    """Labels as scikit-learn reads them from ``y``."""
    refuse_masked(label, "label")
    labels: NDArray[Any] = column_or_1d(label)
    assert_all_finite(labels, input_name="label")
    return labels


def _read_weights(weight: ArrayLike) -> NDArray[np.float64]:
    """Weights that are numbers, and not negative."""
    refuse_masked(weight, "weight")
    given = np.asarray(weight)
    if given.dtype.kind not in "fiu":
        raise ValueError(f"weight must be numbers; got an array of type {given.dtype}.")
    wrong = ~((given >= 0) & np.isfinite(given))
    if wrong.any():
        raise ValueError(f"weight must hold finite numbers that are not negative; got {given[wrong][0].item()!r}.")
    return given.astype(np.float64)


def _scaled(row: NDArray[np.int64], weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Weights that add up to 1 in each row, whatever unit they were in."""
    present, place = np.unique(row, return_inverse=True)
    if weight is None:
        return 1.0 / np.bincount(place)[place]
    largest = np.zeros(present.size)
    np.maximum.at(largest, place, weight)
    if not largest.all():
        empty = int(present[np.argmin(largest)])
        raise ValueError(f"weight must be above 0 for some annotation of every row; got only zeros in row {empty}.")
    # In a unit in which sums neither overflow nor vanish: a power of two, so that whole numbers stay whole.
    unit = np.frexp(largest)[1][place]
    alike = np.ldexp(weight, -unit)
    # Weights that are the same are as if none were given, whatever number they are.
    same = np.ones(present.size, np.bool_)
    np.logical_and.at(same, place, (weight == 0) | (weight == largest[place]))
    alike = np.where(same[place], weight > 0, alike)
    return np.asarray(alike / np.bincount(place, alike)[place])
