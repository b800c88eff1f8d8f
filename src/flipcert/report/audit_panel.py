"""What the page shows of an audit: certified accuracy against labels checked, and the list."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from flipcert.report.audit_result import Audit
from flipcert.report.audit_words import IF_RIGHT, NOT_ERRORS, NOT_OTHERS, NOT_PROOF, evidence, finding, reason
from flipcert.report.chart import Plot, linear, round_ticks
from flipcert.report.figures import Legend
from flipcert.report.pictures import Album
from flipcert.report.result import Result
from flipcert.report.words import percent, plural

# Lines of the list, and numbers of checks in the table, that are shown.
_MOST_LINES, _MOST_STEPS = 100, 10


def audit_panel(result: Result, album: Album) -> dict[str, Any] | None:
    """Sentences, the figure and the list; None where no audit was planned."""
    audit = result.audit
    if audit is None:
        return None
    figure, legend, lowest = _figure(audit)
    shown = audit.entries[:_MOST_LINES]
    more = len(audit.entries) - len(shown)
    notes = [f"The vertical axis begins at {percent(lowest)}, not at zero."] if lowest else []
    notes += _alike(audit)
    return {
        "finding": finding(audit),
        "told": evidence(audit),
        "figure": figure,
        "legend": legend,
        "axis_note": " ".join(notes),
        "steps": _steps(audit),
        "names": [name for _, _, name in legend],
        "has_ids": any(entry.id is not None for entry in audit.entries),
        "by_source": audit.plan.sources is not None,
        "unit": _unit(audit),
        "lines": [
            {
                "place": place + 1,
                "row": "" if entry.row is None else f"{entry.row:,}",
                "source": "" if entry.source is None else entry.source,
                "labels": f"{entry.n_labels:,}",
                "id": "" if entry.id is None else entry.id,
                "label": entry.label,
                "reason": reason(entry),
                "picture": None
                if entry.row is None
                else album.show(result.train_images.get(entry.row), f"training row {entry.row}"),
            }
            for place, entry in enumerate(shown)
        ],
        "more": f"and {more:,} more in audit.csv" if more else "",
        "is_not": [IF_RIGHT, NOT_ERRORS, NOT_PROOF, NOT_OTHERS],
    }


def _unit(audit: Audit) -> str:
    """What is checked."""
    return "labels" if audit.plan.sources is None else "sources"


def _curves(audit: Audit) -> list[tuple[str, str, str, Any]]:
    """Style, name, short name and shares of all curves."""
    plan = audit.plan
    curves = [
        ("planned", "planned for these points", "planned", plan.certified),
        ("listed", "the list", "list", audit.listed.certified),
    ]
    if plan.held_out is not None:
        curves.append(("held-out", "planned for one half, measured on the other", "held out", plan.held_out))
    if plan.random is not None:
        curves.append(("random", "random checks", "random", plan.random))
    return curves


def _alike(audit: Audit) -> list[str]:
    """Which curves hide each other, in a sentence."""
    groups: dict[bytes, list[str]] = {}
    for _, name, _, shares in _curves(audit):
        groups.setdefault(shares.tobytes(), []).append(name)
    if len(groups) == 1:
        return ["All curves coincide."]
    alike = [own for own in groups.values() if len(own) > 1]
    return [f"These curves coincide: {' and '.join(f'“{name}”' for name in own)}." for own in alike]


def _figure(audit: Audit) -> tuple[Markup, Legend, float]:
    """Share of test points that are proven after each number of checks, and the share that the axis begins at."""
    curves, plan = _curves(audit), audit.plan
    last = len(plan)
    low, high = min(own[3].min() for own in curves), max(own[3].max() for own in curves)
    # Checks change a part of the shares: the axis shows that part, from one round number to another.
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.25) if (high - low) / s <= 4 or s == 0.25)
    bottom = min(max(0, int(low / step + 1e-9)), round(1 / step) - 1)  # where all is proven, there is room below
    top = min(round(1 / step), max(int(-(-(high - 1e-9) // step)), bottom + 1))
    span = (top - bottom) * step
    plot = Plot(linear(last), lambda share: (share - bottom * step) / span)
    ticks = [(own * step, f"{100 * own * step:.0f} %") for own in range(bottom, top + 1)]
    plot.grid(ticks, "share of test points, correct and proven" if plan.counts_correct else "share of points proven")
    plot.base([(t, f"{t:,}", "") for t in round_ticks(last, 8)], f"{_unit(audit)} checked")
    for series, (style, _, _, shares) in reversed(list(enumerate(curves))):
        points = list(zip(range(shares.size), shares.tolist(), strict=False))
        plot.line(points, style, series, steps=True)
    told = "; ".join(f"{name}: {percent(shares[0])} to {percent(shares[-1])}" for _, name, _, shares in curves)
    described = f"Line chart: share of test points proven after up to {plural(last, 'check')}. {told}."
    legend = [(series, own[0], own[1]) for series, own in enumerate(curves)]
    return plot.render(described), legend, bottom * step


def _steps(audit: Audit) -> list[tuple[str, list[str]]]:
    """The same as numbers, for some numbers of checks."""
    curves, last = _curves(audit), len(audit.plan)
    places = sorted({round(last * k / _MOST_STEPS) for k in range(_MOST_STEPS + 1)})
    return [
        (f"{place:,}", [percent(shares[min(place, shares.size - 1)]) for _, _, _, shares in curves]) for place in places
    ]
