"""All that is found out once about a fit, before any test point: leverages of its samples, for some choices of mu."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.logistic.caps import Caps
from flipcert.classifiers.logistic.kernel_leverage import KernelLeverage, Pairs
from flipcert.classifiers.logistic.leverage import NormLeverage, Table, Terms
from flipcert.classifiers.logistic.objective import Objective
from flipcert.classifiers.logistic.rounding import above, gamma, size
from flipcert.classifiers.logistic.spectrum import Spectrum
from flipcert.engine.blocks import map_rows
from flipcert.labels.labels import Labels


@dataclass(frozen=True)
class Fit:
    """A fitted model and what is to be known of it: weights, probabilities of the samples and labels."""

    objective: Objective
    labels: Labels
    W: NDArray[np.float64]
    P: NDArray[np.float64]
    residual: float

    @property
    def error_of_probabilities(self) -> float:
        """Relative error of P."""
        return self.objective.error_of_probabilities(size(self.W))


@dataclass(frozen=True)
class Preparation:
    """Leverages of a fit, and the spectrum that they were found with; none if nothing can be proven."""

    spectrum: Spectrum
    terms: Terms
    leverages: list[NormLeverage | KernelLeverage]
    caps: Caps

    @property
    def norms(self) -> list[NormLeverage]:
        """Leverages by norms alone, of all mu."""
        norms = (one.norm if isinstance(one, KernelLeverage) else one for one in self.leverages)
        return list({one.mu: one for one in norms}.values())

    @property
    def limit(self) -> int:
        """The most flips that anything can be proven about."""
        return max((leverage.limit for leverage in self.leverages), default=0)


def prepare(fit: Fit, mus: tuple[float, ...], paired: bool, n_jobs: int | None) -> Preparation:
    """Decompose the Hessian and bound leverages by norms for some mu, and by pairs of samples too, if wanted.

    Each mu is in units of the penalty.
    """
    objective = fit.objective
    error = objective.error_of_hessian(fit.P, size(fit.W))
    spectrum = Spectrum.of(objective.hessian(fit.P), error)
    smallest = float(spectrum.values[0])
    terms = Terms(objective.penalty, spectrum.distance, fit.residual, smallest)
    known = spectrum.distance < objective.penalty / 2 and np.isfinite(spectrum.skew) and smallest > 0.0
    if not known or fit.error_of_probabilities >= 0.01 or fit.labels.n_movable == 0:
        return Preparation(spectrum, terms, [], Caps({}))
    penalties = [mu * objective.penalty for mu in mus]
    bytes_per_row = 8 * 3 * objective.n_classes * spectrum.values.size
    function = partial(_forms, fit, spectrum, penalties)
    parts = map_rows(function, objective.X.shape[0], bytes_per_row, n_jobs)
    leverages: list[NormLeverage | KernelLeverage] = []
    movable = fit.labels.coded.movable
    pairs = Pairs(objective, fit.labels, fit.P, fit.error_of_probabilities, spectrum)
    for place, mu in enumerate(penalties):
        reach, curved, flat = (np.concatenate([part[place][table] for part in parts], axis=1) for table in range(3))
        longest = above(np.sqrt((curved + mu * flat).max(axis=0)))[movable]
        norm = NormLeverage(mu, terms, reach, curved, flat, longest)
        reached = 0
        if paired:
            leverages.append(KernelLeverage.of(pairs, norm, n_jobs))
            reached = leverages[-1].limit
        if norm.limit > reached:
            leverages.append(norm)
    caps = Caps.of(pairs, terms, [one for one in leverages if isinstance(one, KernelLeverage)], n_jobs)
    # What reaches furthest comes first: it may settle all. Norms come after pairs, which they are looser than.
    leverages.sort(key=lambda leverage: (isinstance(leverage, NormLeverage), -leverage.limit))
    return Preparation(spectrum, terms, leverages, caps)


def _forms(fit: Fit, spectrum: Spectrum, mus: list[float], rows: slice) -> list[tuple[Table, Table, Table]]:
    """For some samples and each mu: norms of what is reached, and both forms of each flip; all rounded up."""
    objective, codes = fit.objective, fit.labels.codes[rows]
    K, d, m = objective.n_classes, objective.X.shape[1], spectrum.values.size
    X, P, here = objective.X[rows], fit.P[rows], np.arange(codes.size)
    coordinates = np.ascontiguousarray((X @ spectrum.vectors.reshape(K, d, m)).transpose(1, 0, 2))
    off = 4.0 * (2.2 * spectrum.error_of_coordinates(d) + 1.2 * gamma(m + 8))
    off += 5.0 * gamma(2 * K + 8) + 5.0 * fit.error_of_probabilities
    squares = above(off * objective.norms[rows] ** 2)
    found = []
    for mu in mus:
        shifted = spectrum.values + mu
        grams, flips = [], []
        for function in (spectrum.values / shifted**2, 1.0 / shifted**2):
            gram = (coordinates * function) @ coordinates.transpose(0, 2, 1)
            own = gram[here, :, codes]
            form = np.einsum("ikk->ik", gram) - 2.0 * own + own[here, codes][:, None]
            # A form that rounding made negative is about zero.
            upper = np.maximum(form, 0.0) + (squares * float(function.max()))[:, None]
            upper[here, codes] = 0.0
            grams.append(gram)
            flips.append(np.ascontiguousarray(above(upper).T))
        gram = grams[0] + mu * grams[1]
        mixed = np.einsum("ikl,il->ik", gram, P)
        form = np.einsum("ikk->ik", gram) - 2.0 * mixed + np.einsum("ik,ik->i", mixed, P)[:, None]
        reach = np.sqrt(np.maximum(form, 0.0) + (squares * (2.0 / float(shifted[0])))[:, None])
        found.append((np.ascontiguousarray(above(reach).T), flips[0], flips[1]))
    return found
