"""Certificates as a prompt and a notebook show them: a few lines of text, and a card."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

from flipcert.report.audit_words import against, kept
from flipcert.report.chart import element
from flipcert.report.collective_words import evidence, finding
from flipcert.report.key_figures import rows_of, summarise
from flipcert.report.points import notable_points
from flipcert.report.result import Result
from flipcert.report.series import Curves, counted
from flipcert.report.words import Exposure, Sentence, headline, is_proven, percent, plural, shorten, tick
from flipcert.results.audit_plan import AuditPlan
from flipcert.results.certificates import Certificates
from flipcert.results.collective_certificate import CollectiveCertificate

_WEAKEST = 10
_WIDTH, _HEIGHT = 360, 110
# Colours of the text around it, so that it can be read in the light and in the dark.
_CARD = "max-width:44em;border:1px solid rgba(128,128,128,.5);border-radius:8px;padding:.8em 1.2em;line-height:1.5"
_FAINT = "opacity:.75;font-size:.9em"
_IF_RIGHT = "This assumes that what is checked turns out right."
_CELL = "text-align:right;padding:.1em .8em;white-space:nowrap"


def in_short(certificates: Certificates) -> str:
    """What was proven in three lines."""
    c, exposure = certificates, Exposure.of(certificates)
    title = f"Certificates of {plural(len(c), 'prediction')}"
    if len(c) == 0:
        return title
    lines = [title, f"  {headline(c, counted(c, None), labelled=False)}"]
    if exposure.reach:
        low, high = (exposure.amount(int(own)) for own in (c.radius.min(), c.radius.max()))
        radii = low if low == high else f"{low} to {high}"
        lines.append(f"  radius in {exposure.unit.nouns}: {radii}, {_exact(c)}")
    return "\n".join(lines)


def _exact(c: Certificates) -> str:
    if not is_proven(c):
        return "by the published formula, which proves less"
    exact = int(np.count_nonzero(c.exact))
    return "exact for all of them" if exact == len(c) else f"exact for {exact:,} of them, else proven from below"


def summary(certificates: Certificates, y: ArrayLike | None) -> str:
    """The key figures as the command line prints them, and what they mean in words."""
    c, labels = certificates, None if y is None else np.asarray(y)
    counts = counted(c, labels)
    said = f"{headline(c, counts, labelled=y is not None)}." if len(c) else "There are no predictions."
    if len(c) == 0:
        return said
    figures = summarise(Result(name="", certificates=c, labels=labels))
    rows = rows_of(figures, Exposure.of(c))
    widths = [max(len(row[k]) for row in rows) for k in range(2)]
    table = [f"{name:<{widths[0]}}  {value:>{widths[1]}}" for name, value in rows]
    return "\n".join([*table, "", said, *([figures["warning"]] if "warning" in figures else [])])


def card(certificates: Certificates) -> str:
    """The finding in words, a small curve and the weakest predictions, as a piece of HTML."""
    c, exposure = certificates, Exposure.of(certificates)
    if len(c) == 0:
        return str(element("div", in_short(c), style=_CARD))
    counts = counted(c, None)
    parts = [_said(headline(c, counts, labelled=False))]
    if exposure.reach:
        parts += [_curve(Curves.of(c, counts), exposure), _weakest(c, exposure)]
    return str(element("div", *parts, style=_CARD))


def collective_card(certificate: CollectiveCertificate) -> str:
    """What one attack of the largest budget does in words, and a table of all budgets, as a piece of HTML."""
    c, unit = certificate, Exposure.of(certificate).unit
    if len(c) == 0:
        return str(element("div", repr(c), style=_CARD))
    last = int(c.flips.argmax())
    rows = [
        [f"{own:,}" for own in (c.flips[k], c.changed_at_most[k], c.changed_at_least[k], c.changed_one_by_one[k])]
        + [f"{c.certified_accuracy[k]:.3f}"]
        for k in range(len(c))
    ]
    share = "certified accuracy" if c.counts_correct else "certified share"
    heads = [unit.nouns, "changed at most", "found", "point by point", share]
    told = element("div", " ".join(evidence(c, last)), style=_FAINT)
    return str(element("div", _said(finding(c, last)), told, _table(heads, rows), style=_CARD))


def collective_summary(certificate: CollectiveCertificate) -> str:
    """A line a budget, and what one attack of the largest does in words."""
    if len(certificate) == 0:
        return repr(certificate)
    last = int(certificate.flips.argmax())
    told = [f"{finding(certificate, last)}.", *evidence(certificate, last)]
    return f"{certificate!r}\n\n{' '.join(told)}"


def audit_summary(plan: AuditPlan) -> str:
    """What is proven before and after the checks, and the same in words."""
    return f"{plan!r}\n\n{_checks(plan)}. {_IF_RIGHT}"


def audit_card(plan: AuditPlan) -> str:
    """What the checks prove in words, and a table of some of them, as a piece of HTML."""
    curves = [("planned", plan.certified), ("held out", plan.held_out), ("random", plan.random)]
    known = [(name, own) for name, own in curves if own is not None]
    steps = sorted({round(len(plan) * quarter / 4) for quarter in range(5)})
    rows = [[f"{step:,}", *(f"{own[step]:.3f}" for _, own in known)] for step in steps]
    table = _table(["checked", *(name for name, _ in known)], rows)
    return str(element("div", _said(_checks(plan)), element("div", _IF_RIGHT, style=_FAINT), table, style=_CARD))


def _checks(plan: AuditPlan) -> Sentence:
    """What is proven once all checks are made, and what was before."""
    unit = plural(len(plan), "label" if plan.sources is None else "source")
    after, before = percent(float(plan.certified[-1])), percent(float(plan.certified[0]))
    points = plural(plan.n_points, "point")
    end = f" of {points} are {kept(plan)} {against(plan)}; before, it is {before}"
    return Sentence(f"Once {unit} {'is' if len(plan) == 1 else 'are'} checked, ", after, end)


def _said(sentence: Sentence) -> Markup:
    return element("div", sentence.start, element("b", sentence.answer), f"{sentence.end}.")


def _curve(curves: Curves, exposure: Exposure) -> Markup:
    """Share of predictions that are proven to stay as they are, against the size of an attack."""
    last = max(int(curves.flips[-1]), 1)
    path, height = "", None
    for flips, share in zip(curves.flips.tolist(), curves.proven.tolist(), strict=True):
        x, y = round(_WIDTH * flips / last, 1), round(_HEIGHT * (1.0 - share), 1)
        path += f"M{x},{y}" if height is None else f"H{x}V{y}"
        height = y
    lines = [
        element("line", x1=0, x2=_WIDTH, y1=y, y2=y, stroke="currentColor", stroke_opacity=".25")
        for y in (0, _HEIGHT / 2, _HEIGHT)
    ]
    names = [
        element("text", text, x=-6, y=y, text_anchor="end", dominant_baseline="middle")
        for text, y in (("100 %", 0), ("50 %", _HEIGHT / 2), ("0 %", _HEIGHT))
    ]
    remark = f"{last:,} {exposure.unit.nouns} ({tick(last / max(exposure.total, 1))})"
    names += [
        element("text", "0", x=0, y=_HEIGHT + 18),
        element("text", remark, x=_WIDTH, y=_HEIGHT + 18, text_anchor="end"),
    ]
    text = element("g", *names, fill="currentColor", font_size=12)
    curve = element("path", d=path, fill="none", stroke="#0072B2", stroke_width=2)
    box = f"-50 -10 {_WIDTH + 60} {_HEIGHT + 36}"
    drawn = element("svg", *lines, curve, text, viewBox=box, width=_WIDTH + 60, role="img", style="max-width:100%")
    title = element("div", "share of predictions proven to stay as they are", style=_FAINT)
    return element("div", title, drawn, style="margin:.6em 0")


def _weakest(c: Certificates, exposure: Exposure) -> Markup:
    """The predictions with the smallest radii."""
    rows, _ = notable_points(c, count=_WEAKEST)
    named = ~np.ma.getmaskarray(c.target)
    heads = ["row", "predicted", "withstands", "broken by", "becomes"]
    cells = [
        [
            f"{row:,}",
            shorten(c.prediction[row]),
            exposure.amount(int(c.radius[row])),
            f"{c.radius_upper[row] + 1:,}" if c.radius_upper[row] < exposure.reach else "–",
            shorten(np.ma.getdata(c.target)[row]) if named[row] else "–",
        ]
        for row in rows.tolist()
    ]
    which = "all predictions" if len(c) <= _WEAKEST else f"the weakest {len(cells)} of {len(c):,} predictions"
    title = element("div", f"{which}, in {exposure.unit.nouns}", style=_FAINT)
    return element("div", title, _table(heads, cells))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    head = element("tr", *(element("th", own, style=_CELL) for own in heads))
    body = [element("tr", *(element("td", own, style=_CELL) for own in row)) for row in rows]
    table = element("table", element("thead", head), element("tbody", *body), style="border-collapse:collapse")
    return element("div", table, style="overflow-x:auto")  # on a phone it is wider than the card
