"""What the page shows of one result, ready for the template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flipcert.labels.threats import EDITS, INSERTIONS, REPLACEMENTS
from flipcert.report.attack_parts import inputs_told, parts_of
from flipcert.report.audit_panel import audit_panel
from flipcert.report.chart import element, round_ticks
from flipcert.report.check_words import checked, how_sure, remains, same_as_right, stage
from flipcert.report.collective_panel import collective_panel
from flipcert.report.figures import accuracy_figure, histogram, spread_bar
from flipcert.report.pictures import Album
from flipcert.report.series import ClassSpread
from flipcert.report.source_words import sources_panel
from flipcert.report.summary import Summary
from flipcert.report.words import Exposure, outside, percent, plural


def row(summary: Summary, *, chosen: bool, first: bool, detailed: bool) -> dict[str, Any]:
    """What a table of comparable results says of one: ``chosen`` is the one to choose, ``first`` the one to show."""
    s, result, c = summary, summary.result, summary.result.certificates
    return {
        "number": s.number,
        "chosen": chosen and s.doubt is None,
        "first": first,
        "detailed": detailed,
        "name": s.standing.name,
        "doubtful": s.doubt is not None,
        "kept": percent(s.standing.kept),
        "average": percent(s.standing.average),
        "accuracy": "" if s.accuracy is None else percent(s.accuracy),
        "medians": {
            "proven": s.exposure.amount(s.medians.proven),
            "attacked": "" if s.medians.attacked is None else s.exposure.amount(s.medians.attacked),
            "votes": "" if s.medians.votes is None else s.exposure.amount(s.medians.votes),
        },
        "exact": percent(c.exact.mean()),
        "seconds": "" if result.seconds is None else f"{result.seconds:,.1f}",
    }


def panel(summary: Summary, album: Album) -> dict[str, Any]:
    """Figures, tables and sentences about one result; only words where nothing can be flipped."""
    s = summary
    if s.reach == 0:
        return {
            "labelled": s.labelled,
            "headline": s.headline,
            "doubt": s.doubt,
            "unmatched": s.unmatched,
            "check": _check(s),
            "curve": None,
        }
    curve, curve_legend = accuracy_figure(s.curves, s.half, len(s.result.certificates), s.exposure, labelled=s.labelled)
    bars, bar_legend = histogram(s.bins, s.exposure, labelled=s.labelled)
    fragile, robust = s.notable
    alike = _alike(s)
    return {
        "labelled": s.labelled,
        "headline": s.headline,
        "doubt": s.doubt,
        "unmatched": s.unmatched,
        "check": _check(s),
        "curve": curve,
        "curve_legend": curve_legend,
        "curve_note": _curve_note(s),
        "has_attacked": s.curves.attacked is not None,
        "has_votes": s.curves.votes is not None,
        "milestones": s.milestones,
        "probe": _probe(s, curve_legend),
        "histogram": bars,
        "histogram_legend": bar_legend,
        "histogram_hint": f"Bars of {plural(s.bins.width, s.unit.noun)}. Point at one to read it.",
        "made": s.unit.all_made,
        "withstood": f"{s.unit.nouns} withstood",
        "radius_note": _radius_note(s),
        "sources": sources_panel(s),
        "collective": collective_panel(s.result, album),
        "audit": audit_panel(s.result, album),
        **_classes(s),
        "point_note": _point_note(s),
        "fragile": [_point(s, int(row), album) for row in fragile],
        "robust": [] if alike else [_point(s, int(row), album) for row in robust],
        "fragile_heading": ("Some of them" if len(s.counts) > 1 else "The prediction") if alike else "Most fragile",
    }


def _check(s: Summary) -> dict[str, Any] | None:
    """What a random check of labels proves, if there was one."""
    check = s.result.check
    if check is None:
        return None
    told = [how_sure(s.result), f"{checked(check)} {remains(check)}.", stage(check)]
    return {"finding": same_as_right(s.result), "told": [sentence for sentence in told if sentence]}


def _alike(s: Summary) -> bool:
    """Whether nothing tells fragile predictions from robust ones."""
    c = s.result.certificates
    return all(np.unique(radii[s.counts]).size <= 1 for radii in (c.radius, c.radius_upper))


def _curve_note(s: Summary) -> str:
    kept = (
        "test points are predicted correctly, and proven to stay so,"
        if s.labelled
        else "predictions are proven to stay as they are,"
    )
    note = f"How many {kept} {s.unit.choice.format(labels=s.exposure.labels)}."
    if (s.result.certificates.radius[s.counts] >= s.reach).all():
        return f"{note} {s.unit.idle}"
    if s.curves.attacked is None:
        return note + " No attack is known, so how much more holds in truth is open."
    if s.result.certificates.exact[s.counts].all():
        return note + " Known attacks break all others, so the curve is exact: the two lines coincide."
    return note + " Known attacks show how far the truth can lie above; the shaded gap is open."


def _probe(s: Summary, legend: list[tuple[int, str, str]]) -> dict[str, Any]:
    """The numbers at one place of the curves, at first where half of the points withstand the flips."""
    flips = s.half[0] if s.half else 0
    shares = dict(zip(("proven", "attacked", "votes"), s.shares(flips), strict=True))
    stride = int(s.curves.flips[1])
    return {
        "flips": flips,
        "share": f"{s.exposure.share(flips)} {s.exposure.of_all}",
        "last": s.curves.flips.size - 1,
        "place": round(flips / stride),
        "shares": [(name, style, shares[style]) for _, style, name in legend],
    }


def _radius_note(s: Summary) -> str:
    c = s.result.certificates
    unit = s.unit
    note = f"The radius of a prediction is the largest number of {unit.nouns} that it is proven to withstand."
    broken = int(np.sum(s.counts & (c.radius_upper == 0)))
    open_ = int(np.sum(s.counts & (c.radius == 0))) - broken
    if broken:
        note += f" {plural(broken, s.kind[:-1])} can {'each ' if broken > 1 else ''}be changed by a single {unit.noun}."
    if open_:
        note += f" {plural(open_, s.kind[:-1])} {'is' if open_ == 1 else 'are'} not proven to withstand even one "
        note += f"{unit.noun}, and no single {unit.noun} is known that changes " + ("it." if open_ == 1 else "them.")
    if s.bins.beyond[0]:
        count = s.bins.beyond[0]
        note += f" {s.exposure.none_of_any_size} change {plural(count, s.kind[:-1])}."
    return note


def _classes(s: Summary) -> dict[str, Any]:
    """Rows of the table by class: all of them, or the weakest and the strongest."""
    present = [spread for spread in s.classes if spread.quantiles is not None]
    if len(s.classes) < 2 or not present:
        return {"classes": []}
    ranked = sorted(present, key=lambda spread: spread.quantiles[2] if spread.quantiles else 0)
    half = 2 * s.detail
    hidden = len(ranked) - 2 * half
    shown: Sequence[ClassSpread] = ranked if hidden <= 0 else ranked[:half] + ranked[-half:]
    highest = max([q for spread in shown for q in spread.quantiles or () if q < s.reach], default=1) or 1
    rows: list[dict[str, Any]] = [
        {
            "label": spread.label,
            "count": f"{spread.n_counting:,} of {spread.n_points:,}" if s.labelled else f"{spread.n_points:,}",
            "bar": spread_bar(spread.quantiles or (), highest, s.unit),
            "median": s.exposure.amount((spread.quantiles or (0, 0, 0))[2]),
        }
        for spread in shown
    ]
    if hidden > 0:
        rows.insert(half, {"gap": f"{hidden:,} more in between"})
    by = "true class" if s.labelled else "predicted class"
    note = f"Radii of {s.kind} by {by}, weakest first: the dot is the median, the thick bar the middle half, "
    note += "the line the middle 80 %."
    absent = [spread.label for spread in s.classes if spread.quantiles is None]
    axis = [element("text", f"{tick:,}", x=f"{100 * tick / highest:.2f}%", y="12") for tick in round_ticks(highest, 4)]
    return {
        "classes": rows,
        "class_note": note,
        "class_axis": element("svg", *axis),
        "class_missing": _absent(absent),
    }


def _absent(labels: list[Any]) -> str:
    if not labels:
        return ""
    names = ", ".join(outside(label) for label in labels[:8])
    rest = f" and {len(labels) - 8:,} more" if len(labels) > 8 else ""
    return f"No prediction is correct for {names}{rest}."


def _point_note(s: Summary) -> str:
    note = f"The {s.kind} with the smallest radii, and those with the largest."
    if _alike(s):
        one = len(s.counts) == 1 or s.counts.sum() == 1
        note = "The only one there is." if one else f"All {s.kind} have the same radius."
    if s.attacks:
        note += f" {s.unit.listed}"
    if any(len(attack.inserted) for attack in s.attacks.values()):
        note += " The inputs of new rows, in numbers: flipcert attack --format csv, or worst_flips in Python."
    return note


def _point(s: Summary, row: int, album: Album) -> dict[str, Any]:
    """One test point and the flips that would change its prediction."""
    c, result = s.result.certificates, s.result
    attack, target = s.attacks.get(row), s.target(row)
    shown = 2 + s.detail
    parts = [] if attack is None else parts_of(attack, result.train_ids)
    # One part more takes no more room than to say that there is one more.
    shown += len(parts) == shown + 1
    return {
        "row": row,
        "id": None if result.test_ids is None else result.test_ids[row],
        "picture": album.show(result.test_images.get(row), f"test row {row}"),
        "prediction": c.prediction[row],
        "said": _what_it_takes(
            int(c.radius[row]), int(c.radius_upper[row]), s.exposure, target, None if attack is None else attack.size
        )
        + _capped(s, row)
        + _also_in_flips(s, row)
        + (f" {inputs_told(attack)}" if attack is not None and inputs_told(attack) else ""),
        "parts": [
            {
                "name": part.name,
                "said": part.said,
                "full": part.full,
                "picture": album.show(
                    None if part.row is None else result.train_images.get(part.row), f"training row {part.row}"
                ),
            }
            for part in parts[:shown]
        ],
        "more": max(len(parts) - shown, 0),
    }


def _also_in_flips(s: Summary, row: int) -> str:
    """The radius in flips beside that in sources."""
    if s.result.in_flips is None:
        return ""
    radius, most = int(s.result.in_flips[row]), s.result.certificates.n_attackable
    if radius == 0:
        return " Label by label, it is not proven to withstand one flip."
    flips = "any flips" if radius >= most else plural(radius, "flip")
    return f" Label by label, it withstands {flips}."


def _capped(s: Summary, row: int) -> str:
    """That a given C ends radii where new rows could leave the regime of the machine, which no attack shows."""
    c = s.result.certificates
    open_ = c.radius[row] < s.reach <= c.radius_upper[row] and row not in s.attacks
    given = s.result.model == "svm" and c.model.get("C", "auto") != "auto"
    if not open_ or not given or s.unit.threat not in (INSERTIONS.name, REPLACEMENTS.name, EDITS.name):
        return ""
    return ' A given C caps radii; C="auto" does not.'


def _what_it_takes(radius: int, upper: int, exposure: Exposure, target: Any, n_flips: int | None) -> str:
    noun = exposure.unit.noun
    if radius >= exposure.reach:
        return f"Withstands {exposure.everything}{exposure.only(f' of {exposure.labels}')}."
    proven = f"Not proven to withstand one {noun}" if radius == 0 else f"Withstands {plural(radius, noun)}"
    if upper >= exposure.reach and n_flips is None:
        return f"{proven}; no attack is known."
    needed = upper + 1 if n_flips is None else n_flips
    into = "change it" if target is None else f"make it {outside(target)}"
    into = into.replace("change", "changes", 1).replace("make", "makes", 1) if needed == 1 else into
    if radius == 0 and needed == 1:
        return f"A single {noun} {into}."
    return f"{proven}; {needed:,} {into}."
