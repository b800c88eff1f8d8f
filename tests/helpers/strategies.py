"""Inputs made to break a certificate: ties, cancellation, neighbouring floats, subnormals."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

TINY = 5e-324


def _signed(values):
    return st.sampled_from(values) | st.sampled_from(values).map(lambda v: -v)


FAMILIES = {
    "random": st.floats(-2.0, 2.0, allow_nan=False),
    "non-negative": st.floats(0.0, 2.0, allow_nan=False),
    "integers": st.integers(-3, 3).map(float),
    "counts": st.integers(0, 3).map(float),
    "tenths": st.integers(-6, 6).map(lambda k: k * 0.1),
    "positive tenths": st.integers(0, 6).map(lambda k: k * 0.1),
    "cancelling": _signed([1e16, 1.0, 1e-16, 3.0]),
    "neighbours": _signed([1.0, np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0)]),
    "positive neighbours": st.sampled_from([1.0, np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0)]),
    "subnormal": st.integers(-4, 4).map(lambda k: k * TINY),
    "positive subnormal": st.integers(0, 4).map(lambda k: k * TINY),
    "zeros": st.sampled_from([0.0, -0.0]),
    "extreme": _signed([1.7e308, 1e308, TINY, 1.0]),
    "any": st.floats(allow_nan=False, allow_infinity=False),
    "float32": st.floats(-2.0, 2.0, allow_nan=False, width=32),
}

# Keep K ** n, the number of labellings, near a thousand.
_LARGEST = {2: 9, 3: 6, 4: 5, 5: 4, 6: 4}


@st.composite
def label_problems(draw, family=None):
    """A row of weights, labels, the number of classes, and offsets or None."""
    name = family or draw(st.sampled_from(sorted(FAMILIES)))
    numbers = FAMILIES[name]
    n_classes = draw(st.integers(2, 6))
    n = draw(st.integers(1, _LARGEST[n_classes]))
    weights = np.array(draw(st.lists(numbers, min_size=n, max_size=n)))
    if name == "float32":
        weights = weights.astype(np.float32)
    # Some classes have no sample at all.
    used = draw(st.integers(1, n_classes))
    codes = np.array(draw(st.lists(st.integers(0, used - 1), min_size=n, max_size=n)))
    codes = (codes + draw(st.integers(0, n_classes - 1))) % n_classes
    offset = None
    if draw(st.booleans()):
        offset = np.array(draw(st.lists(numbers, min_size=n_classes, max_size=n_classes)), float)
    return weights, codes, n_classes, offset


@st.composite
def vote_problems(draw, largest=8):
    """Votes and the costs of changing them."""
    n_classes = draw(st.integers(2, 4))
    n_voters = draw(st.integers(1, min(largest, {2: 9, 3: 7, 4: 5}[n_classes])))
    votes = draw(st.lists(st.integers(0, n_classes - 1), min_size=n_voters, max_size=n_voters))
    dearest = draw(st.sampled_from([1, 2, 4, 9, 40, 300]))
    costs = [[0 if c == vote else draw(st.integers(1, dearest)) for c in range(n_classes)] for vote in votes]
    return np.array(votes), np.array(costs), n_classes
