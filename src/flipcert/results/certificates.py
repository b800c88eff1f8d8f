"""Certificates: what was proven about each prediction."""

from __future__ import annotations

import os
from collections import namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.engine.words import plural
from flipcert.labels.threats import SOURCES
from flipcert.labels.validation import missing_in
from flipcert.results.certificate_file import read_certificates, write_certificates
from flipcert.results.collective_certificate import CollectiveCertificate
from flipcert.results.columns import Kind, columns_of, holds, values_of
from flipcert.results.metrics import certified_accuracy, median_certified_robustness


@dataclass(frozen=True, eq=False)
class Certificates:
    """Certified predictions, one entry for each test point.

    Attributes
    ----------
    prediction : ndarray
        Predicted labels.
    radius : ndarray of int64
        Certified: no ``radius`` flips of training labels change the prediction.
    radius_upper : ndarray of int64
        An attack with one flip more than this is known; the number of training labels where none is.
    blackbox_radius : ndarray of int64 or None
        What the votes alone certify (ensembles only).
    runner_up : ndarray
        Second class by score or votes; of scores that are equal but for rounding, any may come second.
    target : masked array
        The class that is cheapest to reach, to which the attack behind ``radius_upper`` leads; masked where no class is
        known to be reachable.
    rounding_sensitive : ndarray of bool
        Whether another rounding of the weights (another batch, BLAS or order of the training rows) might give
        another certificate. The certificate stands for the weights as they are.
    n_labels : int
        Number of training labels.
    n_attackable : int
        Number of training labels that are not trusted: what the radius is about. All of them by default.
    threat : str
        What an attacker may do, and what the radius counts: "flips" of labels, "sources" of labels, or rows
        ("deletions", "insertions", "replacements", "edits").
    n_sources : int or None
        Number of sources of the training labels, if they are known.
    model : mapping of str to Any
        What was certified, as plain values: the kind of model, its kernel, its parameters, as it was fitted. For
        readers: reports show it.
    classes : ndarray or None
        The label space: all that can be predicted. None where it is not known.

    See Also
    --------
    certify : What returns it for pipelines.
    CollectiveCertificate : One attack on all points.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> certificates = flipcert.KernelRidge("rbf", reg=0.1).fit(X[::2], y[::2]).certify(X[1::2])
    >>> certificates
    Certificates of 75 predictions
      51 of the 75 predictions withstand 2 flipped labels, 2.7 % of the training set
      radius in flips: 0 to 7, exact for all of them
    >>> certificates.certified_accuracy(y[1::2], [0, 2, 5]).round(3)
    array([0.973, 0.68 , 0.12 ])
    >>> certificates[0].radius, certificates[:3].radius
    (3, array([3, 3, 2]))
    """

    # A new column is one more field like these, optional, keyword-only and None by default, so that files and programs
    # from before can do without it: field(default=None, kw_only=True, metadata=holds(Kind.RADII, optional=True)).
    prediction: NDArray[Any] = field(metadata=holds(Kind.LABELS))
    radius: NDArray[np.int64] = field(metadata=holds(Kind.RADII))
    radius_upper: NDArray[np.int64] = field(metadata=holds(Kind.RADII))
    blackbox_radius: NDArray[np.int64] | None = field(metadata=holds(Kind.RADII, optional=True))
    runner_up: NDArray[Any] = field(metadata=holds(Kind.LABELS))
    target: np.ma.MaskedArray[Any, Any] = field(metadata=holds(Kind.LABELS, gaps=True))
    rounding_sensitive: NDArray[np.bool_] = field(metadata=holds(Kind.FLAGS))
    # What is told once for all test points.
    n_labels: int
    n_attackable: int = -1
    threat: str = "flips"
    model: Mapping[str, Any] = field(default_factory=dict)
    classes: NDArray[Any] | None = field(default=None, kw_only=True)
    n_sources: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.n_attackable < 0:
            object.__setattr__(self, "n_attackable", self.n_labels)

    def __len__(self) -> int:
        return self.radius.size

    def __repr__(self) -> str:
        from flipcert.report.card import in_short

        return in_short(self)

    def _repr_html_(self) -> str:
        from flipcert.report.card import card

        return card(self)

    def __getitem__(self, points: Any) -> Any:
        """Return what was proven of one point, by its number, or the certificates of some points, by a slice or array.

        Parameters
        ----------
        points : int, slice, or array-like of int or bool
            Which test points.

        Returns
        -------
        Certificate or Certificates
            A named tuple with an entry of each column, and ``exact``, for one point; certificates for several.
        """
        try:
            values = {name: own[points] for name, own in values_of(self).items()}
        except IndexError as error:
            raise IndexError(f"there are {len(self):,} certificates; {error}.") from None
        if np.ndim(values["radius"]) == 0:
            # Plain numbers and labels, and None where a column has no entry.
            entries = {name: None if own is np.ma.masked else np.asarray(own).tolist() for name, own in values.items()}
            exact = entries["radius"] == entries["radius_upper"]
            return Certificate(**{**dict.fromkeys(columns_of(self)), **entries, "exact": exact})
        if np.ndim(values["radius"]) > 1:
            raise IndexError("certificates are chosen by a number, a slice, or an array of one dimension.")
        return replace(self, **values)

    def __iter__(self) -> Iterator[Certificate]:
        return (self[point] for point in range(len(self)))

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Where the certified radius is the true one: one more flip is known to suffice, or no flips ever do."""
        return self.radius == self.radius_upper

    @property
    def limit(self) -> int:
        """The largest radius there is, in the unit of the threat; it reads "whatever an attacker does"."""
        return self.n_sources if self.threat == SOURCES.name and self.n_sources is not None else self.n_labels

    def correct(self, y: ArrayLike) -> NDArray[np.bool_]:
        """Whether each prediction is right.

        Parameters
        ----------
        y : array-like of shape (n_test,)
            True labels.

        Returns
        -------
        ndarray of bool

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificates = model.certify([[0.5], [4.5]])
        >>> certificates.correct([0, 1])
        array([ True, False])
        """
        labels = np.asarray(y)
        if labels.shape != self.prediction.shape:
            raise ValueError(
                f"y has shape {labels.shape}, but there are {len(self)} certificates; "
                f"give one label for each, of shape ({len(self)},)."
            )
        if missing := int(np.count_nonzero(missing_in(labels))):
            raise ValueError(
                f"y lacks {missing:,} of {plural(len(self), 'label')} (NaN or None); leave these points out."
            )
        if len(self) and _kinds(labels).isdisjoint(_kinds(self.prediction)):
            raise ValueError(
                f"y holds labels such as {labels[:1].tolist()[0]!r}, but predictions are such as "
                f"{self.prediction[:1].tolist()[0]!r}; give y in the labels that the model was fitted on."
            )
        return np.asarray(self.prediction == labels)

    def certified_accuracy(self, y: ArrayLike, flips: ArrayLike) -> Any:
        """Share of points that are predicted right and stay so under each number of flips.

        Parameters
        ----------
        y : array-like of shape (n_test,)
            True labels.
        flips : int or array-like of int
            Numbers of flipped labels.

        Returns
        -------
        float or ndarray of float

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificates = model.certify([[0.5], [4.5]])
        >>> certificates.certified_accuracy([0, 1], [0, 1, 2])
        array([0.5, 0.5, 0. ])
        """
        return certified_accuracy(self.correct(y), self.radius, flips)

    def median_certified_robustness(self, y: ArrayLike, over: str = "correct") -> int:
        """Largest number of flips that at least half of the points withstand.

        Parameters
        ----------
        y : array-like of shape (n_test,)
            True labels.
        over : {"correct", "all"}, default="correct"
            Half of the points predicted right (as in the EnsembleCert paper), or half of all (as for SS-DPA).

        Returns
        -------
        int

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificates = model.certify([[0.5], [4.5]])
        >>> certificates.median_certified_robustness([0, 1])
        1
        """
        return median_certified_robustness(self.correct(y), self.radius, over=over)

    def to_frame(self) -> Any:
        """Return a pandas data frame, one row a test point.

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificates = model.certify([[0.5], [4.5]])
        >>> certificates.to_frame()[["prediction", "radius", "exact"]]
           prediction  radius  exact
        0           0       1   True
        1           0       0   True
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError('to_frame needs pandas. Install with: pip install "flipcert[frame]".') from None
        always: dict[str, Any] = {}
        sometimes: dict[str, Any] = {}
        columns = columns_of(self)
        for name, values in values_of(self).items():
            place = sometimes if columns[name].optional else always
            place[name] = values
            if columns[name].gaps:
                place[name] = pd.Series(np.ma.getdata(values)).astype(object).where(~np.ma.getmaskarray(values), None)
        return pd.DataFrame({**always, "exact": self.exact, **sometimes})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file (NumPy's npz, without pickle). The file appears whole or not at all.

        Labels that are Python objects must be of one kind, so that 1 and "1" come back as two labels.

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
        >>> certificates = model.certify([[0.5], [4.5]])
        >>> with TemporaryDirectory() as folder:
        ...     certificates.save(Path(folder, "certificates.npz"))
        ...     again = flipcert.Certificates.load(Path(folder, "certificates.npz"))
        >>> again.radius
        array([1, 0])
        """
        write_certificates(path, self)

    def summary(self, y: ArrayLike | None = None) -> str:
        """Tell what all certificates come to: key figures and a sentence, as the command line prints them.

        Parameters
        ----------
        y : array-like of shape (n_test,), default=None
            True labels. Then accuracy is told, and medians are over the predictions that are right.

        Returns
        -------
        str

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificates = model.certify([[0.5], [4.5]])
        >>> print(certificates.summary([0, 1]))
        test points                       2
        training labels                   6
        accuracy                      0.500
        median radius                     1
        largest radius                    1
        share exact                   1.000
        certified accuracy at 1 flip  0.500
        <BLANKLINE>
        The only correct prediction withstands 1 flipped label, 16.7 % of the training set.
        """
        from flipcert.report.card import summary

        return summary(self, y)

    def plot(self, y: ArrayLike | None = None) -> Any:
        """Plot what stays certified against the size of an attack (:func:`flipcert.plots.plot_certified_accuracy`).

        Parameters
        ----------
        y : array-like of shape (n_test,), default=None
            True labels. Without them all predictions count, not only those that are right.

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificates = model.certify([[0.5], [4.5]])
        >>> figure = certificates.plot([0, 1])
        >>> figure.axes[0].get_xlabel()
        'flipped training labels'
        """
        from flipcert.report.plots import plot_certified_accuracy

        return plot_certified_accuracy(self, y)

    def report(
        self,
        path: str | os.PathLike[str],
        y: ArrayLike | None = None,
        collective: CollectiveCertificate | None = None,
    ) -> None:
        """Write a report for people: one HTML page that works offline. The file appears whole or not at all.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced.
        y : array-like of shape (n_test,), default=None
            True labels. Without them the page tells what stays the same, not what is right.
        collective : CollectiveCertificate, default=None
            What one attack does to the same test points: a panel at the top. Which labels it flips is left to
            ``collective.attacks``, because certificates know no training labels; pages of the command line list them.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificates = model.certify([[0.5], [4.5]])
        >>> with TemporaryDirectory() as folder:
        ...     certificates.report(Path(folder, "report.html"), [0, 1])
        ...     "The only correct prediction" in Path(folder, "report.html").read_text()
        True
        """
        from flipcert.report import write_report
        from flipcert.report.result import Collective, Result

        if y is not None:
            self.correct(y)
            self._require_known_labels(np.asarray(y))
        told = None
        if collective is not None:
            if not isinstance(collective, CollectiveCertificate):
                raise TypeError(f"collective must be a CollectiveCertificate; got {type(collective).__name__}.")
            if collective.counts_correct and y is None:
                raise ValueError("collective counts right predictions, but y is None; give the labels here, too.")
            other = collective.unlike(self, y)
            if other is not None:
                raise ValueError(
                    f"collective is about something else: {other} differ from those of these certificates; certify the "
                    "same rows by the same model, with the same labels."
                )
            told = Collective(collective, (None,) * len(collective))
        labels = None if y is None else np.asarray(y)
        write_report([Result(name="", certificates=self, labels=labels, collective=told)], path)

    def _require_known_labels(self, labels: NDArray[Any]) -> None:
        """Raise ValueError if no point has a label that can be predicted: they are other labels."""
        if self.classes is None:
            known = {*self.prediction.tolist(), *self.runner_up.tolist(), *np.ma.getdata(self.target).tolist()}
            which = "a class that is predicted or comes second"
        else:
            known, which = set(self.classes.tolist()), "one of the classes"
        if len(self) and not known & set(labels.tolist()):
            examples = [", ".join(map(repr, sorted(own, key=str)[:2])) for own in (set(labels.tolist()), known)]
            raise ValueError(
                f"none of the labels of y (such as {examples[0]}) is {which} (such as {examples[1]}); use the same "
                "labels as in training."
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Certificates:
        """Read what :meth:`save` wrote. Nothing is unpickled, and a file that holds anything else is a ``ValueError``.

        Parameters
        ----------
        path : str or path-like
            File to read.

        Returns
        -------
        Certificates

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> certificates = model.certify([[0.5], [4.5]])
        >>> with TemporaryDirectory() as folder:
        ...     certificates.save(Path(folder, "certificates.npz"))
        ...     again = flipcert.Certificates.load(Path(folder, "certificates.npz"))
        >>> again.radius
        array([1, 0])
        """
        return read_certificates(cls, path)


# What was proven of one test point: an entry of each column, None where it has none, and whether the radius is exact.
Certificate = namedtuple("Certificate", [*columns_of(Certificates), "exact"])  # type: ignore[misc]


def _kinds(labels: NDArray[Any]) -> set[type]:
    """What labels are: text, bytes, or something else, such as numbers; one is never equal to another."""
    some = labels if labels.dtype == object else labels[:1]
    return {next((kind for kind in (str, bytes) if isinstance(label, kind)), object) for label in some}
