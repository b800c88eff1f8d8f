"""The questions that the evaluation answers, with answers from the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from paper.figures.benchmarks import ratios
from paper.figures.figure import load
from paper.figures.measures import area, ensembles, gain, meeting
from paper.figures.rules.other import seconds_a_point
from paper.figures.table import Row
from paper.figures.verdicts import judge
from paper.figures.words import in_words

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


def _verdicts(rule: str, *names: str) -> Callable[[Tables], Answer]:
    """The verdicts of a rule on some figures, instance by instance."""

    def answer(tables: Tables) -> Answer:
        told = []
        for name in names:
            if name in tables:
                figure = load(name)
                found = [f"{f.instance}: {f.verdict}" for f in judge(figure, tables[name]) if f.claim.rule == rule]
                told.append(f"[{figure.title.split(':')[0]}](#{name}): {'; '.join(found)}.")
        return "", told

    return answer


def _findings(*names: str) -> Callable[[Tables], Answer]:
    """All that was found about the first claim of some figures, instance by instance."""

    def answer(tables: Tables) -> Answer:
        return "", [
            f"[{figure.number or 'all data'}](#{figure.name}), {f.instance}: {f.verdict}. {f.text}"
            for figure in (load(name) for name in names if name in tables)
            for f in judge(figure, tables[figure.name])
            if f.claim is figure.claims[0]
        ]

    return answer


def _improvement(tables: Tables) -> Answer:
    """What white-box knowledge is worth at low regularisation, where the paper sees nothing significant."""
    told = []
    for name in ("grid-cifar10-ridge-0.01", "grid-mnist-ridge-0.0001"):
        for rows in _panels_of(tables.get(name, ())).values():
            few = ensembles(rows)[0]
            told.append(
                f"[{_name(few)}](#{name}): at N = {few['partitions']} a median of {few['median']} against "
                f"{few['median_votes']} black-box, {gain(few):.1f} times as many flips in the mean"
            )
    if not told:
        return "", []
    return "There is. The paper says that it sees no significant improvement, and our medians contradict it.", told


def _time(tables: Tables) -> Answer:
    """Ratios of one machine first; then what our figure of times shows."""
    if "time" not in tables:
        return "", []
    return ratios(), [f"{f.instance}: {f.text}" for f in judge(load("time"), tables["time"])]


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
    "Is the median of the SVM invariant to N until it meets black-box?": _verdicts(
        "invariant", "figure-2a", "partitions-1-vs-7"
    ),
    "On MNIST, does it decline sharply and then stay level?": _verdicts("declines-then-levels", "figure-2b"),
    "Does it fall with N for strongly regularised ridge regression, by as much?": _findings("figure-2c", "figure-2d"),
    "Does regularisation turn the trend, and where?": _findings(
        "regularisation", "regularisation-cifar10", "regularisation-mnist"
    ),
    "Is there nothing to gain from white-box knowledge at low regularisation?": _improvement,
    "What does small C cost?": _findings("small-c", "small-c-ensembles"),
    "At which N does white-box meet black-box?": _meetings,
    "Do lower and upper bounds coincide?": _tightness,
    "Up to which C is an SVM linear in its labels?": _thresholds,
    "Does one model beat its ensembles?": _verdicts(
        "one-model-wins", "figure-3a", "figure-3b", "figure-3c", "figure-3d", "unpartitioned-ridge"
    ),
    "How much faster is it than the published algorithm, and where does time go?": _time,
    "Which N would one choose?": _choice,
}


def _settings(tables: Tables) -> dict[tuple[object, ...], list[Row]]:
    """Rows of the figures of medians with the paper's bounds, by all settings but the number of partitions."""
    names = ("figure-2a", "figure-2b", "figure-2c", "figure-2d", "partitions-1-vs-7")
    return _panels_of([row for name in names for row in tables.get(name, ())])


def _panels_of(rows: Sequence[Row]) -> dict[tuple[object, ...], list[Row]]:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.get("seed") is not None:
            continue
        key = tuple(row.get(name) for name in ("data", "model", "scale", "activation", "reg"))
        groups.setdefault(key, []).append(row)
    return groups


def _name(row: Row) -> str:
    return " ".join(
        in_words(name, row[name]) for name in ("data", "model", "reg", "activation", "scale") if row.get(name)
    )
