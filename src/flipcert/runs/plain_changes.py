"""The radius of one kernel machine once more where rows come and go, in plain Python: gains sorted, and added up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from flipcert.labels.threats import DELETIONS, EDITS, INSERTIONS, REPLACEMENTS

_NEVER = 10**12


def changes_opinion(
    threat: str, weights: Sequence[float], y: Sequence[int], free: Sequence[bool], n_classes: int, open_space: bool
) -> tuple[int, bool]:
    """Changed rows that a prediction withstands at least, and whether that is the radius.

    Rows are weighed by a kernel that is nowhere larger than 1, and 1 at equal inputs, such as an RBF kernel; deletions
    may be of any kernel. Where the label space is read from the labels, it is not the radius for sure if so many
    changes could leave no label of some class.
    """
    ratios = [weight.as_integer_ratio() for weight in (*weights, 1.0)]
    scale = max(below for _, below in ratios)
    *w, most = [above * (scale // below) for above, below in ratios]
    n_rows = len(y)
    scores = [sum(weight for weight, label in zip(w, y, strict=True) if label == c) for c in range(n_classes)]
    first = scores.index(max(scores))
    held = [sum(label == c for label in y) for c in range(n_classes)]
    cheapest, known = _NEVER, True
    for c in (c for c in range(n_classes) if c != first):
        gains = []
        for weight, label, own in zip(w, y, free, strict=True):
            gone = weight if label == first else -weight if label == c else 0
            flip = 2 * gone if gone else abs(weight) if label not in (first, c) else 0
            gains.append(
                own * max({DELETIONS.name: gone, REPLACEMENTS.name: gone + most, EDITS.name: flip}.get(threat, 0), 0)
            )
        # There are always more rows to add.
        gains += [most] * (n_rows if threat in (INSERTIONS.name, EDITS.name) else 0)
        need = scores[first] - scores[c] + (first < c)
        sums = [0, *accumulate(sorted(gains, reverse=True))]
        cost = next((count for count, total in enumerate(sums) if total >= need), _NEVER)
        if cost < cheapest:
            cheapest = cost
            # Someone else's label is left, and of the class that is lifted, unless it comes with new rows.
            known = n_rows - held[c] > cost and (threat != DELETIONS.name or held[c] > cost)
    taken = [own for label, own in zip(y, free, strict=True) if label == first]
    if open_space and threat != INSERTIONS.name and n_classes > 2 and all(taken) and len(taken) <= cheapest:
        cheapest, known = len(taken), True
    return min(cheapest, n_rows + 1) - 1, known or not open_space or threat == INSERTIONS.name
