"""A set of flips in the making: candidates, and exchanges of the flips in hand for better ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from flipcert.collective._jit.exchange import slopes, trials
from flipcert.collective.points import LinearPoints
from flipcert.engine.blocks import one_blas_thread
from flipcert.engine.clock import working_time

# Candidates: this many, or so many for each flip; all samples if they are hardly more. Their weights are held.
_CANDIDATES, _CANDIDATES_PER_FLIP, _CANDIDATE_BYTES = 1500, 12, 2**28
# Part of the time for choosing candidates, which takes passes over all weights.
_RENEWING = 0.4
# Flips that are tried for the place of one, and places after which they are chosen anew.
_TRIED, _LASTS = 400, 20
# A part of the budget; if fewer flips moved in a sweep, things have settled.
_STILL = 0.03
# What a point that is all but changed counts for beside one that is changed.
_NEARLY = 0.6
# A lead below this part of the largest score counts as a tie.
_TIE = 1e-11
_TINY = np.finfo(np.float64).tiny


class Exchange:
    """Points that one attack is to change, candidates for its flips, and the flips in hand.

    A deadline ends every step early; what is in hand is an attack at any time. If the label space is read from the
    labels, no class but those in ``removed`` loses its last label, and these lose all of theirs: their samples are
    flips in hand from the beginning, and the points that were in such a class are changed.
    """

    def __init__(
        self, points: LinearPoints, budget: int, deadline: float, seed: int, removed: tuple[int, ...] = ()
    ) -> None:
        self.points, self.budget, self.deadline = points, budget, deadline
        self.random = np.random.RandomState(seed)
        self._labels = points.labels
        self._removed = list(removed)
        self.classes = np.setdiff1d(np.arange(self._labels.n_classes), removed)
        self.held = np.flatnonzero(np.isin(self._labels.codes, removed))
        self._rest = np.flatnonzero(~np.isin(points.prediction, removed))
        self.n_removed = points.n_points - self._rest.size
        self.own = points.prediction[self._rest]
        self.base = _untied(points.scores[self._rest], self.own)
        self.base[self._removed] = -np.inf
        self.scores = self.base
        lead = np.maximum(self.leads(), 0.0)
        # Points that all but tie would outweigh everything.
        self.scale = np.maximum(lead, max(1e-3 * float(np.median(lead)) if lead.size else 0.0, _TINY))
        self._all_in = False
        self._admit(np.empty(0, np.int64))
        self._renewing = 0.0
        self._since = working_time()

    @property
    def n_points(self) -> int:
        """Points that flips are to change; those of removed classes are changed already."""
        return self._rest.size

    @property
    def n_movable(self) -> int:
        """Samples whose labels can be flipped."""
        return self._labels.n_movable

    def late(self) -> bool:
        """Whether there is no more time."""
        return working_time() >= self.deadline

    def leads(self) -> NDArray[np.float64]:
        """By how much each point's class leads all others; below 0, its prediction is changed."""
        rivals = self.scores.copy()
        places = np.arange(self.n_points)
        rivals[self.own, places] = -np.inf
        return self.scores[self.own, places] - rivals.max(axis=0)

    def n_changed(self) -> int:
        """Points that the flips in hand change."""
        return int(np.count_nonzero(self.leads() < 0)) + self.n_removed

    def worth(self, heat: float) -> float:
        """Changed points, and others by their nearness."""
        lead = self.leads()
        near = np.clip(1 - lead / (8 * heat * self.scale), 0.0, 1.0) ** 8
        return float(np.where(lead < 0, 1.0, _NEARLY * near).sum())

    def flips(self) -> dict[int, int]:
        """The flips in hand: the new class of each sample."""
        flipped = np.flatnonzero(self._to != self.codes)
        return dict(zip(self.samples[flipped].tolist(), self._to[flipped].tolist(), strict=True))

    # Candidates

    def renew(self, flips: dict[int, int], weight: NDArray[np.float64], heat: float, also: Iterable[int] = ()) -> None:
        """Take up these flips, with candidates that suit them; the old candidates stay where new ones cost too much."""
        begin = working_time()
        if set(flips) <= self._place.keys():
            self.take(flips)
            if self._all_in or self._renewing > _RENEWING * (begin - self._since):
                return
        else:
            self._admit(np.union1d(self.held, list(flips)).astype(np.int64))
            self.take(flips)
        wanted = np.unique(np.array([*flips, *also, *self.held.tolist()], np.int64))
        size = max(_CANDIDATES, _CANDIDATES_PER_FLIP * self.budget)
        size = min(size, max(2 * self.budget, _CANDIDATE_BYTES // (8 * max(1, self.n_points))))
        movable = np.flatnonzero(self._labels.coded.movable)
        self._all_in = movable.size <= 1.5 * size
        if not self._all_in:
            pull = self._pull(weight, heat)
            gain = pull[:, self.classes].max(axis=1) - pull[np.arange(len(pull)), self._labels.codes]
            best = np.argpartition(-gain[movable], size)[:size]
            movable = np.union1d(movable[best], wanted)
        self._admit(movable)
        self.take(flips)
        self._renewing += working_time() - begin

    def _pull(self, weight: NDArray[np.float64], heat: float) -> NDArray[np.float64]:
        slope = np.zeros((self.points.n_points, self._labels.n_classes))
        slope[self._rest] = self._slopes(weight, heat).T
        return self.points.pull(slope)

    def _admit(self, samples: NDArray[np.int64]) -> None:
        self.samples = samples
        self.codes = self._labels.codes[samples]
        weights = self.points.columns(samples)[self._rest] if samples.size else np.empty((self.n_points, 0))
        self.rows = np.ascontiguousarray(weights.T)
        self._light = self.rows.astype(np.float32)
        self._place = dict(zip(samples.tolist(), range(samples.size), strict=True))
        self._pinned = np.isin(samples, self.held)
        self._each = np.arange(samples.size)

    def admit_all(self) -> None:
        """Make candidates of all samples, those that must be flipped first."""
        others = np.setdiff1d(np.flatnonzero(self._labels.coded.movable), self.held)
        self._admit(np.append(self.held, others))

    def all_flips(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All candidates with all labels but their own, by class and label."""
        which, new = np.repeat(self._each, self.classes.size), np.tile(self.classes, self.samples.size)
        order = np.lexsort((new, self.codes[which]))
        which, new = which[order], new[order]
        other = self.codes[which] != new
        return which[other], new[other]

    def labels_left(self) -> NDArray[np.int64]:
        """Labels of each class before the attack; more than enough, where a class may lose them all."""
        if self._labels.space_is_fixed:
            return np.full(self._labels.n_classes, self._labels.n_labels + self.budget + 1)
        return np.bincount(self._labels.codes, minlength=self._labels.n_classes)

    def take(self, flips: dict[int, int]) -> None:
        """Begin with these flips, all of candidates."""
        self._to = self.codes.copy()
        self.scores = self.base.copy()
        self._left = self.labels_left()
        for sample, to in flips.items():
            self._set(self._place[sample], to)
        for p in np.flatnonzero(self._pinned & (self._to == self.codes)).tolist():
            self._set(p, int(self.classes[self.random.randint(self.classes.size)]))

    # Exchanges

    def _set(self, p: int, to: int) -> None:
        old, row = self._to[p], self.rows[p]
        self.scores[old] -= row
        self.scores[to] += row
        self._left[old] -= 1
        self._left[to] += 1
        self._to[p] = to

    def _may_leave(self, p: int) -> bool:
        """Whether the class of a candidate keeps a label without it."""
        return bool(self._left[self._to[p]] > 1)

    def _in_hand(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._to != self.codes)

    def _slopes(self, weight: NDArray[np.float64], heat: float) -> NDArray[np.float64]:
        out = np.empty(self.scores.shape)
        slopes(self.scores, self.own, self.scale, weight, heat, out)
        return out

    def _gains(self, weight: NDArray[np.float64], heat: float) -> NDArray[np.float32]:
        """What each candidate adds with each label, to first order; minus infinity for its own and for removed ones."""
        slope = self._slopes(weight, heat)
        slope /= max(float(np.abs(slope).max(initial=0.0)), _TINY)
        with one_blas_thread:
            gains = self._light @ slope.T.astype(np.float32)
        gains -= gains[self._each, self.codes][:, None]
        gains[self._each, self.codes] = -np.inf
        gains[:, self._removed] = -np.inf
        return gains

    def anneal(self, weight: NDArray[np.float64], hot: float, cold: float, steps: int) -> None:
        """Exchange many flips at a time by their slopes, fewer and fewer, while the sigmoids become steep."""
        for step in range(steps):
            if self.late():
                return
            done = step / steps
            gains = self._gains(weight, hot * (cold / hot) ** done)
            label = gains.argmax(axis=1)
            best = gains[self._each, label]
            inside = self._in_hand()
            for p in inside[best[inside] > gains[inside, self._to[inside]]]:
                if self._may_leave(p):
                    self._set(p, label[p])
            worst = inside[~self._pinned[inside]]
            worst = worst[np.argsort(gains[worst, self._to[worst]])]
            outside = np.flatnonzero((self._to == self.codes) & (best > 0))
            room = self.budget - inside.size
            swaps = max(1, int(0.15 * self.budget * (1 - done)))
            if outside.size > room + swaps:
                outside = outside[np.argpartition(-best[outside], room + swaps)[: room + swaps]]
            outside = outside[np.argsort(-best[outside])]
            for p in outside[:room]:
                if self._may_leave(p):
                    self._set(p, label[p])
            for q, p in zip(worst[:swaps], outside[room:], strict=False):
                if best[p] <= gains[q, self._to[q]]:
                    break
                if self._may_leave(q) and self._may_leave(p):
                    self._set(q, self.codes[q])
                    self._set(p, label[p])

    def settle(self, weight: NDArray[np.float64], heats: Iterable[float], sweeps: int = 10) -> None:
        """Take out each flip in turn and put in the best there is, by a count that grows steep; till nothing moves."""
        for heat in heats:
            for _ in range(sweeps):
                if self._sweep(weight, heat) <= _STILL * self.budget:
                    break
                if self.late():
                    return

    def _sweep(self, weight: NDArray[np.float64], heat: float) -> int:
        moved = self._fill(weight, heat)
        inside = self._in_hand()
        self.random.shuffle(inside)
        for k, q in enumerate(inside.tolist()):
            if self.late():
                break
            if k % _LASTS == 0:
                which, new = self._promising(weight, heat)
            if not self._may_leave(q):
                continue
            before = int(self._to[q])
            self._set(q, int(self.codes[q]))
            tried, to = self._others(q) if self._pinned[q] else (which, new)
            free = (self._to[tried] == self.codes[tried]) & (self._left[self.codes[tried]] > 1)
            tried, to = np.append(tried[free], q), np.append(to[free], before)
            worth = self._tried(tried, to, weight, heat)
            best = int(worth.argmax())
            if worth[best] <= worth[-1] * (1 + 1e-9):
                best = -1
            else:
                moved += 1
            self._set(int(tried[best]), int(to[best]))
        return moved

    def _fill(self, weight: NDArray[np.float64], heat: float) -> int:
        """Put in the best flips while there is room."""
        moved = 0
        room = self.budget - self._in_hand().size
        for k in range(room):
            if self.late():
                break
            if k % _LASTS == 0:
                which, new = self._promising(weight, heat)
            free = (self._to[which] == self.codes[which]) & (self._left[self.codes[which]] > 1)
            if not free.any():
                break
            worth = self._tried(which[free], new[free], weight, heat)
            best = int(worth.argmax())
            self._set(int(which[free][best]), int(new[free][best]))
            moved += 1
        return moved

    def _promising(self, weight: NDArray[np.float64], heat: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Candidates and labels with the largest gains to first order, by class and label."""
        gains = self._gains(weight, heat)
        gains[self._pinned] = -np.inf
        flat = gains.ravel()
        best = np.argpartition(-flat, _TRIED)[:_TRIED] if flat.size > _TRIED else np.arange(flat.size)
        best = best[np.isfinite(flat[best])]
        which, new = np.divmod(best, gains.shape[1])
        order = np.lexsort((new, self.codes[which]))
        return which[order], new[order]

    def _others(self, p: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """A candidate with all labels but its own."""
        return np.full(self.classes.size, p), self.classes

    def _tried(
        self, which: NDArray[np.int64], new: NDArray[np.int64], weight: NDArray[np.float64], heat: float
    ) -> NDArray[np.float64]:
        worth = np.empty(which.size)
        unit = heat * self.scale
        trials(self.rows, which, self.codes[which], new, self.scores, self.own, unit, weight, _NEARLY, worth)
        return worth

    def needed(self, flips: dict[int, int]) -> list[tuple[int, int]]:
        """The flips without which fewer points are changed, those that contribute most first."""
        self._admit(np.array(sorted(flips), np.int64))
        self.take(flips)
        changed = np.flatnonzero(self.leads() < 0)
        rivals = self.scores[:, changed].copy()
        rivals[self.own[changed], np.arange(changed.size)] = -np.inf
        winner = rivals.argmax(axis=0)
        # A flip moves its weight towards the winner, or away from the class that was predicted, or both.
        new, old, own = self._to[:, None], self.codes[:, None], self.own[changed]
        moves = (new == winner).astype(np.int64) - (old == winner) - (new == own) + (old == own)
        share = (moves * self.rows[:, changed] / self.scale[changed]).sum(axis=1)
        count = self.n_changed()
        for p in np.argsort(share, kind="stable").tolist():
            label = int(self._to[p])
            if self._pinned[p] or not self._may_leave(p):
                continue
            self._set(p, int(self.codes[p]))
            if self.n_changed() < count:
                self._set(p, label)
        order = [p for p in np.argsort(-share, kind="stable").tolist() if self._to[p] != self.codes[p]]
        return [(int(self.samples[p]), int(self._to[p])) for p in order]

    def drop(self, share: float) -> None:
        """Take out a random part of the flips."""
        inside = self._in_hand()
        inside = inside[~self._pinned[inside]]
        self.random.shuffle(inside)
        for q in inside[: max(1, round(share * inside.size))]:
            if self._may_leave(q):
                self._set(q, int(self.codes[q]))


def _untied(scores: NDArray[np.float64], own: NDArray[np.int64]) -> NDArray[np.float64]:
    """Scores of shape (n_classes, n_points) that hardly differ, in which no class ties with a point's own.

    A smaller class wins a tie, so it is lifted a little, by more than sums are rounded by.
    """
    little = _TIE * np.abs(scores).max(axis=1, initial=0.0)
    classes = np.arange(scores.shape[1])[:, None]
    return np.ascontiguousarray(scores.T + np.sign(own - classes) * little)
