"""Fewest flips of one model, from its weights as whole numbers: all is sorted in full, nothing is rounded or left out.

Class c beats q if its score is larger, or the same and c < q. Scores are whole numbers: "larger" is "larger by one".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

NEVER = 10**12  # the cost of what no flips do


@dataclass(frozen=True)
class Voter:
    """Weights of a model for one test point, the class of each label, and which labels can be flipped."""

    w: list[int]
    y: list[int]
    free: list[bool]
    n_classes: int

    @classmethod
    def of(cls, weights: Sequence[float], y: list[int], free: list[bool], n_classes: int) -> Voter:
        """Take weights times a power of two that leaves no fractions; no comparison of scores changes."""
        ratios = [weight.as_integer_ratio() for weight in weights]
        scale = max((below for _, below in ratios), default=1)
        return cls([above * (scale // below) for above, below in ratios], y, free, n_classes)

    @property
    def scores(self) -> list[int]:
        """Sum of the weights of each class."""
        totals = [0] * self.n_classes
        for weight, label in zip(self.w, self.y, strict=True):
            totals[label] += weight
        return totals

    @property
    def vote(self) -> int:
        """The class with the largest score, the first of several."""
        scores = self.scores
        return scores.index(max(scores))

    @property
    def has_negative(self) -> bool:
        """Whether a weight is negative."""
        return min(self.w, default=0) < 0

    def change_cost(self, open_space: bool) -> int:
        """Fewest flips after which another class is predicted.

        In an open label space, only classes that hold a label can be predicted, and at least two must hold one.
        """
        first = self.vote
        rivals = [c for c in range(self.n_classes) if c != first]
        if not open_space:
            return min(self.rival_cost(c, first) for c in rivals)
        if len(rivals) == 1:
            return self._cost_leaving_both(rivals[0], first)
        own = [free for label, free in zip(self.y, self.free, strict=True) if label == first]
        return min(len(own) if all(own) else NEVER, *(self._cost_holding(c, first) for c in rivals))

    def class_costs(self) -> tuple[list[int], list[int]]:
        """Flips without which each class is not predicted, and flips that do it: the same if no weight is negative.

        Else they are for the cheapest class. For each class, flips are made that lift it above the class predicted now,
        largest gains first; whoever wins meanwhile can be reached by so many.
        """
        first = self.vote
        if not self.has_negative:
            costs = [0 if c == first else self._level_cost(c) for c in range(self.n_classes)]
            return costs, costs
        lower = [0 if c == first else NEVER for c in range(self.n_classes)]
        upper = list(lower)
        for c in (c for c in range(self.n_classes) if c != first):
            scores = self.scores
            for count, i in enumerate(_largest(self._gains(c, first)), start=1):
                scores[self.y[i]] -= self.w[i]
                scores[c if self.w[i] > 0 else first] += self.w[i]
                if scores[c] >= scores[first] + (first < c):
                    lower[c] = min(lower[c], count)
                winner = scores.index(max(scores))
                upper[winner] = min(upper[winner], count)
                if winner == c:
                    break
        return lower, upper

    def rival_cost(self, c: int, q: int) -> int:
        """Fewest flips that make c beat q: the largest gains first."""
        return _fewest(_sums(gain for gain in self._gains(c, q) if gain > 0), self._need(c, q))

    def _need(self, c: int, q: int) -> int:
        scores = self.scores
        return scores[q] - scores[c] + (q < c)

    def _gains(self, c: int, q: int) -> list[int]:
        """What a flip of each label closes of the gap between q and c: to c, or to q if its weight is negative."""
        labels = zip(self.w, self.y, self.free, strict=True)
        return [free * (2 * w if label == q else -2 * w if label == c else abs(w)) for w, label, free in labels]

    def _cost_holding(self, c: int, q: int) -> int:
        """Fewest flips that make c beat q and leave c a label: one that it keeps, or one that is flipped to it."""
        w, y, gains, need = self.w, self.y, self._gains(c, q), self._need(c, q)
        place = dict.fromkeys(range(len(y)), NEVER) | {i: k for k, i in enumerate(_largest(gains))}
        sums = _sums(gain for gain in gains if gain > 0)
        cost = _fewest(sums, need)
        if any(place[i] >= cost if y[i] == c else place[i] < cost and w[i] > 0 for i in place):
            return cost

        def without(i: int, need: int) -> int:
            """Fewest of the largest gains if that of label i is not among them."""
            count = _fewest(sums, need)
            return count if place[i] >= count else _fewest(sums, need + gains[i]) - 1

        kept = [without(i, need) for i in place if y[i] == c]
        come = [1 + without(i, need - w[i] * (1 + (y[i] == q))) for i in place if y[i] != c and self.free[i]]
        return min(kept + come, default=NEVER)

    def _cost_leaving_both(self, c: int, q: int) -> int:
        """Fewest flips that make c beat q, the only other class, and leave each of them a label."""
        need, labels = self._need(c, q), list(zip(self.w, self.y, self.free, strict=True))
        to_c = _sums(2 * w for w, label, free in labels if free and label == q)
        to_q = _sums(-2 * w for w, label, free in labels if free and label == c)
        rising, best, n_c, n_q = to_q[: to_q.index(max(to_q)) + 1], NEVER, self.y.count(c), self.y.count(q)
        for n_to_c, gained in enumerate(to_c):
            n_to_q = _fewest(rising, need - gained)
            if n_to_q == 0 and n_to_c == n_q:  # q would be empty: a label of c has to become q
                n_to_q = 1 if len(to_q) > 1 and gained + to_q[1] >= need else NEVER
            if n_to_c > 0 or n_to_q < n_c:
                best = min(best, n_to_c + n_to_q)
        return best

    def _level_cost(self, c: int) -> int:
        """Fewest flips that make c beat all others, if no weight is negative.

        All flips are to c. Each class gives its largest weights first, so the flips have one order: by the level of the
        class before it gives. Whatever c ends at, it takes the first m of them and beats the level of the next; if
        these m are not enough for that, it also takes the largest others.
        """
        levels, scores, w = [], self.scores, [own * free for own, free in zip(self.w, self.free, strict=True)]
        for q in (q for q in range(self.n_classes) if q != c):
            for i in _largest([own * (label == q) for own, label in zip(w, self.y, strict=True)]):
                levels.append((scores[q] + (q < c), i))
                scores[q] -= w[i]
            levels.append((scores[q] + (q < c), -1))  # what is left of q stays
        levels.sort(key=lambda level: -level[0])
        pool = sorted((i for _, i in levels if i >= 0), key=lambda i: -w[i])
        place = {i: k for k, i in enumerate(pool)}
        # The first m and the largest others, down to place `end` of the pool; at first all.
        forced: set[int] = set()
        have, others, end, best = scores[c] + sum(w[i] for i in pool), len(pool), len(pool), NEVER
        for m, (need, i) in enumerate(levels):
            while end > 0 and (pool[end - 1] in forced or have - w[pool[end - 1]] >= need):
                end -= 1
                others, have = (others, have) if pool[end] in forced else (others - 1, have - w[pool[end]])
            if have >= need:
                best = min(best, m + others)
            if i < 0 or m >= best:
                break
            forced.add(i)
            others, have = (others - 1, have) if place[i] < end else (others, have + w[i])
        return best


def _largest(gains: list[int]) -> list[int]:
    """Whose gains are positive, largest first."""
    return sorted((i for i, gain in enumerate(gains) if gain > 0), key=lambda i: -gains[i])


def _sums(gains: Iterable[int]) -> list[int]:
    """Sums of the largest gains: of none, of one, of two, ..."""
    return [0, *accumulate(sorted(gains, reverse=True))]


def _fewest(sums: list[int], need: int) -> int:
    """How many of the largest gains reach the need."""
    count = bisect_left(sums, need)
    return count if count < len(sums) else NEVER
