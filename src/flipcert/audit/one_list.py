"""One list for a budget: labels that a proof hangs on and labels that look wrong, in turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mixed_list(
    planned: NDArray[np.int64], doubt: NDArray[np.float64], attackable: NDArray[np.int64], count: int, share: float
) -> NDArray[np.int64]:
    """Labels to check, best first, as many as ``count``: a ``share`` of them because they look wrong.

    ``planned`` are labels by what they do for a proof, best first; ``doubt`` is how wrong each training label looks.
    Only those to which a model prefers another class (positive) are; where they are few, the plan has the rest.
    """
    suspects = attackable[np.argsort(-doubt[attackable], kind="stable")]
    suspects = suspects[doubt[suspects] > 0.0]
    queues = [iter(suspects.tolist()), iter(planned.tolist())]
    chosen: dict[int, None] = {}
    looks_wrong = 0
    while len(chosen) < count:
        first = 0 if looks_wrong < share * (len(chosen) + 1) - 0.5 or share == 1.0 else 1
        for number in (first, 1 - first):
            label = next((own for own in queues[number] if own not in chosen), None)
            if label is not None:
                chosen[label] = None
                looks_wrong += number == 0
                break
        else:
            break
    return np.array(list(chosen), np.int64)
