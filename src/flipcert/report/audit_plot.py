"""What checks of labels prove, as a matplotlib figure."""

from __future__ import annotations

from typing import Any

from flipcert.report.plots import COLOURS, new_figure
from flipcert.report.units import unit_of
from flipcert.results.audit_plan import AuditPlan


def plot_audit(plan: AuditPlan) -> Any:
    """Certified accuracy against the number of labels that were checked.

    Solid is the plan, for the predictions that it was made for; dashed, where it was measured, what such a plan does
    for predictions that it was not made for; dotted, random checks.

    Parameters
    ----------
    plan : AuditPlan
        What :func:`flipcert.plan_audit` returned.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    flipcert.AuditPlan : What is plotted.

    Examples
    --------
    >>> import flipcert
    >>> X, y = [[0.0, 1.0], [0.2, 1.0], [1.0, 0.0], [1.0, 0.3]], [0, 0, 1, 1]
    >>> model = flipcert.KernelSVM(classes=[0, 1]).fit(X, y)
    >>> figure = flipcert.plots.plot_audit(flipcert.plan_audit(model, X, 2, flips=1, y=y))
    >>> figure.axes[0].get_xlabel()
    'labels checked'
    """
    figure, axes = new_figure()
    curves = (
        ("planned for these points", plan.certified, "-", 2.0),
        ("planned for other points", plan.held_out, "--", 1.5),
        ("random checks", plan.random, ":", 1.5),
    )
    for k, (name, shares, style, width) in enumerate(curves):
        if shares is not None:
            axes.step(
                plan.checked, shares, where="post", color=COLOURS[k], linestyle=style, linewidth=width, label=name
            )
    unit = unit_of(plan.threat)
    axes.set(
        xlabel=f"{'labels' if plan.sources is None else 'sources'} checked",
        ylabel="certified accuracy" if plan.counts_correct else "share of predictions proven",
        ylim=(0, 1.02),
        title=f"Proven against {plan.flips:,} {unit.noun if plan.flips == 1 else unit.nouns}, after checks",
    )
    axes.set_xlim(left=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False, loc="lower left")
    return figure
