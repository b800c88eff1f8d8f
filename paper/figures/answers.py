"""The questions that the evaluation answers, with answers from the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from paper.figures.drawing import in_words, seconds_a_point
from paper.figures.figure import load
from paper.figures.table import Row
from paper.figures.verdicts import area, judge, meeting

Tables = Mapping[str, Sequence[Row]]
# A sentence, which may be empty, and points below it.
Answer = tuple[str, list[str]]


def answers(tables: Tables) -> str:
    """The section of questions and answers, as far as the tables go."""
    lines = []
    for question, answer in _QUESTIONS.items():
        lead, points = answer(tables)
        if lead or points:
            lines += [f"- **{question}** {lead}".rstrip(), *(f"  - {point}" for point in points)]
    return "\n".join(["## Questions and answers", "", *lines, ""]) if lines else ""


def _verdicts(*names: str, reason: bool = False) -> Callable[[Tables], Answer]:
    """The verdicts of some figures, panel by panel, with the first sentence of the reason if asked for."""

    def answer(tables: Tables) -> Answer:
        told = []
        for name in names:
            if name in tables:
                figure = load(name)
                findings = [
                    f"{f.panel}: {f.verdict}" + (f" ({_first_clause(f.text)})" if reason else "")
                    for f in judge(figure, tables[name])
                ]
                told.append(f"[{figure.title.split(':')[0]}](#{name}): {'; '.join(findings)}.")
        return "", told

    return answer


def _first_clause(text: str) -> str:
    """The first sentence, as part of another one."""
    return text[:1].lower() + text[1:].split(". ")[0]


def _findings(name: str) -> Callable[[Tables], Answer]:
    """All that was found in a figure, panel by panel."""

    def answer(tables: Tables) -> Answer:
        return "", [f"{f.panel}: {f.text}" for f in judge(load(name), tables[name])] if name in tables else []

    return answer


def _meetings(tables: Tables) -> Answer:
    """Where white-box meets black-box, for each setting of the figures of medians."""
    told = []
    for rows in _settings(tables).values():
        met = meeting(rows)
        where = "does not" if met is None else f"at N = {met['partitions']}"
        if met is not None and met.get("share_fragile") is not None:
            where += f" ({met['share_fragile']:.0%} of majority voters have cost 1)"
        told.append(f"{_name(rows[0])}: {where}")
    return "", told


def _tightness(tables: Tables) -> Answer:
    rows = [row for own in _settings(tables).values() for row in own if row["partitions"] > 1]
    ours = [row["share_exact"] for row in rows]
    theirs = [row["share_exact_published"] for row in rows if row.get("share_exact_published") is not None]
    if not theirs:
        return "", []
    lead = (
        f"Ours for {min(ours):.2%} to {max(ours):.2%} of the test points; the paper's own bounds for {min(theirs):.2%} "
        f"to {max(theirs):.2%}."
    )
    return lead, []


def _thresholds(tables: Tables) -> Answer:
    """The largest C of each SVM whose scores are linear in the labels."""
    known = [row for rows in _settings(tables).values() for row in rows if row.get("C_max") is not None]
    if not known:
        return "", []
    lead = "For one model on all samples (the paper: of order 100 on MNIST):"
    return lead, [f"{_name(row)}: {row['C_max']:.2g}" for row in known]


def _choice(tables: Tables) -> Answer:
    """The cheapest number of partitions whose curve is within five per cent of the best, for each panel of times."""
    told = []
    for rows in _panels_of(tables.get("time", ())).values():
        good = [row for row in rows if area(row) >= 0.95 * max(area(other) for other in rows)]
        best = min(good, key=seconds_a_point)
        spent = f"{1e3 * seconds_a_point(best):.2g} ms a point"
        told.append(f"{_name(rows[0])}: N = {best['partitions']} (median {best['median']}, {spent})")
    if not told:
        return "", []
    return "The fastest whose certified accuracy is, on average over flips, within 5 % of the best:", told


_QUESTIONS: dict[str, Callable[[Tables], Answer]] = {
    "Is the median of the SVM invariant to N until it meets black-box?": _verdicts("figure-2a", "partitions-1-vs-7"),
    "On MNIST, does it decline sharply and then stay level?": _verdicts("figure-2b"),
    "Does it fall with N for strongly regularised ridge regression?": _verdicts("figure-2c", "figure-2d"),
    "What do 10 partitions gain over 1000?": _findings("figure-1b"),
    "Does regularisation turn the trend, and where?": _verdicts(
        "regularisation-cifar10", "regularisation-mnist", reason=True
    ),
    "At which N does white-box meet black-box?": _meetings,
    "Do lower and upper bounds coincide?": _tightness,
    "Up to which C is an SVM linear in its labels?": _thresholds,
    "Does one model beat its ensembles?": _verdicts(
        "figure-3a", "figure-3b", "figure-3c", "figure-3d", "unpartitioned-ridge"
    ),
    "How long does it take, and how much faster is it than published?": _findings("time"),
    "Which N would one choose?": _choice,
}


def _settings(tables: Tables) -> dict[tuple[object, ...], list[Row]]:
    """Rows of the figures of medians with the paper's bounds, by all settings but the number of partitions."""
    names = ("figure-2a", "figure-2b", "figure-2c", "figure-2d", "partitions-1-vs-7")
    return _panels_of([row for name in names for row in tables.get(name, ())])


def _panels_of(rows: Sequence[Row]) -> dict[tuple[object, ...], list[Row]]:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = tuple(row.get(name) for name in ("data", "model", "scale", "activation", "reg"))
        groups.setdefault(key, []).append(row)
    return groups


def _name(row: Row) -> str:
    return " ".join(
        in_words(name, row[name]) for name in ("data", "model", "reg", "activation", "scale") if row.get(name)
    )
