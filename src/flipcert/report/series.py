"""The numbers behind plots: curves, bins and spreads of radii."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipcert.report.words import Exposure
from flipcert.results.certificates import Certificates
from flipcert.results.metrics import certified_accuracy, median_certified_robustness

_MOST_STEPS = 240
_MOST_BINS = 36


def counted(certificates: Certificates, y: ArrayLike | None) -> NDArray[np.bool_]:
    """Points that count: those predicted right, or all of them where true labels are not known."""
    return np.ones(len(certificates), dtype=bool) if y is None else certificates.correct(y)


def reach(certificates: Certificates) -> int:
    """The largest attack that there can be, or that radii go up to: no attack is known on what withstands that."""
    return Exposure.of(certificates).reach


@dataclass(frozen=True, eq=False)
class Curves:
    """Shares of test points that count and withstand each number of flips, or of what else a radius counts.

    Attributes
    ----------
    flips : ndarray of int64
        Numbers of flips, evenly spaced from 0 to where next to nothing is left; 0 alone where no label can be flipped.
    proven : ndarray of float64
        What is certified.
    attacked : ndarray of float64 or None
        What attacks on one point at a time are known to leave; None where no attack is known.
    votes : ndarray of float64 or None
        What the votes of an ensemble certify by themselves.
    """

    flips: NDArray[np.int64]
    proven: NDArray[np.float64]
    attacked: NDArray[np.float64] | None
    votes: NDArray[np.float64] | None

    @classmethod
    def of(cls, certificates: Certificates, counts: NDArray[np.bool_], last: int | None = None) -> Curves:
        """Draw up the curves, up to about ``last`` flips, or past the radii of nearly all points."""
        c = certificates
        last = nearly_all(c, counts) if last is None else last
        stride = max(1, -(-(last + 1) // _MOST_STEPS))
        flips = np.arange(0, last + 1 + stride, stride)
        flips = flips[flips <= reach(c)]
        # Attacks are known where the upper bound says so; where no flips ever do, none is needed.
        known = bool(np.any(c.radius_upper[counts] < reach(c))) or bool(c.exact[counts].all())
        return cls(
            flips=flips,
            proven=certified_accuracy(counts, c.radius, flips),
            attacked=certified_accuracy(counts, c.radius_upper, flips) if known else None,
            votes=None if c.blackbox_radius is None else certified_accuracy(counts, c.blackbox_radius, flips),
        )


def nearly_all(certificates: Certificates, counts: NDArray[np.bool_]) -> int:
    """Flips that all but one in 200 of the points that count and are not out of reach withstand at most."""
    c = certificates
    radii = [c.radius, c.radius_upper] + ([] if c.blackbox_radius is None else [c.blackbox_radius])
    reachable = [np.append(values[counts & (values < reach(c))], 0) for values in radii]
    return max(int(np.quantile(values, 0.995, method="higher")) for values in reachable)


@dataclass(frozen=True)
class Medians:
    """Median certified robustness of one certified test set: proven, at most, and by votes alone.

    ``reach`` is the largest attack there can be; a median that large means any attack.
    """

    proven: int
    attacked: int | None
    votes: int | None
    reach: int

    @classmethod
    def of(cls, certificates: Certificates, counts: NDArray[np.bool_]) -> Medians:
        """Take the three medians; without enough known attacks there is no upper one."""
        c, most = certificates, reach(certificates)

        def median(radii: NDArray[np.int64]) -> int:
            return min(median_certified_robustness(counts, radii), most)

        proven, attacked = median(c.radius), median(c.radius_upper)
        return cls(
            proven=proven,
            attacked=None if attacked == most > proven else attacked,
            votes=None if c.blackbox_radius is None else median(c.blackbox_radius),
            reach=most,
        )


@dataclass(frozen=True, eq=False)
class Bins:
    """How many test points have which radius.

    Attributes
    ----------
    width : int
        Numbers of flips in one bin; bin i begins at ``i * width``.
    counting, others : ndarray of int64
        Points in each bin that count, and the rest.
    beyond : tuple of int
        Points of both kinds whose prediction no flips change.
    """

    width: int
    counting: NDArray[np.int64]
    others: NDArray[np.int64]
    beyond: tuple[int, int]

    @classmethod
    def of(cls, certificates: Certificates, counts: NDArray[np.bool_]) -> Bins:
        """Sort radii into bins of a round width."""
        radius = certificates.radius
        reachable = radius < reach(certificates)
        largest = int(radius[reachable].max(initial=0))
        width = next(w for w in _round_numbers() if largest // w < _MOST_BINS)
        size = largest // width + 1
        tallies = [np.bincount(radius[reachable & kind] // width, minlength=size) for kind in (counts, ~counts)]
        beyond = (int(np.sum(~reachable & counts)), int(np.sum(~reachable & ~counts)))
        return cls(width, tallies[0].astype(np.int64), tallies[1].astype(np.int64), beyond)


@dataclass(frozen=True)
class ClassSpread:
    """Radii of the points of one class that count; ``quantiles`` at 10, 25, 50, 75 and 90 %, None where none counts."""

    label: Any
    n_points: int
    n_counting: int
    quantiles: tuple[int, ...] | None


def class_spreads(certificates: Certificates, counts: NDArray[np.bool_], labels: ArrayLike) -> list[ClassSpread]:
    """Spread of radii in each class, classes in order; none is larger than the largest attack there can be."""
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    withstood = np.minimum(certificates.radius, reach(certificates))
    order = np.lexsort((withstood, codes))
    bounds = np.searchsorted(codes[order], np.arange(classes.size + 1))
    spreads = []
    for label, start, stop in zip(classes, bounds[:-1], bounds[1:], strict=True):
        rows = order[start:stop]
        radii = withstood[rows[counts[rows]]]
        # The largest r that a share of the points withstands, as the median is taken.
        places = [radii.size * percent // 100 for percent in (10, 25, 50, 75, 90)]
        quantiles = tuple(int(radii[place]) for place in places) if radii.size else None
        spreads.append(ClassSpread(label, int(stop - start), radii.size, quantiles))
    return spreads


def _round_numbers() -> Iterator[int]:
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10
