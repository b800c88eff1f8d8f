"""What noise on labels proves: from the probability that a class is not ahead to flips that leave it below one half.

Each label is kept with probability 1 - q, else replaced by one of the K - 1 others, all equally probable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.smoothing._jit.binned import chernoff_rows, new_bins
from flipcert.classifiers.smoothing._jit.chernoff import sharpen_rows
from flipcert.classifiers.smoothing._jit.critical import critical_table
from flipcert.classifiers.smoothing._jit.withstand import withstand_rows
from flipcert.classifiers.smoothing.noise_curves import noise_curves
from flipcert.labels.labels import Labels


@dataclass
class LabelNoise:
    """Noise of one model."""

    flip_probability: float
    n_classes: int

    def __post_init__(self) -> None:
        # Critical probabilities found so far; longer when a less probable event asks for it.
        self._critical = np.empty(0)

    @property
    def _law(self) -> tuple[float, float, float]:
        """Probability of the label itself, of each other one, and of all but two others."""
        q, others = self.flip_probability, self.n_classes - 1
        return 1.0 - q, q / others, q * (others - 1) / others

    @property
    def divergence(self) -> float:
        """Kullback-Leibler divergence between the noisy laws of a label and of the flipped one."""
        keep, move, _ = self._law
        return (keep - move) * math.log(keep / move)

    @property
    def binary_divergence(self) -> float:
        """Divergence as if there were two classes, as published: too small for more."""
        return LabelNoise(self.flip_probability, 2).divergence

    def chernoff(
        self,
        weights: NDArray[np.floating],
        labels: Labels,
        prediction: NDArray[np.int64],
        flips_of: Callable[[NDArray[np.float64]], NDArray[np.int64]] | None = None,
    ) -> NDArray[np.float64]:
        """Logarithm of a bound on the probability that the prediction is not ahead of each class.

        The smallest Chernoff bound; or, to save time, one from which ``flips_of`` tells the same number.
        """
        law, codes = self._law, labels.coded.codes
        shape = (weights.shape[0], self.n_classes)
        log_p, hope, times = np.empty(shape), np.empty(shape), np.empty(shape)
        bins = new_bins(weights.shape[1], self.n_classes)
        chernoff_rows(weights, codes, prediction, noise_curves(law), law[1], bins, log_p, hope, times)
        wanted = np.ones(shape, np.bool_) if flips_of is None else flips_of(hope) > flips_of(log_p)
        sharpen_rows(weights, codes, prediction, law, wanted, times, log_p)
        return log_p

    def white_box_costs(
        self, weights: NDArray[np.floating], labels: Labels, prediction: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """One flip more than are sure to leave the Chernoff bound of each class below one half."""
        law = self._law
        costs = np.zeros((weights.shape[0], self.n_classes), np.int64)
        bins = new_bins(weights.shape[1], self.n_classes)
        withstand_rows(weights, labels.coded, prediction, law, noise_curves(law), bins, labels.unreachable, costs)
        return costs

    def neyman_pearson_flips(self, log_p: NDArray[np.float64], most: int) -> NDArray[np.int64]:
        """Largest number of flips, up to ``most``, after which events are less probable than one half."""
        lowest = float(log_p.min(initial=0.0))
        table = self._critical
        if table.size < most and (table.size == 0 or table[-1] >= lowest):
            # Half as far again, so that the next block finds it long enough.
            self._critical = table = critical_table(self.flip_probability, self.n_classes, 1.5 * lowest, most)
        # Critical probabilities fall; those above log_p are passed.
        return np.searchsorted(-np.minimum.accumulate(table[:most]), -log_p, side="left").astype(np.int64)

    def divergence_flips(self, log_p: NDArray[np.float64], most: int, *, published: bool) -> NDArray[np.int64]:
        """Flips that the divergence proves harmless; ``published`` takes that of two classes, and the radius itself."""
        p = np.exp(np.minimum(log_p, math.log(0.5)))
        # -log(4 p (1 - p)), in terms of log p, which may be far below what a double can hold as p
        evidence = -(math.log(4.0) + np.minimum(log_p, math.log(0.5)) + np.log1p(-p))
        radius = np.maximum(evidence, 0.0) / (2.0 * (self.binary_divergence if published else self.divergence))
        flips = np.floor(radius) if published else np.ceil(radius * (1.0 - 1e-12)) - 1.0
        return np.clip(flips, 0, most).astype(np.int64)
