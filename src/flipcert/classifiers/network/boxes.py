"""Abstract gradient training: boxes that contain the parameters after every step, whichever labels were flipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.network import intervals
from flipcert.classifiers.network.full_batch import FullBatch
from flipcert.classifiers.network.intervals import Box, rounding
from flipcert.classifiers.network.plan import Plan, Step, load_torch
from flipcert.classifiers.network.search import Kept, raise_floor
from flipcert.classifiers.network.training import Samples, pieces, train, with_ones
from flipcert.engine.blocks import map_rows, map_threads
from flipcert.exceptions import CertificateError

if TYPE_CHECKING:
    from torch import Tensor


class Boxes:
    """Final parameter boxes for any number of flips. One run of training serves all test points.

    If only the smallest cost of a row is of interest, the search asks whether *any* class can win: fewer trials.
    """

    def __init__(self, plan: Plan, samples: Samples, n_jobs: int | None, smallest: bool = False) -> None:
        self._plan = plan
        self._samples = samples
        self._n_jobs = n_jobs
        self._smallest = smallest
        self._full_batch = FullBatch(plan, samples, n_jobs) if plan.linear and plan.full_batches else None
        self._known: Kept[list[Box] | None] = Kept(
            16 * sum((inputs + 1) * units for inputs, units in pairwise(plan.widths))
        )

    def raise_floor(
        self,
        X: NDArray[np.float64],
        scores: NDArray[np.float64],
        prediction: NDArray[np.int64],
        floor: NDArray[np.int64],
        limit: int,
    ) -> None:
        """Raise what is proven for each row and class: numbers of flips that do not lead there."""
        torch = load_torch()
        inputs, predicted = torch.from_numpy(X), torch.from_numpy(prediction)
        bytes_per_row = 128 * max(self._plan.widths)

        def hope(flips: int, which: NDArray[np.bool_]) -> NDArray[np.int64]:
            found = np.full(floor.shape, -1)
            layers = self.after(flips)
            if layers is None:
                return found
            asked = np.flatnonzero(which.any(axis=1))

            def block(part: slice) -> None:
                rows = asked[part]
                excluded = cannot_win(layers, inputs[rows], predicted[rows]).numpy()
                if self._smallest:
                    np.put_along_axis(excluded, prediction[rows, None], True, axis=1)
                    excluded = excluded.all(axis=1, keepdims=True)
                found[rows] = np.where(excluded, limit, -1)

            map_rows(block, asked.size, bytes_per_row, self._n_jobs)
            return found

        raise_floor(floor, hope, limit)
        if self._full_batch is not None:
            self._full_batch.release()

    def after(self, flips: int) -> list[Box] | None:
        """Box of every layer at the end of training; None if it overflowed."""
        return self._known.get(flips, self._last)

    def _last(self, flips: int) -> list[Box] | None:
        layers = None
        for layers in self.every_step(flips):
            if not all(layer.finite() for layer in layers):
                return None
        return layers

    def every_step(self, flips: int) -> Iterator[list[Box]]:
        """Boxes at the start and after every step; the nominal parameters must lie inside."""
        layers: list[Box] = []
        for number, nominal in enumerate(self._trajectory()):
            if number == 0:
                layers = [Box.point(layer) for layer in nominal]
            else:
                layers = self._take_step(self._plan.steps[number - 1], layers, flips)
            finite = all(box.finite() for box in layers)
            if finite and not all(box.holds(layer) for box, layer in zip(layers, nominal, strict=True)):
                raise CertificateError(f"nominal parameters left their box in step {number}; please report this.")
            yield layers

    def _trajectory(self) -> Iterable[list[Tensor]]:
        return train(self._plan, self._samples) if self._full_batch is None else self._full_batch.trajectory()

    def _take_step(self, step: Step, layers: list[Box], flips: int) -> list[Box]:
        if self._full_batch is None:
            return take_step(self._plan, step, layers, self._samples.at(step), flips, self._n_jobs)
        total = self._full_batch.sum_of_gradients(layers[0], flips)
        return [_update(layers[0], total, self._plan.keeps(step), step.rate / step.size)]


def take_step(plan: Plan, step: Step, layers: list[Box], batch: Samples, flips: int, n_jobs: int | None) -> list[Box]:
    """One step of gradient descent under all attacks with at most so many flips."""
    outputs = [Box.point(batch.inputs)]
    for layer in layers[:-1]:
        outputs.append(intervals.relu(intervals.affine(outputs[-1], layer)))
    clean, flipped = intervals.loss_gradients(
        intervals.affine(outputs[-1], layers[-1]), batch.codes, batch.movable, plan.loss
    )
    updated = []
    for layer, inputs in zip(reversed(layers), reversed(outputs), strict=True):
        total = _sum_of_gradients(clean, flipped, inputs, flips, plan.clip, n_jobs)
        updated.append(_update(layer, total, plan.keeps(step), step.rate / step.size))
        if inputs is not outputs[0]:
            weights = layer.columns(slice(0, -1))
            clean, flipped = (
                intervals.through_relu(intervals.product(back, weights), inputs) for back in (clean, flipped)
            )
    return updated[::-1]


def cannot_win(layers: list[Box], inputs: Tensor, prediction: Tensor) -> Tensor:
    """Classes whose score stays below another one's, for each row.

    Against the predicted class the *difference* of the last layers is bounded, which is sharper where the inputs of the
    last layer are not known exactly.
    """
    torch = load_torch()
    hidden = Box.point(inputs)
    for layer in layers[:-1]:
        hidden = intervals.relu(intervals.affine(hidden, layer))
    last = layers[-1]
    scores = intervals.affine(hidden, last)
    excluded = scores.lower.amax(dim=1, keepdim=True) > scores.upper
    if hidden.is_point:
        return excluded
    for winner in torch.unique(prediction).tolist():
        rows = prediction == winner
        own = Box(hidden.lower[rows], hidden.upper[rows])
        ahead = Box(last.lower[winner] - last.upper, last.upper[winner] - last.lower)
        sizes = last.magnitude[winner] + last.magnitude
        # Scores are rounded one by one before they are compared.
        slack = (own.magnitude @ sizes[:, :-1].T + sizes[:, -1]) * rounding(own.lower.shape[1])
        excluded[rows] |= intervals.affine(own, ahead).lower - slack > 0
    return excluded


def _sum_of_gradients(clean: Box, flipped: Box, inputs: Box, flips: int, clip: float | None, n_jobs: int | None) -> Box:
    """Sum of the samples' gradients if at most so many of them, other ones for each parameter, have a flipped label."""
    torch = load_torch()
    inputs = Box.point(with_ones(inputs.lower)) if inputs.is_point else Box(*(with_ones(end) for end in inputs))
    n_samples, n_inputs = inputs.lower.shape
    n_units = clean.lower.shape[1]
    lower, upper = (inputs.lower.new_empty(n_units, n_inputs) for _ in range(2))

    def sum_piece(piece: tuple[slice, slice]) -> None:
        units, columns = piece
        below, above = _single_gradients(clean, inputs, units, columns, clip)
        lower[units, columns], upper[units, columns] = below.sum(dim=2), above.sum(dim=2)
        if flips:
            lowest, highest = _single_gradients(flipped, inputs, units, columns, clip)
            lower[units, columns] -= _largest(below.sub_(lowest), flips)
            upper[units, columns] += _largest(highest.sub_(above), flips)

    map_threads(sum_piece, pieces(n_units, n_inputs, n_samples), n_jobs)
    sizes = torch.maximum(clean.magnitude, flipped.magnitude).T @ inputs.magnitude
    return Box(lower, upper).widened(sizes * rounding(n_samples) + 1e-290)


