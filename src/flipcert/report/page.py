"""The page as a whole: checks, the answer, comparison of results, settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

import flipcert
from flipcert.engine.files import whole_file
from flipcert.labels.threats import FLIPS
from flipcert.report.check_words import same_as_right
from flipcert.report.cohorts import Question, cohorts, other_files, what_differs
from flipcert.report.collective_words import finding
from flipcert.report.figures import sweep_figure
from flipcert.report.panel import panel, row
from flipcert.report.pictures import Album
from flipcert.report.promises import promises
from flipcert.report.result import Result
from flipcert.report.settings_table import settings_of
from flipcert.report.source_words import colluding
from flipcert.report.summary import Summary
from flipcert.report.units import unit_of
from flipcert.report.words import Sentence, capital, outside, percent, plural, setting, shorten, unbroken
from flipcert.report.worth import choose, one_in_a_hundred, rule, what_it_means, why

_MOST_DETAILED = 48
_COPIED = " With copies, it is cut into as many times more buckets, each of which is given to that many voters."


def write_report(results: Sequence[Result], path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Write the page of :func:`report_page` to a file, which appears whole or not at all.

    Parameters
    ----------
    results : sequence of Result
        Certified test sets.
    path : str or path-like
        Where to write; an existing file is replaced.
    title : str, default=None
        What the page is about.
    """
    page = report_page(results, title=title).encode()
    with whole_file(path) as file:
        file.write(page)


def report_page(results: Sequence[Result], *, title: str | None = None) -> str:
    """One HTML page about certified test sets. It loads nothing, so it works offline and can be sent by mail.

    The same results give the same page.

    Parameters
    ----------
    results : sequence of Result
        Certified test sets, with a tab for each; those of the same test points and as many labels to flip are compared.
    title : str, default=None
        What the page is about.

    Returns
    -------
    str
    """
    results = list(results)
    if not results:
        raise ValueError("results is empty; give at least one certified test set.")
    for i, result in enumerate(results):
        _check(result, i)
    detail = next(points for most, points in ((4, 5), (12, 4), (30, 3), (len(results), 2)) if len(results) <= most)
    summaries = [Summary(result, i, detail) for i, result in enumerate(results)]
    groups = {question: [summaries[i] for i in numbers] for question, numbers in cohorts(results).items()}
    chosen = [group[choose([s.standing for s in group])] for group in groups.values()]
    # Should there be no room for all, the best of each group have their details, and their pictures.
    ranked = sorted(summaries, key=lambda s: (s not in chosen, s.doubt is not None, -s.standing.average))
    album = Album()
    details = {s.number: panel(s, album) for s in ranked[:_MOST_DETAILED]}
    rows = [row(s, chosen=s in chosen, first=s is chosen[0], detailed=s.number in details) for s in summaries]
    panels = [told | details[told["number"]] for told in rows if told["detailed"]]
    one_question = len(groups) == 1
    context = {
        "title": outside(title or _page_title(summaries)),
        "headline": chosen[0].doubt or chosen[0].headline if one_question else _questions(len(results), len(groups)),
        "lead": _lead(chosen[0], summaries) if one_question else _why_apart(groups),
        "figures": _figures(chosen[0]) if one_question else [],
        "n_results": len(results),
        "groups": [_group(question, group, rows, list(groups)) for question, group in groups.items()],
        "panels": panels,
        "promises": promises(summaries),
        **settings_of(results, album),
        "pictures": album.definitions,
        "version": flipcert.__version__,
    }
    return _template().render(context).lstrip()


def _group(
    question: Question, group: Sequence[Summary], rows: Sequence[dict[str, Any]], questions: Sequence[Question]
) -> dict[str, Any]:
    """A table of results that can be compared; where there are several, each says what it is about."""
    alone = len(questions) == 1
    results = [s.result for s in group]
    sweep = _sweep(group)
    told = [] if alone else [other_files(results)]
    if not alone and len(group) > 1:
        told.append(why([s.standing for s in group]))
    return {
        "title": _title(question, questions, sweep["sweep"] is not None),
        "told": [text for text in told if text],
        "rule": rule(question.labelled, question.exposure.unit)
        if question.exposure.reach
        else f"{question.exposure.nothing}.",
        "rows": [rows[s.number] for s in group],
        "compared": len(group) > 1,
        "labelled": question.labelled,
        "any_flips": question.exposure.reach > 0,
        "any_votes": any(s.medians.votes is not None for s in group),
        "any_seconds": any(result.seconds is not None for result in results),
        **sweep,
    }


