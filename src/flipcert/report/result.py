"""One certified test set with all that a report tells about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.audit.record import RandomCheck
from flipcert.labels.threats import FLIPS
from flipcert.report.audit_result import Audit
from flipcert.results.certificates import Certificates
from flipcert.results.collective_certificate import CollectiveCertificate
from flipcert.results.witness import Witness


def _none() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Attack:
    """What changes the prediction of one test point.

    Attributes
    ----------
    row : int
        Row of the test point; the place of the budget, if it is on all points.
    indices : ndarray of int64
        Training labels that are changed, most influential first.
    old, new : ndarray
        What they are before and after.
    sources : ndarray
        The sources that change them, strongest first (threat "sources").
    by : ndarray
        The source of each of these labels.
    rows : ndarray of int64 or None
        The training row of each of these labels, where rows have several; None if they have one each.
    deleted : ndarray of int64
        Training rows that are dropped.
    deleted_labels : ndarray
        Their labels.
    inserted : ndarray of shape (m, n_features)
        Rows that are added, as the model sees them; a replacement is a deleted row with the inserted row of its place.
    inserted_labels : ndarray
        Their labels.
    threat : str
        What the attacker may do.
    """

    row: int
    indices: NDArray[np.int64]
    old: NDArray[Any]
    new: NDArray[Any]
    sources: NDArray[Any] = field(default_factory=_none, kw_only=True)
    by: NDArray[Any] = field(default_factory=_none, kw_only=True)
    rows: NDArray[np.int64] | None = field(default=None, kw_only=True)
    deleted: NDArray[np.int64] = field(default_factory=_none, kw_only=True)
    deleted_labels: NDArray[Any] = field(default_factory=_none, kw_only=True)
    inserted: NDArray[Any] = field(default_factory=lambda: np.empty((0, 0)), kw_only=True)
    inserted_labels: NDArray[Any] = field(default_factory=_none, kw_only=True)
    threat: str = field(default=FLIPS.name, kw_only=True)

    @classmethod
    def of(
        cls,
        row: int,
        witness: Witness,
        y: NDArray[Any],
        source: NDArray[Any] | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> Attack:
        """A witness against one test point, with the labels that it finds, their sources, and their rows."""
        return cls(
            row=row,
            indices=witness.indices,
            old=y[witness.indices],
            new=witness.labels,
            sources=witness.sources,
            by=source[witness.indices] if source is not None and witness.sources.size else _none(),
            rows=None if rows is None else rows[witness.indices],
            deleted=witness.deleted,
            deleted_labels=y[witness.deleted],
            inserted=witness.inserted,
            inserted_labels=witness.inserted_labels,
            threat=witness.threat,
        )

    @property
    def training_rows(self) -> NDArray[np.int64]:
        """The training row of each label that is changed."""
        return self.indices if self.rows is None else self.rows

    @property
    def size(self) -> int:
        """How large it is, in the unit of the threat."""
        return len(
            Witness(
                self.indices,
                self.new,
                sources=self.sources,
                deleted=self.deleted,
                inserted_labels=self.inserted_labels,
                threat=self.threat,
            )
        )


@dataclass(frozen=True)
class SourcePower:
    """A source of labels, and what it can do without any other.

    Attributes
    ----------
    source : Any
        Its id.
    n_labels : int
        Number of its labels.
    n_changed : int
        Test points whose prediction it can change alone: at least so many, each by an attack that was replayed.
    """

    source: Any
    n_labels: int
    n_changed: int


@dataclass(frozen=True, eq=False)
class Collective:
    """What one attack on all test points can do.

    Attributes
    ----------
    certificate : CollectiveCertificate
        What is proven and what was found, for each budget.
    attacks : tuple of Attack or None
        The attack that was found for each budget, with the labels that it finds; None where none is known.
    """

    certificate: CollectiveCertificate
    attacks: tuple[Attack | None, ...]

    @classmethod
    def of(
        cls,
        certificate: CollectiveCertificate,
        y: NDArray[Any],
        source: NDArray[Any] | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> Collective:
        """The certificate with training labels, their sources, and their rows."""
        attacks = (
            None if witness is None else Attack.of(k, witness, y, source, rows)
            for k, witness in enumerate(certificate.attacks)
        )
        return cls(certificate, tuple(attacks))


@dataclass(frozen=True, eq=False)
class Result:
    """A certified test set: what was run, what was proven, what would break it.

    Attributes
    ----------
    name : str
        What to call it beside others, such as "ridge, 10 partitions".
    certificates : Certificates
        What was proven, one entry a test point.
    labels : ndarray or None
        True labels of the test points where they are known.
    attacks : tuple of Attack
        Known attacks on some test points.
    test_images, train_images : mapping of int to ndarray of uint8
        Pictures of some test and training rows, (height, width) or (height, width, 3), where the data are images.
    seconds : float or None
        How long fitting and certifying took.
    digests : mapping of str to str
        What the training and test data are known by ("train", "test"), where they are files.
    in_flips : ndarray of int64 or None
        Certified radii of the same test points in flips, where ``certificates`` count sources.
    powers : tuple of SourcePower
        The sources with the most power, strongest first, where ``certificates`` count sources.
    collective : Collective or None
        What one attack on all test points can do, if that was asked.
    audit : Audit or None
        Which labels to check first, if that was asked.
    check : RandomCheck or None
        The random check by which labels were corrected before the fit, if there was one.
    preparation : str or None
        What was done to the features before the fit, in a sentence.
    test_ids : ndarray or None
        What the test points are called, where that is known.
    train_ids : mapping of int to Any
        What the training rows are called that attacks are about, where that is known.
    """

    name: str
    certificates: Certificates
    labels: NDArray[Any] | None = None
    attacks: tuple[Attack, ...] = ()
    test_images: Mapping[int, NDArray[np.uint8]] = field(default_factory=dict)
    train_images: Mapping[int, NDArray[np.uint8]] = field(default_factory=dict)
    seconds: float | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    in_flips: NDArray[np.int64] | None = None
    powers: tuple[SourcePower, ...] = ()
    collective: Collective | None = None
    audit: Audit | None = None
    check: RandomCheck | None = None
    preparation: str | None = None
    test_ids: NDArray[Any] | None = None
    train_ids: Mapping[int, Any] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Kind of model, such as "ridge"; empty where it is not known."""
        return str(self.certificates.model.get("model", ""))

    @property
    def n_partitions(self) -> int:
        """Number of partitions; 1 for one model trained on everything."""
        return int(self.certificates.model.get("partitions", 1))

    @property
    def n_copies(self) -> int:
        """How many voters each row is given to."""
        return int(self.certificates.model.get("copies", 1))

    @property
    def settings(self) -> dict[str, Any]:
        """All else that is known of the model."""
        return {name: value for name, value in self.certificates.model.items() if name not in ("model", "partitions")}
