"""Duals of a support vector machine without bias by an interior-point method.

Slower than coordinate descent, but neither a large C nor points that depend on each other hold it up.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_STEPS = 100
# Share of the way to the nearest bound that a step may go.
_SHARE = 0.9995


def central_path(kernel: NDArray[np.float64], signs: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Duals nearer and nearer to the minimum of ``a H a / 2 - sum a`` over 0 <= a <= 1, H = y y' times the kernel.

    Mehrotra's predictor and corrector; ends where rounding does not let it go on.
    """
    hessian = kernel * np.outer(signs, signs)
    # Distances of the duals to 0 and to 1, kept apart as one may be far below the rounding of the other; multipliers.
    room = np.full((2, signs.size), 0.5)
    slope = hessian @ room[0] - 1.0
    force = np.maximum([slope, -slope], 0.0) + 1.0
    for _ in range(_STEPS):
        residual = hessian @ room[0] - 1.0 - force[0] + force[1]
        system = hessian + np.diag((force / room).sum(axis=0))

        def newton(change: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            """Steps after which, to first order, ``room * force`` has changed by so much and the residual is gone."""
            pull = change / room  # noqa: B023
            step = np.linalg.solve(system, pull[0] - pull[1] - residual)  # noqa: B023
            steps = np.array([step, -step])
            return steps, pull - force * steps / room  # noqa: B023

        level = float((room * force).mean())
        try:
            moved, pushed = newton(-room * force)
            reach = min(_reach(room, moved), _reach(force, pushed))
            ahead = float(((room + reach * moved) * (force + reach * pushed)).mean())
            moved, pushed = newton((ahead / level) ** 3 * level - room * force - moved * pushed)
        except np.linalg.LinAlgError:
            return
        reach = _SHARE * min(_reach(room, moved), _reach(force, pushed))
        room, force = room + reach * moved, force + reach * pushed
        if not (room.min() > 0.0 and force.min() > 0.0):  # also where something overflowed
            return
        yield np.clip(room[0], 0.0, 1.0)


def _reach(values: NDArray[np.float64], steps: NDArray[np.float64]) -> float:
    """How far the positive values can go along the steps, one whole step at most, until one is 0."""
    falling = steps < 0.0
    return float((values[falling] / -steps[falling]).min(initial=1.0))
