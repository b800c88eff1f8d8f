"""Collective certificates: what was proven about one attack on all test points together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.labels.validation import check_integers
from flipcert.results.collective_file import read_collective, write_collective
from flipcert.results.witness import Witness

if TYPE_CHECKING:
    from flipcert.results.certificates import Certificates


class Budget(NamedTuple):
    """What is known of one budget: entries of a collective certificate, as plain values."""

    flips: int
    changed_at_most: int
    changed_at_least: int
    changed_one_by_one: int
    certified_accuracy: float
    accuracy_under_attack: float
    attack: Witness | None


@dataclass(frozen=True, eq=False, repr=False)
class CollectiveCertificate:
    """How many predictions one attack can change at once, for each budget that an attacker may have.

    Point by point, each prediction is attacked by whatever is worst for it. But there is one training set: an attacker
    who may flip so many labels flips them once, for all test points.

    Attributes
    ----------
    flips : ndarray of int64 of shape (n_budgets,)
        Budgets, in units of the threat: an attack uses at most so many.
    changed_at_most : ndarray of int64 of shape (n_budgets,)
        Proven: no attack within the budget changes more of the counted predictions.
    changed_at_least : ndarray of int64 of shape (n_budgets,)
        The attack that was found changes so many of them.
    changed_one_by_one : ndarray of int64 of shape (n_budgets,)
        Counted predictions that are not certified on their own: their radius is below the budget, and below the largest
        that there can be.
    attacks : list of Witness or None
        The attack that was found for each budget; None where none is known.
    prediction : ndarray of shape (n_points,)
        Predicted labels.
    prediction_after : ndarray of shape (n_budgets, n_points)
        What is predicted once the attack is made.
    counted : ndarray of bool of shape (n_points,)
        Which predictions count: all, or those that are right.
    counts_correct : bool
        Whether true labels were given, so that only predictions that are right count.
    why_one_by_one : str or None
        Why no more is proven than point by point, in words that end a sentence; None where more is.
    replayed : bool
        Whether it is known what the attacks do to all points. If not, each was made for one point, the one that changes
        in ``prediction_after``; others may change as well.
    n_labels, n_attackable, threat, n_sources, model, classes
        As in :class:`flipcert.Certificates`.

    See Also
    --------
    certify_collectively : What returns it.
    Certificates : Point by point.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = flipcert.KernelRidge("rbf", classes=[0, 1, 2]).fit(X[::2], y[::2])
    >>> certificate = model.certify_collectively(X[1::2], [1, 2], y[1::2])
    >>> certificate
    CollectiveCertificate: how many of 73 right predictions one attack changes
       1 flip: exactly 3, point by point 4; certified accuracy 0.933
      2 flips: exactly 4, point by point 8; certified accuracy 0.920
    >>> certificate[0].changed_at_most, [budget.flips for budget in certificate]
    (3, [1, 2])
    """

    flips: NDArray[np.int64]
    changed_at_most: NDArray[np.int64]
    changed_at_least: NDArray[np.int64]
    changed_one_by_one: NDArray[np.int64]
    attacks: list[Witness | None]
    prediction: NDArray[Any]
    prediction_after: NDArray[Any]
    counted: NDArray[np.bool_]
    counts_correct: bool
    n_labels: int
    n_attackable: int
    threat: str = "flips"
    n_sources: int | None = None
    why_one_by_one: str | None = None
    replayed: bool = True
    model: Mapping[str, Any] = field(default_factory=dict)
    classes: NDArray[Any] | None = None

    def __len__(self) -> int:
        return self.flips.size

    def __getitem__(self, budgets: Any) -> Any:
        """Return what is known of one budget, by its place, or the certificate of some, by a slice or array.

        Parameters
        ----------
        budgets : int, slice, or array-like of int or bool
            Places in ``flips``.

        Returns
        -------
        Budget or CollectiveCertificate
            A named tuple for one budget, with its ``attack``; a certificate for several.
        """
        try:
            chosen = np.arange(len(self))[budgets]
        except IndexError as error:
            raise IndexError(f"there are {len(self):,} budgets; {error}.") from None
        if np.ndim(chosen) == 0:
            entries = {name: getattr(self, name)[chosen].item() for name in Budget._fields[:-1]}
            return Budget(**entries, attack=self.attacks[chosen])
        if np.ndim(chosen) > 1:
            raise IndexError("budgets are chosen by a number, a slice, or an array of one dimension.")
        columns = ("flips", "changed_at_most", "changed_at_least", "changed_one_by_one", "prediction_after")
        own = {name: getattr(self, name)[chosen] for name in columns}
        return replace(self, **own, attacks=[self.attacks[k] for k in chosen.tolist()])

    def __iter__(self) -> Iterator[Budget]:
        return (self[budget] for budget in range(len(self)))

    def __repr__(self) -> str:
        kind = f"{'right ' if self.counts_correct else ''}prediction{'' if self.n_counted == 1 else 's'}"
        lines = [f"CollectiveCertificate: how many of {self.n_counted:,} {kind} one attack changes"]
        amounts = [f"{flips:,} {self.threat if flips != 1 else self.threat.removesuffix('s')}" for flips in self.flips]
        width = max(map(len, amounts), default=0)
        for k, amount in enumerate(amounts):
            most, least, alone = (
                int(own[k]) for own in (self.changed_at_most, self.changed_at_least, self.changed_one_by_one)
            )
            known = f"exactly {most:,}" if most == least else f"{least:,} (found) to {most:,} (proven)"
            share = f"certified {'accuracy' if self.counts_correct else 'share'} {self.certified_accuracy[k]:.3f}"
            lines.append(f"  {amount:>{width}}: {known}, point by point {alone:,}; {share}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from flipcert.report.card import collective_card

        return collective_card(self)

    def summary(self) -> str:
        """Tell what one attack does: a line a budget, and a sentence on the largest.

        Returns
        -------
        str

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificate = model.certify_collectively([[0.5], [4.5]], [1, 2])
        >>> print(certificate.summary())
        CollectiveCertificate: how many of 2 predictions one attack changes
           1 flip: exactly 1, point by point 1; certified share 0.500
          2 flips: exactly 2, point by point 2; certified share 0.000
        <BLANKLINE>
        One attack of 2 flips, 33.3 % of the training set, changes exactly 2 of 2
        predictions at worst. That is what is proven point by point as well. An attack
        of 2 flips that was found, and replayed, changes all 2: no attack does more.
        """
        from flipcert.report.card import collective_summary

        return collective_summary(self)

    @property
    def n_points(self) -> int:
        """Number of test points."""
        return self.counted.size

    @property
    def n_counted(self) -> int:
        """Number of predictions that count: all, or those that are right."""
        return int(np.count_nonzero(self.counted))

    @property
    def certified_accuracy(self) -> NDArray[np.float64]:
        """Share of all points that count and are still predicted the same after any one attack within each budget."""
        return self._left(self.changed_at_most)

    @property
    def certified_one_by_one(self) -> NDArray[np.float64]:
        """The same share as far as it is known point by point."""
        return self._left(self.changed_one_by_one)

    @property
    def accuracy_under_attack(self) -> NDArray[np.float64]:
        """The same share after the attack that was found for each budget."""
        return self._left(self.changed_at_least)

    def _left(self, changed: NDArray[np.int64]) -> NDArray[np.float64]:
        return (self.n_counted - changed) / self.n_points

    def changed(self, budget: int) -> NDArray[np.int64]:
        """Counted points that the attack found for the ``budget``-th budget changes.

        Parameters
        ----------
        budget : int
            Place of the budget in ``flips``.

        Returns
        -------
        ndarray of int64
            Test points.

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificate = model.certify_collectively([[0.5], [4.5]], [1, 2])
        >>> certificate.changed(0), certificate.changed(1)
        (array([1]), array([0, 1]))
        """
        place = check_integers(budget, "budget", minimum=-len(self), maximum=len(self) - 1, ndim=0)
        return np.flatnonzero(self.counted & (self.prediction_after[place] != self.prediction))

    def unlike(self, known: Certificates, y: ArrayLike | None) -> str | None:
        """Tell in what it is about something else than certificates of single points; None if in nothing they tell.

        Parameters
        ----------
        known : Certificates
            What is certified point by point.
        y : array-like of shape (n_test,) or None
            True labels beside these.

        Returns
        -------
        str or None

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificate = model.certify_collectively([[0.5], [4.5]], [1, 2])
        >>> print(certificate.unlike(model.certify([[0.5], [4.5]]), None))
        None
        >>> other = flipcert.KernelSVM("rbf", classes=[0, 1]).fit(X, y)
        >>> certificate.unlike(other.certify([[0.5], [4.5]]), None)
        'predictions'
        """
        if not np.array_equal(self.prediction, known.prediction):
            return "predictions"
        right = np.ones(len(known), np.bool_) if y is None or not self.counts_correct else known.correct(y)
        told = {"true labels (y)": np.array_equal(self.counted, right)}
        for name in ("threat", "n_labels", "n_attackable", "n_sources"):
            told[name] = getattr(self, name) == getattr(known, name)
        told["model"] = dict(self.model) == dict(known.model)
        told["classes"] = np.array_equal(np.asarray(self.classes), np.asarray(known.classes))
        # Whom a known attack changes is not certified, either.
        attacked = known.radius_upper < np.minimum(self.flips, known.limit)[:, None]
        told["radii"] = bool((np.count_nonzero(right & attacked, axis=1) <= self.changed_one_by_one).all())
        return next((name for name, agrees in told.items() if not agrees), None)

    def without_attacks(self) -> CollectiveCertificate:
        """Return what is proven of it, as if no attack were known.

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificate = model.certify_collectively([[0.5], [4.5]], [1, 2])
        >>> certificate.without_attacks().changed_at_least
        array([0, 0])
        """
        nothing = np.zeros_like(self.changed_at_least)
        as_before = np.broadcast_to(self.prediction, self.prediction_after.shape).copy()
        return replace(self, changed_at_least=nothing, attacks=[None] * len(self), prediction_after=as_before)

    def to_frame(self) -> Any:
        """Return a pandas data frame, one row a budget.

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificate = model.certify_collectively([[0.5], [4.5]], [1, 2])
        >>> certificate.to_frame()[["flips", "changed_at_most", "certified_accuracy"]]
           flips  changed_at_most  certified_accuracy
        0      1                1                 0.5
        1      2                2                 0.0
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError('to_frame needs pandas. Install with: pip install "flipcert[frame]".') from None
        names = ("flips", "changed_at_most", "changed_at_least", "changed_one_by_one", "certified_accuracy")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file (NumPy's npz, without pickle). The file appears whole or not at all.

        Labels that are Python objects must be of one kind, and so must ids of sources.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificate = model.certify_collectively([[0.5], [4.5]], [1, 2])
        >>> with TemporaryDirectory() as folder:
        ...     certificate.save(Path(folder, "collective.npz"))
        ...     again = flipcert.CollectiveCertificate.load(Path(folder, "collective.npz"))
        >>> again.changed_at_most
        array([1, 2])
        """
        write_collective(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CollectiveCertificate:
        """Read what :meth:`save` wrote. Nothing is unpickled, and a file that holds anything else is a ``ValueError``.

        Parameters
        ----------
        path : str or path-like
            File to read.

        Returns
        -------
        CollectiveCertificate

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificate = model.certify_collectively([[0.5], [4.5]], [1, 2])
        >>> with TemporaryDirectory() as folder:
        ...     certificate.save(Path(folder, "collective.npz"))
        ...     again = flipcert.CollectiveCertificate.load(Path(folder, "collective.npz"))
        >>> again.changed_at_most
        array([1, 2])
        """
        return read_collective(cls, path)

    def plot(self) -> Any:
        """Plot certified accuracy against the budget (see :func:`flipcert.plots.plot_collective`).

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificate = model.certify_collectively([[0.5], [4.5]], [1, 2])
        >>> certificate.plot().axes[0].get_xlabel()
        'flipped training labels'
        """
        from flipcert.report.collective_plot import plot_collective

        return plot_collective(self)


def together(certificates: Sequence[CollectiveCertificate]) -> CollectiveCertificate:
    """One certificate of budgets that were asked about one by one, each about the same model and points.

    What is proven for a budget holds for smaller ones, and what an attack does can be done with more as well.
    """
    own = sorted(certificates, key=lambda certificate: int(certificate.flips[0]))
    at_most = np.concatenate([certificate.changed_at_most for certificate in own])
    at_least = np.concatenate([certificate.changed_at_least for certificate in own])
    best = [int(np.argmax(at_least[: k + 1])) for k in range(at_least.size)]
    attacks = [attack for certificate in own for attack in certificate.attacks]
    after = np.concatenate([certificate.prediction_after for certificate in own])
    return replace(
        own[0],
        flips=np.concatenate([certificate.flips for certificate in own]),
        changed_at_most=np.minimum.accumulate(at_most[::-1])[::-1],
        changed_at_least=at_least[best],
        changed_one_by_one=np.concatenate([certificate.changed_one_by_one for certificate in own]),
        attacks=[attacks[k] for k in best],
        prediction_after=after[best],
        why_one_by_one=next((c.why_one_by_one for c in own if c.why_one_by_one is not None), None),
        replayed=all(c.replayed for c in own),
    )