def _page_title(summaries: Sequence[Summary]) -> str:
    """What the page is about, if nobody says it."""
    made = {s.unit.all_made for s in summaries}
    return f"{capital(made.pop()) if len(made) == 1 else 'Poisoned training data'}: what the predictions withstand"


def _title(question: Question, questions: Sequence[Question], is_sweep: bool) -> str:
    if len(questions) > 1:
        return question.told(among_others=len({own.threat for own in questions}) > 1)
    return "Robustness against the number of partitions" if is_sweep else "All results beside each other"


def _questions(n_results: int, n_questions: int) -> Sentence:
    return Sentence(
        f"These {n_results:,} results answer ", f"{n_questions:,} different questions", ", and are not ranked together"
    )


def _why_apart(groups: Mapping[Question, Sequence[Summary]]) -> list[str]:
    """Why there is no single answer."""
    told = [f"They cannot be compared across tables: {what_differs(list(groups))}."]
    if any(len(group) > 1 for group in groups.values()):
        told.append("Results of the same table can be, and each such table has the one to choose.")
    return told


def _check(result: Result, i: int) -> None:
    certificates = result.certificates
    if len(certificates) == 0:
        raise ValueError(f"results[{i}] has no test points; give at least one.")
    if result.labels is not None:
        try:
            certificates.correct(result.labels)
        except ValueError as error:
            raise ValueError(f"results[{i}].labels do not fit: {error}") from None
    _check_collective(result, i)
    for attack in result.attacks:
        if not 0 <= attack.row < len(certificates):
            raise ValueError(f"results[{i}] has an attack on row {attack.row}, but {len(certificates)} test points.")
        if attack.size <= certificates.radius[attack.row]:
            nouns = unit_of(certificates.threat).nouns
            raise ValueError(
                f"results[{i}] has an attack of {attack.size} {nouns} on row {attack.row}, which is certified to "
                f"withstand {certificates.radius[attack.row]}: they are not of the same model."
            )


def _check_collective(result: Result, i: int) -> None:
    """Raise ValueError if what one attack does is not about these predictions."""
    if result.collective is None:
        return
    c, told = result.certificates, result.collective.certificate
    if told.threat != c.threat or not np.array_equal(told.prediction, c.prediction):
        raise ValueError(f"results[{i}] has a collective certificate of other predictions, or of another threat.")
    if told.counts_correct and result.labels is None:
        raise ValueError(f"results[{i}] counts correct predictions, but has no labels.")


def _lead(best: Summary, summaries: Sequence[Summary]) -> list[str]:
    proven, attacked = best.medians.proven, best.medians.attacked
    sentences = [] if best.doubt is None else [what_it_means(best.result), f"{best.headline}."]
    sentences += [] if best.unmatched is None else [best.unmatched]
    if best.counts.any() and proven and best.proven:
        labels = best.exposure.only(f"of these {best.unit.thing}s") or f"{best.unit.thing}s"
        told = f"{best.unit.picked.format(labels=labels)}: this is proven, not estimated."
        if proven == best.reach and best.exposure.n_trusted and best.unit.threat == FLIPS.name:
            which = "it is" if best.reach == 1 else "they are"
            told = f"To whichever of the classes {which} flipped: this is proven, not estimated."
        if attacked is not None and proven == attacked < best.reach and best.counts.sum() > 1:
            more = plural(proven + 1, best.unit.noun)
            told += f" It is also all there is: with {more}, more than half of them have a known attack."
        sentences.append(told)
    sentences += colluding(best)
    sentences += _together(best)
    sentences += [] if best.result.check is None else [f"{same_as_right(best.result)}."]
    if len(summaries) > 1:
        start = (
            f"This is {outside(best.standing.name)}, of the {len(summaries):,} results on this page the one to choose"
        )
        sentences.append(why([s.standing for s in summaries], start))
        sentences += [told] if (told := other_files([s.result for s in summaries])) else []
    if not best.labelled:
        sentences.append(
            "The true labels of the test points are not known: the page tells what stays the same, not what is right."
        )
    return sentences


