"""A witness: an attack that works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.sparse import changed_rows
from flipcert.labels.annotations import Annotations
from flipcert.labels.labels import Labels
from flipcert.labels.threats import DELETIONS, EDITS, FLIPS, INSERTIONS, MOVES, REPLACEMENTS, SOURCES


def _no_numbers() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


def _no_rows() -> NDArray[np.float64]:
    return np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class Witness:
    """What to do to the training set, most influential first; ``len(witness)`` counts units of the threat.

    What a threat does not use is empty.

    Attributes
    ----------
    indices : ndarray of int64
        Training samples whose label changes; annotations, where rows have several labels.
    labels : ndarray
        The label to put there.
    sources : ndarray
        The sources that change these labels (threat "sources").
    deleted : ndarray of int64
        Training rows to drop.
    inserted : ndarray of shape (m, n_features)
        Rows to append. A replacement is ``deleted[k]`` with ``inserted[k]``.
    inserted_labels : ndarray of shape (m,)
        Their labels.
    threat : str
        What the attacker may do.
    n_labels : int or None
        How many labels, or annotations, the training set has; None if that is not known.

    See Also
    --------
    worst_flips : What returns it for pipelines.
    cheapest_flips : The same for weights in an array.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = flipcert.KernelRidge("rbf", reg=0.1).fit(X[::2], y[::2])
    >>> (witness,) = model.worst_flips(X[:1])
    >>> len(witness), witness.labels
    (8, array([2, 2, 2, 2, 2, 2, 2, 2]))
    >>> model.predict(X[:1]), model.fit(X[::2], witness.apply(y[::2])).predict(X[:1])
    (array([0]), array([2]))
    """

    indices: NDArray[np.int64]
    labels: NDArray[Any]
    sources: NDArray[Any] = field(default_factory=_no_numbers, kw_only=True)
    deleted: NDArray[np.int64] = field(default_factory=_no_numbers, kw_only=True)
    inserted: NDArray[Any] = field(default_factory=_no_rows, kw_only=True)
    inserted_labels: NDArray[Any] = field(default_factory=_no_numbers, kw_only=True)
    threat: str = field(default=FLIPS.name, kw_only=True)
    n_labels: int | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, flips: Sequence[tuple[int, int]], **parts: Any) -> Witness:
        """Collect (index, class) pairs; ``parts`` are the other fields."""
        return cls(
            indices=np.array([index for index, _ in flips], dtype=np.int64),
            labels=np.array([to for _, to in flips], dtype=np.int64),
            **parts,
        )

    @classmethod
    def union(cls, parts: list[Witness]) -> Witness:
        """Join witnesses under one threat that change different samples and sources."""

        def joined(name: str) -> NDArray[Any]:
            own = [getattr(part, name) for part in parts]
            return np.concatenate([values for values in own if values.size] or own[:1])

        names = ("indices", "labels", "sources", "deleted", "inserted", "inserted_labels")
        fields: dict[str, Any] = {name: joined(name) for name in names}
        return cls(**fields, threat=parts[0].threat)

    def __len__(self) -> int:
        counted = {
            FLIPS.name: self.indices.size,
            SOURCES.name: self.sources.size,
            DELETIONS.name: self.deleted.size,
            INSERTIONS.name: self.inserted_labels.size,
            REPLACEMENTS.name: self.deleted.size,
            MOVES.name: self.deleted.size + self.inserted_labels.size,
            EDITS.name: self.indices.size + self.deleted.size + self.inserted_labels.size,
        }
        return counted[self.threat]

    def __repr__(self) -> str:
        told = {own.name: getattr(self, own.name) for own in fields(self)}
        shown = [f"{name}={own!r}" for name, own in told.items() if not isinstance(own, np.ndarray) or own.size]
        return f"Witness({', '.join(shown)})"

    @overload
    def apply(self, labels: Annotations) -> Annotations: ...

    @overload
    def apply(self, labels: NDArray[Any]) -> NDArray[Any]: ...

    def apply(self, labels: NDArray[Any] | Annotations) -> NDArray[Any] | Annotations:
        """Return a copy of the training labels, or annotations, after the attack: changed, dropped, appended.

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> (witness,) = model.worst_flips([[0.5]])
        >>> witness.indices, witness.apply(y)
        (array([0, 1]), array([1, 1, 0, 0, 1, 1]))
        """
        if isinstance(labels, Annotations):
            return labels.relabelled(self.apply(labels.label))
        before = np.asarray(labels)
        self._refuse_other_labels(before)
        new = [own for own in (self.labels, self.inserted_labels) if own.size]
        # A new label may be a longer string than any that is there.
        after = before.astype(np.result_type(before, *new) if new else before.dtype)
        after[self.indices] = self.labels
        return np.append(np.delete(after, self.deleted), self.inserted_labels.astype(after.dtype, copy=False))

    def _refuse_other_labels(self, labels: NDArray[Any]) -> None:
        """Raise ValueError if these cannot be the labels that the attack is on."""
        needed = self.n_labels
        if needed is None:
            needed = 1 + max(self.indices.max(initial=-1), self.deleted.max(initial=-1))
            fits = labels.size >= needed
        else:
            fits = labels.size == needed
        if labels.ndim != 1 or not fits:
            count = f"{'' if self.n_labels is not None else 'at least '}{needed}"
            got = "None" if labels.ndim == 0 and labels.item() is None else f"an array of shape {labels.shape}"
            raise ValueError(f"labels must be the {count} labels that the model was fitted to; got {got}.")

    def apply_inputs(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the training inputs after the attack: the deleted rows dropped, the inserted ones appended.

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.KernelSVM("rbf", classes=[0, 1]).fit(X, y)
        >>> (witness,) = model.worst_flips([[2.5]], threat="deletions")
        >>> witness.deleted
        array([2, 3, 1])
        >>> witness.apply_inputs(X)
        array([[0.],
               [4.],
               [5.]])
        """
        return changed_rows(X, self.deleted, self.inserted[: self.inserted_labels.size])


def in_user_labels(witness: Witness | None, classes: NDArray[Any], labels: Labels) -> Witness | None:
    """The same witness with labels instead of class indices, and ids instead of places of sources."""
    if witness is None:
        return None
    return replace(
        witness,
        labels=classes[witness.labels],
        inserted_labels=classes[witness.inserted_labels],
        sources=witness.sources if labels.sources is None else labels.sources.ids[witness.sources],
        n_labels=labels.n_labels,
    )


def classes_after(witness: Witness, labels: Labels) -> NDArray[np.bool_]:
    """Which classes have a label once the attack is made."""
    return np.bincount(witness.apply(labels.codes), minlength=labels.n_classes) > 0
