r"""A linear model under cross-entropy: a flip cannot have moved the parameters far, because the loss is convex.

With inputs :math:`\phi = (x, 1)`, flipping the label of sample i adds :math:`(\eta / B)\, \delta_i \phi_i^\top` to a
step, :math:`\delta_i` being the new one-hot label minus the old one, whatever the parameters are. From then on the
change evolves like :math:`\Delta \leftarrow (I - \eta (H + \mu)) \Delta` with a Hessian
:math:`0 \preceq H \preceq L`, where :math:`L` is
half the largest eigenvalue of :math:`\Phi_B^\top \Phi_B / B`. Half way between the two ends,
:math:`\Delta` is multiplied by a known number, and off by at most :math:`\eta L / 2` times its norm. So a change is
*centre* times :math:`\delta_i \phi_i^\top`, which acts on a test point as a label's weight does in a label-linear
classifier, and something of norm at most :math:`\sqrt 2 \|\phi_i\|` times *spread*. Their magnitudes add up to *total*,
the contraction of convex gradient descent. Flips add up, so that the r largest effects bound what r flips do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.network._jit.top import flips_below
from flipcert.classifiers.network.intervals import rounding
from flipcert.classifiers.network.plan import Plan, Step
from flipcert.classifiers.network.squared import with_ones
from flipcert.classifiers.network.training import Samples, train
from flipcert.engine.blocks import map_rows


@dataclass(frozen=True)
class Influence:
    """What one flip of each sample can have done to the parameters so far.

    Attributes
    ----------
    centre, spread, total : ndarray of shape (n_samples,)
        As above.
    direct : ndarray of shape (n_samples,)
        Sum of the steps' rates that the sample had part in: its influence if the Hessian were zero.
    drift : float
        Norm of what rounding can add to the difference of two trainings.
    reach : float
        Largest norm of the parameters, under all labels.
    nominal : ndarray of shape (n_classes, n_features + 1)
        The parameters.
    """

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    total: NDArray[np.float64]
    direct: NDArray[np.float64]
    drift: float
    reach: float
    nominal: NDArray[np.float64]


class ConvexRun:
    """A training run with what flips can do to it."""

    def __init__(self, plan: Plan, samples: Samples) -> None:
        self.plan = plan
        self.samples = samples
        self.phi = with_ones(samples.inputs.numpy())
        self.codes = samples.codes.numpy()
        self.movable = samples.movable.numpy()
        # Products and norms of inputs are off by less than this, relative to norms.
        self.error = rounding(self.phi.shape[1])
        self.norms = norms(self.phi) * (1 + self.error)

    def influences(self) -> Iterator[Influence]:
        """At the start and after every step."""
        trajectory = train(self.plan, self.samples)
        nothing = np.zeros(self.codes.size)
        start = next(trajectory)[0].numpy()
        influence = Influence(nothing, nothing, nothing, nothing, 0.0, float(np.linalg.norm(start)), start)
        yield influence
        for step, (layer,) in zip(self.plan.steps, trajectory, strict=True):
            influence = self._after(influence, step, layer.numpy())
            yield influence

    def _after(self, before: Influence, step: Step, nominal: NDArray[np.float64]) -> Influence:
        keeps = self.plan.keeps(step)
        half = step.rate * self._curvature(step) / 2
        inside = np.zeros(self.codes.size)
        inside[step.rows] = step.rate / step.size
        with np.errstate(over="ignore", invalid="ignore"):
            growth = abs(keeps - half) + half
            total = (growth * before.total + inside) * (1 + rounding(4))
            after = Influence(
                centre=(keeps - half) * before.centre + inside,
                # What the recursion of the centre rounds away is put here.
                spread=abs(keeps - half) * before.spread + half * before.total + rounding(4) * total,
                total=total,
                direct=keeps * before.direct + inside,
                drift=growth * before.drift + 2 * self._rounding_of(step, before.reach),
                reach=0.0,
                nominal=nominal,
            )
            moved = np.sqrt(2) * float(total[self.movable] @ self.norms[self.movable])
            reach = (float(np.linalg.norm(nominal)) + moved) * (1 + rounding(self.codes.size)) + after.drift
        return replace(after, reach=reach)

    def _curvature(self, step: Step) -> float:
        """L: half the largest eigenvalue of the batch's second moments, rounded up."""
        batch = self.phi[step.rows]
        small = batch.T @ batch if batch.shape[0] > batch.shape[1] else batch @ batch.T
        largest = float(np.linalg.eigvalsh(small)[-1])
        # Errors of the product and, generously, of the eigenvalue; the trace bounds the norm.
        slack = rounding(batch.shape[0] + small.shape[0] ** 2) * float(np.trace(small))
        return (largest + slack) / (2 * step.size) * (1 + rounding(4))

    def _rounding_of(self, step: Step, reach: float) -> float:
        """Norm of the rounding errors of one step, for any parameters of at most this norm."""
        sizes = self.norms[step.rows]
        n_classes = self.plan.widths[-1]
        # Scores are off by so much, shares by no more than that and what exponentials add.
        single = self.error * sizes * reach + rounding(1000 + n_classes)
        summed = float(sizes @ (single + rounding(step.size) * (1 + single)))
        moved = step.rate / step.size * np.sqrt(n_classes)
        return float(moved * summed + rounding(1) * (reach + moved * sizes.sum()))


