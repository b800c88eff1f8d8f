"""The results page: every figure beside what the paper says of it, all numbers from the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from paper.figures.answers import answers
from paper.figures.captions import caption
from paper.figures.figure import Figure
from paper.figures.measures import MARK, MET, NEAR, is_near
from paper.figures.rules import RULES
from paper.figures.table import Row
from paper.figures.verdicts import SETTINGS, VERDICTS, Finding, judge, marked
from paper.figures.words import in_words

Made = tuple[Figure, list[Row]]

_INTRODUCTION = f"""\
# The paper's evaluation, made again

Every figure of the EnsembleCert paper with our data, from `python -m paper all`; every number on this page comes
from the tables beside it (`*.parquet`), which that command wrote. The paper's own features (RotNet and SimCLR
checkpoints) are not to be had, so numbers compare in shape and order of magnitude, not in value.

## How to read this page

Each figure quotes what the paper claims of it, word for word, and is judged by that claim for each of our instances.
Rule and thresholds stand in the file of the figure (`figures/declared/*.toml`), and were written down before the
instances that they judge were run; for the instances of the first version of this page they were made stricter
afterwards.

- *reproduced*: the claim holds, as the rule beside it demands, over all N of the instance: those that the paper shows,
  or the fewer that its numbers list.
- *reproduced in shape*: the weaker demand of the same rule holds.
- *not reproduced*: neither does.
- *a theorem, not counted*: it is proven to hold, so that seeing it proves nothing about an experiment.
- **{MARK}**: near one class. Always naming the most frequent class of the test set has some accuracy; the model is
  less than {NEAR:.0%} of the way from there to 1. Its certificates are right, but it is little of a classifier.
- *Chosen afterwards*: an instance that the paper does not have, picked after its own had been seen.

