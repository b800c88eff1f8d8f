"""What a random check of some labels proves about all of them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from flipcert.audit.every_stage import is_plausible_at_every_stage
from flipcert.audit.hypergeometric import is_plausible
from flipcert.labels.validation import check_flag, check_integers


def wrong_labels_at_most(
    n_labels: int, n_checked: int, n_wrong: int, confidence: float = 0.95, *, peeking: bool = False
) -> int:
    """Bound the number of wrong labels among all, from a check of some that were drawn at random.

    Whatever the true number of wrong labels is, the bound is at least as large with the given confidence over the draw.
    The labels that were checked count: ``n_wrong`` of the bound are known, and at most the others remain.

    The draw must be random, without replacement, and independent of which labels are wrong. A check of labels that were
    chosen in any other way proves nothing about the others.

    Parameters
    ----------
    n_labels : int
        Number of all labels.
    n_checked : int
        Number of labels that were checked.
    n_wrong : int
        Number of those that turned out wrong.
    confidence : float, default=0.95
        Probability over the draw, between 0 and 1, with which the bound holds. It is taken as the exact value of the
        float.
    peeking : bool, default=False
        False: how many labels to check was settled before any was looked at, and the check ends there, whatever this
        bound says. True: it was not, or one may go on. Labels are looked at in the order in which they were drawn, and
        one may stop, or go on, because of what was found; the bound then holds at every stage at once, with the same
        confidence. It is larger (at confidence 0.95, by up to about a quarter where nothing wrong was found, and by
        more, up to about double, where something was). Whoever may go on uses it from the first result: to stop where
        the bound without peeking pleases, and to go on with peeking where it does not, is wrong more often than either
        bound alone.

    Returns
    -------
    int

    Notes
    -----
    The bound is the largest M from ``n_wrong`` to ``n_labels - (n_checked - n_wrong)`` for which what was found is no
    surprise.

    Without peeking, it would be one if ``P(found <= n_wrong)``, the tail of the hypergeometric distribution, were at
    most ``1 - confidence``. The tail falls as M grows, so bisection finds the largest M.

    With peeking, a gambler bets on each label before it is looked at, at odds that are fair if M labels are wrong. He
    stakes as if the next one were wrong with probability ``(0.1 + wrong so far) / (8.1 + checked so far)``, which pays
    if few are. If M is true, his fortune is a nonnegative supermartingale: with probability ``1 - confidence`` at most,
    it is ever multiplied by ``1 / (1 - confidence)`` (Ville's inequality), and that is the surprise. It depends on the
    two counts alone, and grows with M beyond the most likely M, so bisection finds the largest M here, too.

    Floats decide nothing. Probabilities are computed to 60 digits, with an error that is proven to be below the 30th
    digit, and in whole numbers where that does not tell which side they are on.

    References
    ----------
    Ian Waudby-Smith and Aaditya Ramdas. Confidence sequences for sampling without replacement. NeurIPS 2020.

    See Also
    --------
    plan_audit : Labels that are chosen, not drawn.

    Examples
    --------
    >>> import flipcert
    >>> flipcert.wrong_labels_at_most(1437, 300, 0)
    12
    >>> flipcert.wrong_labels_at_most(1437, 300, 2)
    27
    >>> flipcert.wrong_labels_at_most(1437, 300, 0, peeking=True)
    14
    """
    n = int(check_integers(n_labels, "n_labels", minimum=1, ndim=0))
    m = int(check_integers(n_checked, "n_checked", minimum=0, ndim=0))
    e = int(check_integers(n_wrong, "n_wrong", minimum=0, ndim=0))
    if m > n:
        raise ValueError(f"n_checked must be at most n_labels = {n}; got {m}. No label is checked twice.")
    if e > m:
        raise ValueError(f"n_wrong must be at most n_checked = {m}; got {e}.")
    delta = 1 - check_confidence(confidence, "confidence")
    if check_flag(peeking, "peeking"):
        # The most likely number is always plausible.
        most_likely = min(e * (n + 1) // m, n - (m - e)) if m else n
        return _largest(most_likely, n - (m - e), lambda M: is_plausible_at_every_stage(M, n, m, e, delta))
    return _largest(e, n - (m - e), lambda M: is_plausible(M, n, m, e, delta))


def check_confidence(value: Any, name: str) -> Fraction:
    """Return a confidence as the exact value of what was given."""
    number = isinstance(value, (float, int, np.floating, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not number or not 0 < value < 1:
        seen = value.item() if isinstance(value, np.generic) else value
        raise ValueError(f"{name} must be a number between 0 and 1, such as 0.95; got {seen!r}.")
    return Fraction(float(value))


def _largest(first: int, last: int, holds: Callable[[int], bool]) -> int:
    """The largest of some numbers for which something holds: it does for the first, and up to some number."""
    while first < last:
        middle = (first + last + 1) // 2
        if holds(middle):
            first = middle
        else:
            last = middle - 1
    return first
