"""The radius of one model in sources once more, in plain Python: all gains of a source added up as whole numbers."""

from __future__ import annotations

from collections.abc import Sequence

from flipcert.verify.exact import NEVER, Voter


def source_opinion(voter: Voter, sources: Sequence[int], n_sources: int, open_space: bool) -> tuple[int, bool]:
    """Sources without which the prediction stays, at least, and whether that is the radius.

    It is not for sure where the label space is read from the labels, and the attack that was found here leaves no label
    of the class that it lifts, or of any other.
    """
    first, n_classes, labels = voter.vote, voter.n_classes, list(zip(voter.w, voter.y, voter.free, strict=True))
    cheapest, lawful = NEVER, True
    for c in (c for c in range(n_classes) if c != first):
        gains = [0] * n_sources
        for source, (w, y, free) in zip(sources, labels, strict=True):
            gains[source] += free * max(0, _worth(w, y, c, first))
        need, scores = 0, voter.scores
        need = scores[first] - scores[c] + (first < c)
        order = sorted(range(n_sources), key=lambda own: -gains[own])
        closed, corrupt = 0, set()
        for source in order:
            if closed >= need or gains[source] == 0:
                break
            closed += gains[source]
            corrupt.add(source)
        cost = len(corrupt) if closed >= need else NEVER
        if cost < cheapest:
            after = [
                (c if w > 0 else first) if source in corrupt and free and _worth(w, y, c, first) > 0 else y
                for source, (w, y, free) in zip(sources, labels, strict=True)
            ]
            cheapest, lawful = cost, c in after and len(set(after)) > 1
    removal = NEVER
    holders = {source for source, y in zip(sources, voter.y, strict=True) if y == first}
    if open_space and n_classes > 2 and all(free for _, y, free in labels if y == first):
        removal = len(holders)
    if removal <= cheapest:
        # That some other class is left is all that the removal needs.
        cheapest, lawful = removal, any(y != first for y in voter.y)
    return min(cheapest, n_sources + 1) - 1, lawful or not open_space


def _worth(w: int, y: int, c: int, first: int) -> int:
    """What a label can close of the gap between the first class and c: it goes to c, or to the first if w < 0."""
    return 2 * w if y == first else -2 * w if y == c else abs(w)
