"""Plans of audits: which labels to check, and what is proven after each check."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.threats import FLIPS, SOURCES
from flipcert.results.storable import (
    check_exposure,
    check_model,
    read_stored,
    storable_labels,
    told_in,
    write_stored,
)

_FORMAT = "flipcert-audit-1"
_TOLD = ("flips", "threat", "counts_correct", "n_points", "n_labels", "n_attackable", "n_sources", "model")
_CURVES = ("certified", "held_out", "random")


@dataclass(frozen=True, eq=False, repr=False)
class AuditPlan:
    """Which training labels to check first, and what is proven after each check, if they turn out right.

    Attributes
    ----------
    indices : ndarray of int64 of shape (n_checks,)
        Training labels to check, best first. Under ``threat="sources"``, all labels of the first source, then all of
        the second, without those that were trusted before.
    certified : ndarray of float64 of shape (n_checks + 1,)
        Share of the points that are proven at ``flips`` after 0, 1, 2, ... checks: exactly what ``certify`` says of a
        model that was fitted with these labels trusted. With true labels, correct and proven.
    weighs_on : ndarray of int64 of shape (n_checks,)
        How many predictions that were not proven yet each of them weighed on when it was chosen; 0 where an order was
        given, or no prediction was left.
    flips : int
        What an attacker may change: labels, or sources.
    threat : {"flips", "sources"}
        What is checked: single labels, or all labels of a source at once.
    sources : ndarray of shape (n_checks,) or None
        The sources to check, best first, if it is sources.
    held_out : ndarray of float64 of shape (n_checks + 1,) or None
        The same share for points that were not planned for: each half of them after checks that were planned for the
        other half.
    random : ndarray of float64 of shape (n_checks + 1,) or None
        The same share after random checks, on average.
    counts_correct : bool
        Whether true labels were given, so that only predictions that are right count.
    n_points : int
        Number of test points.
    n_labels, n_attackable, n_sources, model
        As in :class:`flipcert.Certificates`, before any check.

    See Also
    --------
    plan_audit : What returns it.
    plots.plot_audit : What it shows as a plot.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = flipcert.KernelRidge("rbf", classes=[0, 1, 2]).fit(X[::2], y[::2])
    >>> plan = flipcert.plan_audit(model, X[1::2], 10, flips=3, y=y[1::2])
    >>> plan
    AuditPlan: 10 labels to check; certified accuracy at 3 flips of 75 points
      planned:  0.747 before, 0.880 after all checks
    >>> plan.indices[:3]
    array([61, 59, 65])
    """

    indices: NDArray[np.int64]
    certified: NDArray[np.float64]
    weighs_on: NDArray[np.int64]
    flips: int
    threat: str
    sources: NDArray[Any] | None
    counts_correct: bool
    n_points: int
    n_labels: int
    n_attackable: int
    n_sources: int | None = None
    held_out: NDArray[np.float64] | None = None
    random: NDArray[np.float64] | None = None
    model: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.certified.size - 1

    def __repr__(self) -> str:
        share = "certified accuracy" if self.counts_correct else "certified share"
        unit = "label" if self.threat == FLIPS.name else "source"
        lines = [
            f"AuditPlan: {len(self):,} {unit}{'s' if len(self) != 1 else ''} to check; {share} at {self.flips:,} "
            f"{self.threat if self.flips != 1 else self.threat.removesuffix('s')} of {self.n_points:,} points"
        ]
        for name, own in (("planned", self.certified), ("held out", self.held_out), ("random", self.random)):
            if own is not None:
                lines.append(f"  {name + ':':<10}{own[0]:.3f} before, {own[-1]:.3f} after all checks")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from flipcert.report.card import audit_card

        return audit_card(self)

    def summary(self) -> str:
        """Tell what the checks prove: shares before and after, and a sentence.

        Returns
        -------
        str

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> plan = flipcert.plan_audit(model, [[0.5], [4.5]], 3, flips=1)
        >>> print(plan.summary())
        AuditPlan: 3 labels to check; certified share at 1 flip of 2 points
          planned:  0.500 before, 1.000 after all checks
        <BLANKLINE>
        Once 3 labels are checked, 100 % of 2 points are proven against 1 flip; before,
        it is 50.0 %. This assumes that what is checked turns out right.
        """
        from flipcert.report.card import audit_summary

        return audit_summary(self)

    @property
    def checked(self) -> NDArray[np.int64]:
        """How many labels (or sources) are checked at each entry of ``certified``: 0, 1, 2, ..."""
        return np.arange(self.certified.size)

    def to_frame(self) -> Any:
        """Return a pandas data frame, one row for each number of checks: what is checked last, and what is proven.

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> plan = flipcert.plan_audit(model, [[0.5], [4.5]], 3, flips=1)
        >>> plan.to_frame()
           checked  label  weighs_on  certified
        0        0   <NA>       <NA>        0.5
        1        1      1          1        0.5
        2        2      2          1        0.5
        3        3      3          1        1.0
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError('to_frame needs pandas. Install with: pip install "flipcert[frame]".') from None
        by_source = self.sources is not None
        last = pd.array([None, *(self.sources if self.sources is not None else self.indices).tolist()])
        weighs_on = pd.array([None, *self.weighs_on.tolist()], dtype="Int64")
        frame = {"checked": self.checked, "source" if by_source else "label": last, "weighs_on": weighs_on}
        curves = {name: getattr(self, name) for name in _CURVES}
        return pd.DataFrame(frame | {name: own for name, own in curves.items() if own is not None})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file (NumPy's npz, without pickle). The file appears whole or not at all.

        Ids of sources that are Python objects must be of one kind.

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
        >>> plan = flipcert.plan_audit(model, [[0.5], [4.5]], 3, flips=1)
        >>> with TemporaryDirectory() as folder:
        ...     plan.save(Path(folder, "plan.npz"))
        ...     again = flipcert.AuditPlan.load(Path(folder, "plan.npz"))
        >>> again.indices
        array([1, 2, 3])
        """
        write_stored(path, arrays_of(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AuditPlan:
        """Read what :meth:`save` wrote. Nothing is unpickled, and a file that holds anything else is a ``ValueError``.

        Parameters
        ----------
        path : str or path-like
            File to read.

        Returns
        -------
        AuditPlan

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> plan = flipcert.plan_audit(model, [[0.5], [4.5]], 3, flips=1)
        >>> with TemporaryDirectory() as folder:
        ...     plan.save(Path(folder, "plan.npz"))
        ...     again = flipcert.AuditPlan.load(Path(folder, "plan.npz"))
        >>> again.indices
        array([1, 2, 3])
        """
        return read_stored(path, plan_of, "a saved audit plan")

    def plot(self) -> Any:
        """Plot what is proven against the number of checks (see :func:`flipcert.plots.plot_audit`).

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 0, 1, 1]
        >>> model = flipcert.WeightedNeighbors(5, classes=[0, 1]).fit(X, y)
        >>> plan = flipcert.plan_audit(model, [[0.5], [4.5]], 3, flips=1)
        >>> plan.plot().axes[0].get_xlabel()
        'labels checked'
        """
        from flipcert.report.audit_plot import plot_audit

        return plot_audit(self)


def arrays_of(plan: AuditPlan) -> dict[str, NDArray[Any]]:
    """A plan as arrays by name, none of which needs a pickle."""
    header = {name: getattr(plan, name) for name in _TOLD} | {"model": dict(plan.model)}
    arrays = {name: getattr(plan, name) for name in ("indices", "weighs_on", *_CURVES)}
    try:
        check_exposure(header)
        check_model(header["model"])
        check_plan(plan)
        if plan.sources is not None:
            arrays |= storable_labels({"sources": plan.sources})
    except ValueError as error:
        raise ValueError(f"this plan cannot be saved: {error}.") from None
    known = {name: own for name, own in arrays.items() if own is not None}
    return known | {"header": np.array(json.dumps({"format": _FORMAT, **header}))}


def plan_of(arrays: Mapping[str, NDArray[Any]]) -> AuditPlan:
    """A plan from such arrays, wherever they come from; a ValueError if they are none."""
    form, told = told_in(arrays.get("header"))
    if form != _FORMAT:
        raise ValueError(f"its format is {short(form)}, and this version reads {_FORMAT!r}")
    if told.keys() != set(_TOLD) or type(told["counts_correct"]) is not bool:
        raise ValueError(f"its header must tell {', '.join(_TOLD)}")
    needed, optional = {"indices", "weighs_on", "certified"}, {"held_out", "random", "sources", "header"}
    if needed - arrays.keys() or arrays.keys() - needed - optional:
        raise ValueError(f"it does not hold just the arrays {', '.join(sorted(needed))}")
    check_exposure(told)
    check_model(told["model"])
    names = (*needed, "held_out", "random", "sources")
    plan = AuditPlan(**told, **{name: arrays.get(name) for name in names})  # type: ignore[arg-type]
    check_plan(plan)
    return plan


def check_plan(plan: AuditPlan) -> None:
    """Refuse what cannot be a plan."""
    p, checks = plan, plan.weighs_on.size
    for name in ("flips", "n_points"):
        if type(getattr(p, name)) is not int or getattr(p, name) < 1:
            raise ValueError(f"{name} must be a whole number from 1 up")
    if p.threat not in (FLIPS.name, SOURCES.name) or (p.sources is None) != (p.threat == FLIPS.name):
        raise ValueError("it must be labels that are checked, or sources that it names")
    own = p.indices
    outside = own.size and (own.dtype != np.int64 or own.min() < 0 or own.max() >= p.n_labels)
    if own.ndim != 1 or outside or np.unique(own).size < own.size:
        raise ValueError(f"indices must be different ones of the {p.n_labels:,} labels")
    units = own if p.sources is None else p.sources
    if p.weighs_on.ndim != 1 or p.weighs_on.dtype.kind != "i" or units.shape != (checks,):
        raise ValueError("weighs_on must hold one whole number for each check")
    if np.any((p.weighs_on < 0) | (p.weighs_on > p.n_points)):
        raise ValueError(f"weighs_on must count some of the {p.n_points:,} points")
    if len(set(units.tolist())) < checks:
        raise ValueError("something is checked twice")
    for name in _CURVES:
        curve = getattr(p, name)
        if curve is None:
            continue
        if curve.dtype != np.float64 or curve.shape != (checks + 1,) or not np.all((curve >= 0) & (curve <= 1)):
            raise ValueError(f"{name} must hold one share for each number of checks, from none to all")
