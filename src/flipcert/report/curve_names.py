"""Where to write the name of a curve so that it covers no curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# The plot on a wide screen and on a phone, in pixels; a label must fit both.
_SIZES = ((680, 250), (290, 210))
_Box = tuple[float, float, float, float]  # left, top, right, bottom in pixels
_APART = 0.03  # of the height: lines closer than this look like one
_LETTER, _HEIGHT, _GAP, _MARGIN = 7.6, 14.0, 8, 3


class Spot(NamedTuple):
    """A place in the plot (0 to 1), a move away from it in pixels, and how the text lies there.

    ``style`` is the end of the text that is there, and "spare" where there is no room on a phone.
    """

    x: float
    y: float
    dx: int
    dy: int
    style: str


def place_labels(
    x: NDArray[np.float64],
    lines: Sequence[NDArray[np.float64]],
    labels: Sequence[tuple[int, str, float | None]],
    rule: float = 0.0,
) -> list[Spot | None]:
    """Find a spot for each label beside its curve, or None where there is no room.

    Parameters
    ----------
    x : ndarray of float64
        Places of the points of all curves, 0 to 1.
    lines : sequence of ndarray of float64
        Heights of the curves, falling from left to right.
    labels : sequence of (int, str, float or None)
        Curve, text, and the height at which to put it. Without a height it may go anywhere; a curve that hardly
        differs from one before it then gets none.
    rule : float, default=0.0
        Place of a vertical line, 0 to 1, which no label crosses.
    """
    taken: list[list[_Box]] = [[(rule * width, 0.0, rule * width, float(height))] for width, height in _SIZES]
    spots: list[Spot | None] = []
    for curve, text, height in labels:
        hidden = height is None and any(np.max(np.abs(lines[curve] - other)) <= _APART for other in lines[:curve])
        candidates = [] if hidden else _candidates(x, lines[curve], height)
        rooms = [
            [_fits(s, text, x, lines, curve, *room) for room in zip(_SIZES, taken, strict=True)] for s in candidates
        ]
        everywhere = [s for s, fits in zip(candidates, rooms, strict=True) if all(fits)]
        wide = [s._replace(style=f"{s.style} spare") for s, fits in zip(candidates, rooms, strict=True) if fits[0]]
        spot = next(iter(everywhere + wide), None)
        spots.append(spot)
        if spot is not None:
            for boxes, size in zip(taken, _SIZES, strict=True):
                boxes.append(_box(spot, text, size))
    return spots


def _candidates(x: NDArray[np.float64], y: NDArray[np.float64], height: float | None) -> list[Spot]:
    """Above to the right of the curve, or below to the left of it, from its middle outwards."""
    heights = [share * y[0] for share in (0.6, 0.5, 0.7, 0.4, 0.8, 0.3, 0.2, 0.9, 0.12)] if height is None else [height]
    rows = [min(int(np.searchsorted(-y, -h, side="right")), len(x) - 1) for h in heights]
    # The outer corner of a step is above the next point.
    corners = [(float(x[i]), float(y[max(i - 1, 0)])) for i in rows]
    right = [Spot(*corner, _GAP, -_GAP, "start") for corner in corners]
    left = [Spot(*corner, -_GAP, _GAP + 8, "end") for corner in corners]
    return right + left


def _fits(
    spot: Spot,
    text: str,
    x: NDArray[np.float64],
    lines: Sequence[NDArray[np.float64]],
    curve: int,
    size: tuple[int, int],
    taken: Sequence[_Box],
) -> bool:
    width, height = size
    left, top, right, bottom = _box(spot, text, size)
    if left < 0 or right > width or top < 0 or bottom > height:
        return False
    # Letters may be wider than is thought, and a name below another reads like its end.
    if any(left < r + _GAP and right + _GAP > le and top < b + _GAP and bottom + _GAP > t for le, t, r, b in taken):
        return False
    across = np.linspace(left, right, 5) / width
    for y in lines:
        # A falling line meets a box if it is not wholly above or wholly below it over the width of the box.
        start = y[max(int(np.searchsorted(x, (left - _MARGIN) / width, side="right")) - 1, 0)]
        stop = np.interp((right + _MARGIN) / width, x, y)
        below, above = (1 - start) * height >= bottom + _MARGIN, (1 - stop) * height <= top - _MARGIN
        # No line that can be told apart may lie between a curve and its name.
        apart = np.interp(across, x, y) - np.interp(across, x, lines[curve])
        between = below and apart.max() > _APART if spot.dx > 0 else above and apart.min() < -_APART
        if not (below or above) or between:
            return False
    return True


def _box(spot: Spot, text: str, size: tuple[int, int]) -> _Box:
    width, height = size
    length = _LETTER * len(text)
    left = spot.x * width + spot.dx - (length if spot.style.startswith("end") else 0)
    baseline = (1 - spot.y) * height + spot.dy
    return left, baseline - _HEIGHT + 3, left + length, baseline + 3
