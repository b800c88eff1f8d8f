"""What one attack on all test points leaves, as a matplotlib figure."""

from __future__ import annotations

from typing import Any

import numpy as np

from flipcert.labels.threats import FLIPS
from flipcert.report.plots import COLOURS, new_figure, of_those_not_trusted
from flipcert.report.units import unit_of
from flipcert.results.collective_certificate import CollectiveCertificate


def plot_collective(certificate: CollectiveCertificate) -> Any:
    """Certified accuracy against the budget of one attack on all test points.

    Solid is proven against one attack, dashed what is proven point by point, thin what the attack that was found
    leaves; the truth lies in the shaded area. Between the budgets that were asked about, lines only lead the eye.

    Parameters
    ----------
    certificate : CollectiveCertificate
        What ``certify_collectively`` returned.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    flipcert.CollectiveCertificate : What is plotted.

    Examples
    --------
    >>> import flipcert
    >>> X, y = [[0.0, 1.0], [0.2, 1.0], [1.0, 0.0], [1.0, 0.3]], [0, 0, 1, 1]
    >>> model = flipcert.KernelSVM(classes=[0, 1]).fit(X, y)
    >>> certificate = model.certify_collectively(X, [1, 2], y)
    >>> figure = flipcert.plots.plot_collective(certificate)
    >>> figure.axes[0].get_xlabel()
    'flipped training labels'
    """
    c, unit = certificate, unit_of(certificate.threat)
    figure, axes = new_figure()
    budgets, places = np.unique(np.append(0, c.flips), return_index=True)

    def left(shares: Any) -> Any:
        """Shares of all budgets in order; without an attack all that count are left."""
        return np.append(c.n_counted / c.n_points, shares)[places]

    together, found = left(c.certified_accuracy), left(c.accuracy_under_attack)
    axes.fill_between(budgets, together, found, color=COLOURS[0], alpha=0.2, linewidth=0)
    axes.plot(budgets, found, color=COLOURS[0], marker="v", linewidth=1, label="left by the attack that was found")
    axes.plot(budgets, together, color=COLOURS[0], marker="o", linewidth=2, label="proven, one attack on all points")
    axes.plot(
        budgets,
        left(c.certified_one_by_one),
        color=COLOURS[1],
        marker="s",
        linestyle="--",
        linewidth=1.5,
        label="proven, point by point",
    )
    made = "flipped training labels" if unit.threat == FLIPS.name else unit.all_made
    axes.set(
        xlabel=of_those_not_trusted(made, [c]),
        ylabel="certified accuracy" if c.counts_correct else "share of predictions",
        ylim=(0, 1.02),
        title=f"Test points that stay {'correct' if c.counts_correct else 'as they are'} under one attack",
    )
    axes.set_xlim(left=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False, loc="lower left")
    return figure
