r"""A linear model under cross-entropy, trained on full batches: intervals for scores instead of parameters.

A flip has a *direct* effect on the score of class c at a point x, :math:`w\, \delta_{i,c} \phi_i^\top \phi_x` with w
the sum of the rates so far, and an *indirect* one: what it did to earlier scores of the training samples moved the
shares p that later gradients are made of,
:math:`-\sum_s (\eta_s / n) \sum_i \phi_i^\top \phi_x \Delta p_i^s`. The r largest
direct effects bound the first, once for all steps together; intervals for all training scores, step by step, bound the
second. The training scores are also bounded by convexity (see `stability`); both hold, so their intersection does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.network._jit.top import top_sums
from flipcert.classifiers.network.intervals import Box, rounding, softmax, softmax_ahead
from flipcert.classifiers.network.plan import Plan, load_torch
from flipcert.classifiers.network.search import Kept, raise_floor
from flipcert.classifiers.network.stability import ConvexRun, Influence, Points
from flipcert.engine.blocks import map_rows, memory_budget

# Inner products of all training samples are held, and intervals grow from step to step.
_LARGEST, _MOST_STEPS = 4096, 20
# Part of the memory budget that tables may take.
_PART = 8


def applies(plan: Plan, n_samples: int) -> bool:
    """Whether the bound is worth its time: full batches, not too many samples or steps."""
    return (
        n_samples <= _LARGEST
        and len(plan.steps) <= _MOST_STEPS
        and all(step.size == n_samples and plan.keeps(step) >= 0 for step in plan.steps)
    )


@dataclass(frozen=True)
class Shares:
    """Scores of the training samples before one step, nominal shares, and what a change of them weighs at the end."""

    box: Box
    nominal: NDArray[np.float64]
    weight: float


class Steps:
    """All steps of a run."""

    def __init__(self, steps: list[Shares]) -> None:
        self._steps = steps
        self._ahead: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}

    def ahead(self, winner: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Middle and radius of the change of each sample's share of a class less those of others, over all steps."""
        if winner not in self._ahead:
            middle, radius = (np.zeros(self._steps[0].nominal.shape) for _ in range(2))
            # Before the first step, nothing differs yet.
            for step in self._steps[1:]:
                lowest, highest = (end.numpy() for end in softmax_ahead(step.box, winner))
                change = step.nominal[:, [winner]] - step.nominal
                middle += step.weight * ((lowest + highest) / 2 - change)
                radius += step.weight * ((highest - lowest) / 2 + _error(change))
            self._ahead[winner] = middle, radius
        return self._ahead[winner]


class FunctionSpace:
    """The bound for any number of flips. One run serves all test points."""

    def __init__(self, run: ConvexRun, n_jobs: int | None) -> None:
        self._run = run
        self._n_jobs = n_jobs
        n_classes = run.plan.widths[-1]
        self._known: Kept[Steps] = Kept(8 * run.codes.size * n_classes * (3 * len(run.plan.steps) + 2 * n_classes))

    def raise_floor(
        self,
        X: NDArray[np.float64],
        scores: NDArray[np.float64],
        prediction: NDArray[np.int64],
        floor: NDArray[np.int64],
        limit: int,
    ) -> None:
        """Raise what is proven for each row and class: numbers of flips that do not lead there."""
        run, end = self._run, self._influences[-1]
        extra = run.error * run.norms * end.direct

        def hope(flips: int, which: NDArray[np.bool_]) -> NDArray[np.int64]:
            steps = self._known.get(flips, self._propagate)
            asked = np.flatnonzero(which.any(axis=1))
            for winner in np.unique(prediction[asked]).tolist():
                steps.ahead(winner)
            found = np.full(floor.shape, -1)

            def block(part: slice) -> None:
                rows = asked[part]
                points = Points.of(X[rows], scores[rows], prediction[rows], end, run)
                # Nothing is asked where no lead is left.
                limits = np.where(which[rows], points.leads, -1.0)
                for winner in np.unique(points.prediction).tolist():
                    mine = points.prediction == winner
                    middle, radius = self._sums(points.products[mine], points.sizes[mine], *steps.ahead(winner))
                    limits[mine] -= middle + radius
                # More flips have more of an indirect effect, so that there is no hope beyond these.
                found[rows] = points.count_flips(points.products * end.direct, extra, limits)

            map_rows(block, asked.size, 24 * run.codes.size, self._n_jobs)
            return found

        raise_floor(floor, hope, min(limit, self._tables[0].shape[2] - 1))

    def _sums(
        self,
        products: NDArray[np.float64],
        sizes: NDArray[np.float64],
        middle: NDArray[np.float64],
        radius: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Middle and radius of the sums over samples of products with numbers known by middle and radius."""
        held = self._run.norms @ (np.abs(middle) + radius)
        slack = rounding(self._run.codes.size + self._run.phi.shape[1]) * sizes[:, None] * held
        return products @ middle, np.abs(products) @ radius + slack

    def _propagate(self, flips: int) -> Steps:
        """Intervals of the training scores before every step."""
        torch = load_torch()
        run, (raised, lowered) = self._run, self._tables
        most = np.sort(run.norms[run.movable])[::-1][:flips].sum()
        n_classes = raised.shape[1]
        middle, radius = (np.zeros(raised.shape[:2]) for _ in range(2))
        shares: list[Shares] = []
        for step, before in zip(run.plan.steps, self._influences, strict=False):
            sizes, scores = run.norms[:, None], run.phi @ before.nominal.T
            error = sizes * (2 * run.error * before.reach + before.drift + flips * run.error * run.norms.max())
            # The direct effects and those of changed shares, or those half-way and what convexity leaves open.
            direct = before.direct[0]
            changed, unsure = self._sums(self._gram, run.norms, middle, radius) if shares else (middle, radius)
            up, down = direct * raised[:, :, flips] - changed + unsure, direct * lowered[:, :, flips] + changed + unsure
            centre, open_part = before.centre[0], before.spread[0] * most * np.sqrt(2 * (n_classes - 1) / n_classes)
            ends = (raised, lowered) if centre >= 0 else (lowered, raised)
            up, down = (
                np.minimum(own, abs(centre) * end[:, :, flips] + open_part * sizes)
                for own, end in zip((up, down), ends, strict=True)
            )
            with np.errstate(over="ignore", invalid="ignore"):
                held = (
                    before.total[0] * (raised[:, :, flips] + lowered[:, :, flips])
                    + np.abs(changed)
                    + unsure
                    + np.abs(scores)
                )
                slack = error * (1 + before.total[0]) + rounding(run.codes.size) * held
            box = Box(torch.from_numpy(scores - down - slack), torch.from_numpy(scores + up + slack))
            lowest, highest = (end.numpy() for end in softmax(box))
            nominal, keeps, weight = _softmax(scores), run.plan.keeps(step), step.rate / step.size
            middle = keeps * middle + weight * ((lowest + highest) / 2 - nominal)
            radius = keeps * radius + weight * ((highest - lowest) / 2 + _error(nominal))
            shares = [replace(earlier, weight=earlier.weight * keeps) for earlier in shares]
            shares.append(Shares(box, nominal, weight))
        return Steps(shares)

    @cached_property
    def _influences(self) -> list[Influence]:
        return list(self._run.influences())

    @cached_property
    def _gram(self) -> NDArray[np.float64]:
        return self._run.phi @ self._run.phi.T

    @cached_property
    def _tables(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Largest sums of inner products that flips add to, or take from, each class at each training sample."""
        run, n_classes = self._run, self._run.plan.widths[-1]
        size = self._run.codes.size
        most = min(int(run.movable.sum()), max(1, memory_budget() // _PART // (16 * size * n_classes)))
        raised, lowered = (np.empty((size, n_classes, most + 1)) for _ in range(2))
        for start in range(0, size, 256):
            rows = slice(start, start + 256)
            order = np.argsort(-np.abs(self._gram[rows]), axis=1)
            top_sums(self._gram[rows], order, run.codes, run.movable, raised[rows], lowered[rows])
        return raised, lowered


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _error(shares: NDArray[np.float64]) -> float:
    """By how much shares may be off in doubles."""
    return rounding(1000 + shares.shape[1])
