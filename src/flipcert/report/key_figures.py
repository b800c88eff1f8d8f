"""What a certified test set comes to, as a few plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from flipcert.labels.threats import FLIPS, SOURCES
from flipcert.report.result import Result
from flipcert.report.series import counted, reach
from flipcert.report.words import Exposure, plural
from flipcert.report.worth import Standing, one_answer, what_it_means
from flipcert.results.metrics import certified_accuracy, median_certified_robustness

# Numbers of flips at which the certified accuracy is told, as far as anything is certified there.
_BUDGETS = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000])


def summarise(result: Result) -> dict[str, Any]:
    """Numbers that describe a result; without labels those that need none.

    Medians are over the correct predictions, or over all predictions where labels are not known. A radius of as many
    flips as there are training labels means any flips. Under another threat, which is named then, radii count its
    units.
    """
    c = result.certificates
    known = result.labels is not None
    counts = counted(c, result.labels)
    summary: dict[str, Any] = {"test_points": len(c), "training_labels": c.n_labels}
    summary["attackable_labels"] = c.n_attackable
    if c.threat != FLIPS.name:
        summary["threat"] = c.threat
    if c.threat == SOURCES.name:
        summary["sources"] = c.limit
    doubt = one_answer(result)
    if doubt is not None:
        summary["warning"] = f"{doubt}. {what_it_means(result)}"
    if known:
        summary["accuracy"] = float(counts.mean())
    summary["median_radius"] = median_certified_robustness(counts, c.radius)
    summary["median_radius_upper"] = median_certified_robustness(counts, c.radius_upper)
    if c.blackbox_radius is not None:
        summary["median_blackbox_radius"] = median_certified_robustness(counts, c.blackbox_radius)
    if result.in_flips is not None:
        summary["median_radius_in_flips"] = median_certified_robustness(counts, result.in_flips)
    if known:
        summary["median_radius_over_all"] = median_certified_robustness(counts, c.radius, over="all")
    summary["largest_radius"] = int(c.radius.max())
    summary["share_exact"] = float(c.exact.mean())
    summary["share_rounding_sensitive"] = float(c.rounding_sensitive.mean())
    name = "certified_accuracy" if known else "share_certified"
    standing = Standing.of(result, result.name)
    summary[f"{name}_at_1_percent"], summary[f"mean_{name}_to_1_percent"] = standing.kept, standing.average
    budgets = _BUDGETS[: int(np.searchsorted(_BUDGETS, c.radius.max())) + 1]
    budgets = budgets[budgets <= reach(c)]  # there are no other attacks
    shares = np.atleast_1d(certified_accuracy(counts, c.radius, budgets))
    summary[name] = {str(flips): float(share) for flips, share in zip(budgets, shares, strict=True)}
    return summary


def rows_of(summary: dict[str, Any], exposure: Exposure) -> list[tuple[str, str]]:
    """The same for readers: names and values of a table."""
    rows = [("test points", f"{summary['test_points']:,}"), ("training labels", f"{summary['training_labels']:,}")]
    if exposure.n_trusted:
        rows.append(("of them trusted", f"{exposure.n_trusted:,}"))
    if exposure.n_sources is not None:
        rows.append(("sources of labels", f"{exposure.n_sources:,}"))
    if exposure.threat != FLIPS.name:
        rows.append(("radii count", exposure.unit.nouns))
    if "accuracy" in summary:
        rows.append(("accuracy", f"{summary['accuracy']:.3f}"))
    if exposure.reach == 0:
        return rows
    rows.append(("median radius", exposure.amount(summary["median_radius"])))
    if summary["median_radius"] != summary["median_radius_upper"] < exposure.reach:
        rows.append(("median radius at most", exposure.amount(summary["median_radius_upper"])))
    if "median_blackbox_radius" in summary:
        rows.append(("median by votes alone", exposure.amount(summary["median_blackbox_radius"])))
    if "median_radius_in_flips" in summary:
        in_flips = Exposure(exposure.n_labels, exposure.n_attackable).amount(summary["median_radius_in_flips"])
        rows.append(("median radius in flips", in_flips))
    rows.append(("largest radius", exposure.amount(summary["largest_radius"])))
    rows.append(("share exact", f"{summary['share_exact']:.3f}"))
    shares = summary.get("certified_accuracy", summary.get("share_certified", {}))
    name = "certified accuracy" if "accuracy" in summary else "certified"
    noun = exposure.unit.noun
    rows += [(f"{name} at {plural(int(flips), noun)}", f"{share:.3f}") for flips, share in shares.items()]
    return rows
