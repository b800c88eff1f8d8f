"""Numbers beyond the range of their type: noticed, and told together with what made them so large or so small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

BY_FEATURES = "products or distances of the inputs are beyond the range of their type; rescale the features"


class Overflow(ValueError):
    """Numbers were too large; why is known to the model that made them."""


class Underflow(ValueError):
    """Numbers were too small; why is known to the model that made them."""


def refuse_overflow(weights: NDArray[Any]) -> None:
    """Raise Overflow if a weight is not finite."""
    if not np.all(np.isfinite(weights)):
        raise Overflow(f"the weights of a row overflowed (got {weights[~np.isfinite(weights)][0]})")


def refuse_underflow(lost: NDArray[np.bool_], filled_up: bool = False) -> None:
    """Raise Underflow if the weights of some row were lost: a model of zeros would look safe from everybody.

    Rows of a block that is ``filled_up`` are not counted: some of them nobody asked about.
    """
    if lost.any():
        how_many = "some" if filled_up else f"{np.count_nonzero(lost)} of {lost.size}"
        raise Underflow(f"the weights of {how_many} rows underflowed, or nearly so")


def finite_sum(total: float) -> float:
    """A sum of magnitudes of the kernel of a training set; Overflow if it is not finite."""
    if not np.isfinite(total):
        raise Overflow("the kernel of the training set overflowed")
    return float(total)


@contextmanager
def told_with(why: Callable[[bool], str]) -> Iterator[None]:
    """Let numbers out of range end the block with a ValueError that names the cause.

    ``why(small)`` says what made them so small, or so large, and what to do about it.
    """
    try:
        yield
    except (Overflow, Underflow) as error:
        raise ValueError(f"{error}: {why(isinstance(error, Underflow))}.") from None


def smallest_whole(dtype: Any) -> float:
    """Below this, numbers of a type have lost bits, or may be what is left of such."""
    limits = np.finfo(dtype)
    return float(limits.tiny / limits.eps)