def _together(best: Summary) -> list[str]:
    """What one attack on all points can do, at the largest budget that was asked about."""
    told = best.result.collective
    if told is None or best.reach == 0 or not best.counts.any():
        return []
    return [f"{finding(told.certificate, int(np.argmax(told.certificate.flips)))}."]


def _figures(best: Summary) -> list[tuple[str, str, str]]:
    c = best.result.certificates
    figures = []
    if best.accuracy is not None:
        right = int(best.counts.sum())
        figures.append(
            ("accuracy without an attack", percent(best.accuracy), f"{right:,} of {plural(len(c), 'test point')}")
        )
    else:
        figures.append(("test points", f"{len(c):,}", ""))
    # What an attacker who has one label in a hundred could do.
    if best.reach:
        flips = one_in_a_hundred(best.exposure)
        kept = "proven correct" if best.labelled else "proven unchanged"
        under = plural(flips, best.unit.noun)
        figures.append((f"{kept} under {under}", percent(best.standing.kept), best.exposure.done(flips)))
        others = "" if c.exact.all() else "the others are lower bounds" if c.exact.any() else "all are lower bounds"
        figures.append(("radii known exactly", percent(c.exact.mean()), others))
    n = best.result.n_partitions
    trusted = f"{best.exposure.n_trusted:,}" if best.reach else "all"
    remark = f"{trusted} of them trusted, " if best.exposure.n_trusted else ""
    remark += "" if best.exposure.n_sources is None else f"from {plural(best.exposure.n_sources, 'source')}, "
    n_copies = best.result.n_copies
    if n_copies > 1:
        remark += f"in {plural(n * n_copies, 'bucket')}, each given to {n_copies} voters"
    else:
        remark += f"in {plural(n, 'partition')}" if n > 1 else "one model"
    figures.append(("training labels", f"{c.n_labels:,}", remark))
    return figures


def _sweep(summaries: Sequence[Summary]) -> dict[str, Any]:
    """Median against partitions, one line a setting, where there are several numbers of partitions."""
    if summaries[0].reach == 0:
        return {"sweep": None}
    varied = _varied([s.result for s in summaries])
    groups: dict[str, list[Summary]] = {}
    for s in summaries:
        own = {"model": s.result.model, **s.result.settings}
        name = ", ".join(
            str(own[key]) if key == "model" else f"{key} {setting(own[key])}" for key in varied if key in own
        )
        groups.setdefault(name or s.result.model or "all", []).append(s)
    if all(len({s.result.n_partitions for s in group}) < 2 for group in groups.values()):
        return {"sweep": None}
    lines = [
        (name, [(s.result.n_partitions, s.medians) for s in sorted(group, key=lambda s: s.result.n_partitions)])
        for name, group in groups.items()
    ]
    figure, legend = sweep_figure(lines, summaries[0].exposure, labelled=summaries[0].labelled)
    kind = summaries[0].kind
    medians = [s.medians for s in summaries]
    return {
        "sweep": figure,
        "sweep_legend": legend,
        "sweep_parts": {
            "attacked": any(m.attacked is not None for m in medians),
            "votes": any(m.votes is not None for m in medians),
        },
        "sweep_note": f"Median certified robustness: the largest number of {summaries[0].unit.nouns} that at least "
        f"half of the {kind} withstand, when the training set is cut into that many partitions that vote."
        + (_COPIED if any(s.result.n_copies > 1 for s in summaries) else ""),
    }


def _varied(results: Sequence[Result]) -> list[str]:
    """Settings that are not the same for all results."""
    rows = [{"model": result.model, **result.settings} for result in results]
    keys = dict.fromkeys(key for row in rows for key in row)
    # What some models do not have, such as the rule of ensembles, does not tell the others apart.
    return [key for key in keys if len({str(row[key]) for row in rows if key in row}) > 1]


@cache
def _template() -> jinja2.Template:
    here = files("flipcert.report")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters["short"] = shorten
    environment.filters["outside"] = outside
    environment.filters["unbroken"] = unbroken
    environment.globals["css"] = Markup((here / "page.css").read_text(encoding="utf-8"))
    environment.globals["script"] = Markup((here / "page.js").read_text(encoding="utf-8"))
    # Indentation is for those who read the template.
    lines = (here / "page.html").read_text(encoding="utf-8").splitlines()
    return environment.from_string("\n".join(line.lstrip() for line in lines))
