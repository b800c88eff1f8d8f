"""One attack by sources of labels on many points of a label-linear model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flipcert.collective.points import LinearPoints
from flipcert.engine.clock import working_time
from flipcert.labels.threats import SOURCES
from flipcert.results.witness import Witness

# How smooth the count of changed points is, step by step, and how many sources take turns at a time.
_HEATS = (1.0, 0.5, 0.25, 0.12, 0.06)
_CANDIDATES = 12


def find_attack_by_sources(
    points: LinearPoints, budget: int, deadline: float, starts: list[NDArray[np.int64]], enough: int
) -> Witness | None:
    """Find at most ``budget`` sources whose labels, changed at will, change many predictions; None if none do.

    ``starts`` are sets of sources to begin with, and whoever changes ``enough`` points need not look further.
    """
    if budget <= 0 or enough <= 0 or points.labels.n_movable == 0:
        return None
    search = _Search(points, min(budget, SOURCES.limit(points.labels)), deadline)
    for chosen in [*starts, search.strongest(search.slopes(points.scores, 1.0))]:
        search.improve(chosen[: search.budget])
        if search.count >= enough:
            break
    while search.count < enough and working_time() < deadline and search.exchange():
        pass
    return search.witness()


class _Search:
    """Sources that are in the hands of the attacker, and the labels they give; the best so far is remembered."""

    def __init__(self, points: LinearPoints, budget: int, deadline: float) -> None:
        assert points.labels.sources is not None, "refused otherwise"
        self._points, self.budget, self._deadline = points, budget, deadline
        self._labels, self._source = points.labels, points.labels.sources.codes
        self.count, self._best = 0, (np.empty(0, np.int64), points.labels.codes)
        self._rng = np.random.default_rng(0)
        others = np.arange(points.labels.n_classes) != points.prediction[:, None]
        lead = np.where(
            others, points.scores[np.arange(points.n_points), points.prediction][:, None] - points.scores, np.inf
        )
        self._unit = np.maximum(lead.min(axis=1), 1e-300)

    def slopes(self, scores: NDArray[np.float64], heat: float) -> NDArray[np.float64]:
        """By how much the smoothed count of changed points rises with each score."""
        rows = np.arange(scores.shape[0])
        rivals = scores.copy()
        rivals[rows, self._points.prediction] = -np.inf
        rival = rivals.argmax(axis=1)
        lead = (scores[rows, self._points.prediction] - rivals[rows, rival]) / (heat * self._unit)
        part = 1.0 / (1.0 + np.exp(np.clip(lead, -40.0, 40.0)))
        slope = part * (1.0 - part) / (heat * self._unit)
        out = np.zeros_like(scores)
        out[rows, rival] += slope
        out[rows, self._points.prediction] -= slope
        return out

    def strongest(self, slopes: NDArray[np.float64]) -> NDArray[np.int64]:
        """Sources that could do most along these slopes, the strongest first."""
        pull = self._points.pull(slopes)
        gain = (pull.max(axis=1) - pull[np.arange(pull.shape[0]), self._labels.codes]) * self._labels.coded.movable
        return np.argsort(-np.bincount(self._source, gain, len(self._labels.sources or ())), kind="stable")

    def improve(self, chosen: NDArray[np.int64]) -> int:
        """Let these sources give the labels that change most, step by step; how many points that changes."""
        samples = np.flatnonzero(np.isin(self._source, chosen) & self._labels.coded.movable)
        if samples.size == 0:
            return 0
        weights, codes = self._points.columns(samples), self._labels.codes.copy()
        most = 0
        for heat in _HEATS:
            for _ in range(3):
                scores = self._scores(weights, samples, codes)
                wanted = weights.T @ self.slopes(scores, heat)
                codes[samples] = wanted.argmax(axis=1)
                count = self._counted(weights, samples, codes)
                most = max(most, count)
                if count > self.count:
                    self.count, self._best = count, (np.sort(chosen), codes.copy())
            if working_time() > self._deadline:
                break
        return most

    def exchange(self) -> bool:
        """Try other sources in place of one of the best; whether that changed more points, or may yet."""
        chosen, codes = self._best
        if chosen.size == 0:
            return False
        samples = np.flatnonzero(codes != self._labels.codes)
        scores = self._scores(self._points.columns(samples), samples, codes)
        free = [own for own in self.strongest(self.slopes(scores, 0.25)).tolist() if own not in set(chosen.tolist())]
        before = self.count
        for new in free[:_CANDIDATES]:
            for place in range(chosen.size if chosen.size == self.budget else 1):
                if working_time() > self._deadline:
                    return False
                kept = np.delete(chosen, place) if chosen.size == self.budget else chosen
                self.improve(np.append(kept, new))
                if self.count > before:
                    return True
        return False

    def witness(self) -> Witness | None:
        """The best attack, without sources that change no label."""
        _, codes = self._best
        if self.count == 0:
            return None
        changed = np.flatnonzero(codes != self._labels.codes)
        used = np.unique(self._source[changed])
        return Witness(changed, codes[changed], sources=used, threat=SOURCES.name)

    def _scores(
        self, weights: NDArray[np.float64], samples: NDArray[np.int64], codes: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Scores once some labels are others."""
        space = np.eye(self._labels.n_classes)
        return self._points.scores + weights @ (space[codes[samples]] - space[self._labels.codes[samples]])

    def _counted(self, weights: NDArray[np.float64], samples: NDArray[np.int64], codes: NDArray[np.int64]) -> int:
        """Points that change; 0 if no model could be fitted to these labels."""
        scores = self._scores(weights, samples, codes)
        if not self._labels.space_is_fixed:
            there = np.bincount(codes, minlength=self._labels.n_classes) > 0
            if np.count_nonzero(there) < 2:
                return 0
            scores[:, ~there] = -np.inf
        return int(np.count_nonzero(scores.argmax(axis=1) != self._points.prediction))