| word | what it is |
| --- | --- |
| N | number of partitions; 1 is one model on everything |
| flips | changed training labels, of all classes, chosen by an attacker who knows everything |
| MCR, median | median certified robustness: flips that half of the *correct* predictions are proven to withstand |
| a to b | from what is proven to what attacks are known for, where they differ |
| over all points | the same among all test points, with wrong predictions as none |
| black-box | what votes alone prove (SS-DPA), for the same votes |
| as published | the paper's own pair of bounds in place of ours |
| exact, exact as published | share of the test points where lower and upper bound are equal |
| cost 1 | share of the voters for the winner that a single flip turns |
| in the mean | area under the curve of certified accuracy: flips that a test point is certified right against |
| meets | the white-box median is at most {MET:g} times the black-box one |
| mean diag Q | mean of the kernel's diagonal on the training set, which regularisation is compared with |
"""


def render(made: Sequence[Made]) -> str:
    """The page as Markdown."""
    parts = [_INTRODUCTION, _data(made), answers({figure.name: rows for figure, rows in made}), _overview(made)]
    return "\n".join([*(part for part in parts if part), *(_section(figure, rows) for figure, rows in made)])


def picture_of(figure: Figure) -> str:
    """The name of the file that a figure is drawn in."""
    return f"{figure.name}.webp"


def _data(made: Sequence[Made]) -> str:
    seen = dict.fromkeys(
        (row["data"], row["features"], row["n_train"], row["n_test"], row.get("most_frequent"))
        for _, rows in made
        for row in rows
        if "features" in row and row.get("points") is None
    )
    lines = [
        f"- {in_words('data', data)}: {in_words('features', what)}; {n:,} for training, {t:,} test points"
        + ("" if share is None else f", {share:.1%} of them of the most frequent class")
        for data, what, n, t, share in seen
    ]
    return "## Data\n\n" + "\n".join(lines) + "\n" if lines else ""


def _overview(made: Sequence[Made]) -> str:
    found = {figure.name: judge(figure, rows) for figure, rows in made}
    total = Counter(finding.verdict for findings in found.values() for finding in findings)
    lines = [
        "## All claims",
        "",
        f"Over all claims and instances: {_counted(total)}.",
        "",
        "| figure | claim | verdicts over instances |",
        "| --- | --- | --- |",
    ]
    for figure, _ in made:
        for claim in figure.claims:
            own = Counter(finding.verdict for finding in found[figure.name] if finding.claim is claim)
            lines.append(f"| [{figure.number or 'new'}](#{figure.name}) | {_short(claim.words)} | {_counted(own)} |")
    return "\n".join([*lines, ""])


def _counted(verdicts: Counter[str]) -> str:
    return ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS if verdicts[verdict])


def _short(words: str, most: int = 130) -> str:
    """The beginning of a quotation."""
    return words if len(words) <= most else words[:most].rsplit(" ", 1)[0] + " ..."


def _section(figure: Figure, rows: list[Row]) -> str:
    table = "" if figure.form in ("small-c", "times") else _table(figure, rows)
    return "\n".join(
        [
            f'<a id="{figure.name}"></a>',
            "",
            f"## {figure.title}",
            "",
            f"`python -m paper {figure.name}` · {figure.paper}.",
            "",
            f"![{figure.title}]({picture_of(figure)})",
            "",
            f"*{caption(figure, rows)}*",
            "",
            *_judged(figure, judge(figure, rows)),
            *([figure.why, ""] if figure.why else []),
            table,
        ]
    )


def _judged(figure: Figure, findings: Sequence[Finding]) -> list[str]:
    """Each claim, its rule, and the verdicts on it."""
    lines = []
    for claim in figure.claims:
        lines += [
            f"> {claim.words} ({claim.where})",
            "",
            f"Reproduced if {RULES[claim.rule].in_words(claim.thresholds)}.",
            "",
        ]
        lines += [
            f"- {finding.instance + ': ' if finding.instance != 'all' else ''}**{finding.verdict}.** {finding.text}"
            for finding in findings
            if finding.claim is claim
        ]
        lines.append("")
    return lines


_COLUMNS: dict[str, Callable[[Row], str]] = {
    "N": lambda row: f"{row['partitions']}{f' {MARK}' if is_near(row) else ''}",
    "accuracy": lambda row: f"{row['accuracy']:.3f}",
    "MCR": lambda row: _pair(row, "median"),
    "as published": lambda row: _pair(row, "median_published"),
    "black-box": lambda row: _known(row, "median_votes", "d"),
    "over all points": lambda row: _known(row, "median_all", "d"),
    "exact": lambda row: _known(row, "share_exact", ".1%"),
    "exact as published": lambda row: _known(row, "share_exact_published", ".1%"),
    "cost 1": lambda row: _known(row, "share_fragile", ".0%"),
}


def _table(figure: Figure, rows: list[Row]) -> str:
    """Numbers of each instance, folded away."""
    lines = ["<details><summary>Numbers</summary>", ""]
    told = [name for name in SETTINGS if name != "partitions" and len({row.get(name) for row in rows}) > 1]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.get("seed") is None:
            groups.setdefault(tuple(row.get(name) for name in told), []).append(row)
    for key, own in groups.items():
        shown = ", ".join(in_words(name, value) for name, value in zip(told, key, strict=True) if value is not None)
        threshold = next((row["C_max"] for row in own if row.get("C_max") is not None), None)
        limit = "" if threshold is None else f" (C_max {threshold:.2g} for one model)"
        columns = {name: show for name, show in _COLUMNS.items() if any(show(row) for row in own)}
        lines += [f"{marked(shown or 'all', figure, own)}{limit}:", ""]
        lines += [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
        ordered = sorted(own, key=lambda row: row["partitions"])
        lines += [f"| {' | '.join(show(row) for show in columns.values())} |" for row in ordered]
        lines.append("")
    return "\n".join([*lines, "</details>", ""])


def _pair(row: Row, name: str) -> str:
    """A median, with its upper bound where that is another."""
    lower, upper = row.get(name), row.get(f"{name}_upper")
    return "" if lower is None else str(lower) if lower == upper else f"{lower} to {upper}"


def _known(row: Row, name: str, form: str) -> str:
    value: Any = row.get(name)
    return "" if value is None else format(value, form)