def _single_gradients(
    back: Box, inputs: Box, units: slice, columns: slice, clip: float | None
) -> tuple[Tensor, Tensor]:
    """Lower and upper ends of every sample's gradient, for a piece of a layer."""
    torch = load_torch()
    below, above = (end.T[units, None] for end in back)
    low, high = (end.T[None, columns] for end in inputs)
    if inputs.is_point:
        corner, other = below * low, above * low
        ends = torch.minimum(corner, other), torch.maximum(corner, other)
    else:
        # What hidden units put out is not negative.
        ends = torch.minimum(below * low, below * high), torch.maximum(above * low, above * high)
    return ends if clip is None else (ends[0].clamp_(-clip, clip), ends[1].clamp_(-clip, clip))


def _largest(gains: Tensor, count: int) -> Tensor:
    """Sum of the largest entries along the samples, none of which counts if it is negative."""
    gains = gains.clamp_(min=0)
    return gains.sum(dim=2) if count >= gains.shape[2] else gains.topk(count, dim=2, sorted=False).values.sum(dim=2)


def _update(layer: Box, total: Box, keeps: float, rate: float) -> Box:
    """Parameters after a step."""
    torch = load_torch()
    ends = (layer.lower * keeps, layer.upper * keeps)
    slack = (layer.magnitude * abs(keeps) + total.magnitude * rate) * rounding(1) + 1e-290
    return Box(torch.minimum(*ends) - total.upper * rate - slack, torch.maximum(*ends) - total.lower * rate + slack)
