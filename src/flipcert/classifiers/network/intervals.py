"""Intervals that contain what double precision makes of any numbers inside of them.

Every operation here is the counterpart of one in `training`: its result holds the *rounded* results of that operation
for all points of its arguments, summed in whatever order. So does, by induction, the result of the whole training.

A sum of k products in doubles is off by less than (k + 1) u times the sum of their magnitudes, u = 2**-53, and so are
the centre and the radius computed here. ``_SAFETY`` times that covers all three and the rounding of the bound itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flipcert.classifiers.network.plan import load_torch

if TYPE_CHECKING:
    from torch import Tensor

UNIT = 2.0**-53
_SAFETY = 8
# More than all that underflow could lose.
_TINY = 1e-290
# Exponentials of less than minus this are zero.
_DEEPEST = 760


def rounding(n_terms: int) -> float:
    """By how much a sum of so many products may be off, relative to their magnitudes."""
    return _SAFETY * (n_terms + 8) * UNIT


class Box(NamedTuple):
    """All tensors between two; a point if they are the same object."""

    lower: Tensor
    upper: Tensor

    @classmethod
    def point(cls, value: Tensor) -> Box:
        """One tensor only."""
        return cls(value, value)

    @property
    def is_point(self) -> bool:
        """Whether lower and upper are one."""
        return self.lower is self.upper

    @property
    def magnitude(self) -> Tensor:
        """Largest magnitude inside."""
        torch = load_torch()
        return self.lower.abs() if self.is_point else torch.maximum(self.lower.abs(), self.upper.abs())

    @property
    def T(self) -> Box:
        """Transposed."""
        return Box.point(self.lower.T) if self.is_point else Box(self.lower.T, self.upper.T)

    def widened(self, slack: Tensor) -> Box:
        """Both ends moved outwards."""
        return Box(self.lower - slack, self.upper + slack)

    def columns(self, which: slice) -> Box:
        """Some columns."""
        return Box.point(self.lower[:, which]) if self.is_point else Box(self.lower[:, which], self.upper[:, which])

    def finite(self) -> bool:
        """Whether no end overflowed."""
        torch = load_torch()
        return bool(torch.isfinite(self.lower).all() and torch.isfinite(self.upper).all())

    def holds(self, value: Tensor) -> bool:
        """Whether a tensor lies inside."""
        return bool(((self.lower <= value) & (value <= self.upper)).all())


def product(left: Box, right: Box) -> Box:
    """Matrix product by centres and radii: sharp if one factor is a point."""
    centre, other_centre = _centre(left), _centre(right)
    sizes = left.magnitude @ right.magnitude
    # (|a| + r) (|b| + s) - |a| |b| = |a| s + r |b| + r s
    radius = (sizes - centre.abs() @ other_centre.abs()).clamp_(min=0)
    middle = centre @ other_centre
    return Box(middle, middle).widened(radius + sizes * rounding(left.lower.shape[1]) + _TINY)


def affine(inputs: Box, layer: Box) -> Box:
    """Outputs of a layer before its activation."""
    weights, biases = layer.columns(slice(0, -1)), Box(layer.lower[:, -1], layer.upper[:, -1])
    inner = product(inputs, weights.T)
    slack = (inner.magnitude + biases.magnitude) * rounding(1)
    return Box(inner.lower + biases.lower, inner.upper + biases.upper).widened(slack)


def relu(box: Box) -> Box:
    """Activation."""
    return Box(box.lower.clamp(min=0), box.upper.clamp(min=0))


def through_relu(back: Box, inputs: Box) -> Box:
    """Gradients with respect to what comes before an activation, given its outputs."""
    torch = load_torch()
    active, possible = inputs.lower > 0, inputs.upper > 0
    lower = torch.where(active, back.lower, torch.where(possible, back.lower.clamp(max=0), 0.0))
    upper = torch.where(active, back.upper, torch.where(possible, back.upper.clamp(min=0), 0.0))
    return Box(lower, upper)


def softmax(scores: Box) -> Box:
    """Smallest and largest share of every class: its own score at one end, all others at the other end."""
    low, high, slack = _exponentials(scores)
    lower = _ratio(low, low + _sum_of_others(high), 0.0)
    upper = _ratio(high, high + _sum_of_others(low), 1.0)
    return Box((lower * (1 - slack) - _TINY).clamp(min=0), upper * (1 + slack) + _TINY)


def loss_gradients(scores: Box, codes: Tensor, movable: Tensor, loss: str) -> tuple[Box, Box]:
    """Gradients with respect to the scores: with the label as it is, and with any label where it can be flipped."""
    torch = load_torch()
    hits = torch.nn.functional.one_hot(codes, scores.lower.shape[1]).double()
    factor = 1.0
    if loss == "cross-entropy":
        scores = softmax(scores)
    else:
        factor = 2.0
    slack = (scores.magnitude + 1.0) * (8 * UNIT)
    clean = Box(scores.lower - hits, scores.upper - hits).widened(slack)
    flipped = Box(
        torch.where(movable[:, None], scores.lower - 1.0 - slack, clean.lower),
        torch.where(movable[:, None], scores.upper + slack, clean.upper),
    )
    return Box(factor * clean.lower, factor * clean.upper), Box(factor * flipped.lower, factor * flipped.upper)


def softmax_ahead(scores: Box, winner: int) -> Box:
    """Smallest and largest difference between the share of one class and that of each other one.

    The two scores are at opposite ends; the others only share out what is left, and are at whichever end is worse.
    """
    torch = load_torch()
    low, high, slack = _exponentials(scores)
    own_low, own_high = low[:, [winner]], high[:, [winner]]
    low[:, winner] = high[:, winner] = 0.0
    rest_low, rest_high = _sum_of_others(low), _sum_of_others(high)
    # Scores, not exponentials, say which is larger: those may all be zero.
    behind, leading = scores.lower[:, [winner]] < scores.upper, scores.upper[:, [winner]] > scores.lower
    lower = _ratio(own_low - high, own_low + high + torch.where(behind, rest_low, rest_high), -1.0)
    upper = _ratio(own_high - low, own_high + low + torch.where(leading, rest_low, rest_high), 1.0)
    return Box(lower - slack, upper + slack)


def _exponentials(scores: Box) -> tuple[Tensor, Tensor, float]:
    """Exponentials of both ends, the largest one 1, and the relative error of what is made of them.

    Rounded differences of scores are off by as much as they are large, and exponentials relatively by that. Those that
    are so small that they lose digits are moved outwards.
    """
    torch = load_torch()
    top = scores.upper.amax(dim=1, keepdim=True)
    low, high = torch.exp(scores.lower - top), torch.exp(scores.upper - top)
    return torch.where(low < _TINY, 0.0, low), high.clamp_(min=_TINY), rounding(scores.lower.shape[1] + _DEEPEST)


def _ratio(share: Tensor, total: Tensor, otherwise: float) -> Tensor:
    """A ratio, or what is always possible where numbers get too small to divide."""
    torch = load_torch()
    return torch.where(total > _TINY, share / total, otherwise)


def _sum_of_others(values: Tensor) -> Tensor:
    """Sum of all other entries of a row, without subtracting."""
    torch = load_torch()
    none = values.new_zeros(values.shape[0], 1)
    before = torch.cat([none, values[:, :-1].cumsum(dim=1)], dim=1)
    after = torch.cat([values[:, 1:].flip(1).cumsum(dim=1).flip(1), none], dim=1)
    return before + after


def _centre(box: Box) -> Tensor:
    return box.lower if box.is_point else 0.5 * (box.lower + box.upper)