class Stability:
    """The bound at the end of training; all numbers of flips at once."""

    def __init__(self, run: ConvexRun, n_jobs: int | None) -> None:
        self._run = run
        self._n_jobs = n_jobs

    @cached_property
    def _end(self) -> Influence:
        for influence in self._run.influences():
            last = influence
        return last

    def raise_floor(
        self,
        X: NDArray[np.float64],
        scores: NDArray[np.float64],
        prediction: NDArray[np.int64],
        floor: NDArray[np.int64],
        limit: int,
    ) -> None:
        """Raise what is proven for each row and class: numbers of flips that do not lead there."""
        run, end = self._run, self._end
        extra = run.norms * (end.spread + 2 * run.error * np.abs(end.centre))

        def block(rows: slice) -> None:
            points = Points.of(X[rows], scores[rows], prediction[rows], end, run)
            counts = points.count_flips(points.products * end.centre, extra, points.leads)
            np.maximum(floor[rows], np.minimum(counts, limit), out=floor[rows])

        map_rows(block, X.shape[0], 16 * run.codes.size, self._n_jobs)


@dataclass(frozen=True)
class Points:
    """Test points beside a training run.

    Attributes
    ----------
    products : ndarray of shape (rows, n_samples)
        Inner products with the training samples, the bias included.
    sizes : ndarray of shape (rows,)
        Norms, rounded up.
    prediction : ndarray of shape (rows,)
    leads : ndarray of shape (rows, n_classes)
        By how much the predicted class leads each other one, less what rounding could take from that.
    run : ConvexRun
    """

    products: NDArray[np.float64]
    sizes: NDArray[np.float64]
    prediction: NDArray[np.int64]
    leads: NDArray[np.float64]
    run: ConvexRun

    @classmethod
    def of(
        cls,
        X: NDArray[np.float64],
        scores: NDArray[np.float64],
        prediction: NDArray[np.int64],
        end: Influence,
        run: ConvexRun,
    ) -> Points:
        """Measure test points."""
        phi = with_ones(X)
        sizes = norms(phi) * (1 + run.error)
        with np.errstate(over="ignore", invalid="ignore"):
            slack = sizes * (2 * end.drift + 8 * run.error * end.reach)
        ahead = np.take_along_axis(scores, prediction[:, None], axis=1) - scores
        return cls(phi @ run.phi.T, sizes, prediction, ahead * (1 - rounding(1)) - slack[:, None], run)

    def count_flips(
        self, weights: NDArray[np.float64], extra: NDArray[np.float64], limits: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """How many flips leave each class behind the predicted one, if their effects must stay below a limit.

        A flip's effect is that of a label's weight, and at most the extra part times twice the norm of the point.
        """
        counts = np.empty(limits.shape, np.int64)
        smaller = limits * (1 - rounding(self.run.codes.size))
        flips_below(weights, extra, 2 * self.sizes, self.run.codes, self.run.movable, self.prediction, smaller, counts)
        return counts


def norms(phi: NDArray[Any]) -> NDArray[np.float64]:
    """Euclidean norm of each row."""
    return np.sqrt(np.einsum("ij,ij->i", phi, phi))
