r"""Boxes of a linear model that sees all samples in every step: many numbers of flips at the price of a few.

The gradient of sample i for the weight of class c and feature j is :math:`b_{ic} x_{ij}`. Its interval under the label
as it is adds up to two matrix products, with the centres and the radii of :math:`b`; what flips add to that is known
before the first step (`flip_gains`), but for those entries of the inputs that are large enough to meet the clip, which
are looked at one by one (`_clipped`). The first step starts from a point, so that its products serve all numbers of
flips.

Rounding: with u = 2**-53 and S the sum of the n samples' largest magnitudes for a parameter, training's own sum is off
by (n + 1) u S, and so is each of the two products; centres and radii are rounded to u. Prefix sums of gains are off by
n u times their sum, at most 2 S; what is beyond the table, by as much again. Sums of what the clip takes away are off
by (n + 3) u S. A gain itself is taken for the difference of two ends that went through three roundings each: 20 u of a
sample's magnitude. That is less than (9 n + 40) u S; the slack, twice `rounding`, is (16 n + 128) u S.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.network import intervals
from flipcert.classifiers.network.flip_gains import FlipGains
from flipcert.classifiers.network.intervals import Box, rounding
from flipcert.classifiers.network.plan import Plan, load_torch
from flipcert.classifiers.network.training import Samples, train, with_ones
from flipcert.engine.blocks import map_rows

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class _Pass:
    """What one look at all samples gives: sums as the labels are, without the clip, and gradients of the loss."""

    lower: Tensor
    upper: Tensor
    sizes: Tensor
    back: tuple[NDArray[np.float64], NDArray[np.float64]]


class FullBatch:
    """Sums of gradients for any parameters and number of flips."""

    def __init__(self, plan: Plan, samples: Samples, n_jobs: int | None) -> None:
        self._plan = plan
        self._samples = samples
        self._n_jobs = n_jobs
        self.release()

    def release(self) -> None:
        """Give up what is large and can be computed again; a thread that is using it holds it by itself."""
        self._gains: FlipGains | None = None
        self._first: _Pass | None = None
        self._nominal: list[list[Tensor]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_gains": None, "_first": None, "_nominal": None}

    def trajectory(self) -> Iterable[list[Tensor]]:
        """Parameters at the start and after every step, trained once."""
        nominal = self._nominal
        if nominal is None:
            self._nominal = nominal = list(train(self._plan, self._samples))
        return nominal

    def sum_of_gradients(self, layer: Box, flips: int) -> Box:
        """Sum of the gradients if at most so many samples, other ones for each parameter, have a flipped label."""
        torch = load_torch()
        gains = self._gains
        if gains is None:
            self._gains = gains = FlipGains(self._plan, self._samples, self._n_jobs)
        sums = self._pass(layer)
        lowered, raised = gains.of(flips, sums.back, layer.is_point)
        total = Box(sums.lower - torch.from_numpy(lowered), sums.upper + torch.from_numpy(raised))
        return total.widened(sums.sizes * (2 * rounding(self._samples.codes.shape[0])) + 1e-290)

    def _pass(self, layer: Box) -> _Pass:
        if not layer.is_point:
            return self._look(layer)
        first = self._first
        if first is None:
            self._first = first = self._look(layer)
        return first

    def _look(self, layer: Box) -> _Pass:
        torch = load_torch()
        samples = self._samples
        n_samples, n_classes = samples.codes.shape[0], layer.lower.shape[0]
        # Gradients of single samples are needed for the clip only.
        back = np.empty((2, n_samples if self._plan.clip is not None else 0, n_classes))

        def block(rows: slice) -> tuple[Tensor, Tensor, Tensor]:
            inputs = with_ones(samples.inputs[rows])
            scores = intervals.affine(Box.point(inputs[:, :-1]), layer)
            clean, flipped = intervals.loss_gradients(
                scores, samples.codes[rows], samples.movable[rows], self._plan.loss
            )
            if back.size:
                back[0, rows], back[1, rows] = clean.lower.numpy(), clean.upper.numpy()
            middle = (0.5 * (clean.lower + clean.upper)).T @ inputs
            sizes = torch.maximum(clean.magnitude, flipped.magnitude)
            radius, size = (torch.cat([0.5 * (clean.upper - clean.lower), sizes], dim=1).T @ inputs.abs_()).chunk(2)
            return middle - radius, middle + radius, size

        # A row is copied, and its magnitudes are; few are taken at a time, so that they stay near the core.
        parts = map_rows(block, n_samples, 64 * sum(self._plan.widths), self._n_jobs)
        lower, upper, sizes = (torch.stack(ends).sum(dim=0) for ends in zip(*parts, strict=True))
        return _Pass(lower, upper, sizes, (back[0], back[1]))
