"""Plots of certificates as matplotlib figures. Needs matplotlib (``pip install "flipcert[plot]"``)."""

from flipcert.report.audit_plot import plot_audit
from flipcert.report.collective_plot import plot_collective
from flipcert.report.plots import (
    plot_certified_accuracy,
    plot_median_robustness,
    plot_radii,
    plot_radius_by_class,
)

__all__ = [
    "plot_audit",
    "plot_certified_accuracy",
    "plot_collective",
    "plot_median_robustness",
    "plot_radii",
    "plot_radius_by_class",
]
