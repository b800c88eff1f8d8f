"""Plots of certified accuracy. Needs matplotlib (``pip install "flipcert[plot]"``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipcert.certificates import Certificates
from flipcert.evaluation.metrics import certified_accuracy

# Dark enough on white, and apart for colour-blind readers (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def plot_certified_accuracy(certificates: dict[str, Certificates], y: ArrayLike) -> Any:
    """Certified accuracy against the number of flipped labels, one curve a model.

    Solid is certified, dashed what the votes of an ensemble alone would certify (black-box); the area up to the
    accuracy that known attacks leave is shaded where the two bounds differ.

    Parameters
    ----------
    certificates : dict of str to Certificates
        Certified test sets, by name of the model.
    y : array-like of shape (n_test,)
        True labels.

    Returns
    -------
    matplotlib.figure.Figure
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('Plots need matplotlib. Install with: pip install "flipcert[plot]".') from None
    truth = np.asarray(y)
    figure = Figure(figsize=(8.0, 4.8), layout="constrained")
    axes = figure.subplots()
    largest = max(int(c.radius_upper[c.exact].max(initial=1)) for c in certificates.values())
    flips = np.arange(largest + 2)
    for (name, c), colour in zip(certificates.items(), COLOURS * len(certificates), strict=False):
        correct = c.prediction == truth
        certified = certified_accuracy(correct, c.radius, flips)
        axes.step(flips, certified, where="post", color=colour, label=name, linewidth=2)
        if not c.exact.all():
            axes.fill_between(
                flips, certified, certified_accuracy(correct, c.radius_upper, flips),
                step="post", color=colour, alpha=0.2, linewidth=0,
            )  # fmt: skip
        if c.blackbox_radius is not None:
            votes_only = certified_accuracy(correct, c.blackbox_radius, flips)
            axes.step(flips, votes_only, "--", where="post", color=colour, label=f"{name}, votes only", linewidth=1.5)
    axes.set(
        xlabel="flipped training labels",
        ylabel="certified accuracy",
        xlim=(0, largest + 1),
        ylim=(0, 1),
        title="Share of test points proven to stay correct",
    )
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure
