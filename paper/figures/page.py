"""The results page: every figure beside what the paper says of it, all numbers from the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from paper.figures.answers import answers
from paper.figures.drawing import in_words, panels
from paper.figures.figure import Figure
from paper.figures.table import Row
from paper.figures.verdicts import judge

Made = tuple[Figure, list[Row]]

_INTRODUCTION = """\
# The paper's evaluation, made again

Every figure of the EnsembleCert paper with our data, from `python -m paper all`; every number on this page comes
from the tables beside it (`*.parquet`), which that command wrote. The paper's own features (RotNet and SimCLR
checkpoints) are not to be had, so numbers compare in shape and order of magnitude, not in value.

N is the number of partitions. *Median certified robustness* (MCR): the number of flipped labels that half of the
correct predictions are proven to withstand. *Upper*: what attacks are known for. *Black-box*: what votes alone prove
(SS-DPA). *As published*: the paper's own pair of bounds.
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
        (row["data"], row["features"], row["n_train"], row["n_test"])
        for _, rows in made
        for row in rows
        if "features" in row
    )
    lines = [f"- {in_words('data', data)}: {what}; {n:,} for training, {t:,} test points" for data, what, n, t in seen]
    return "## Data\n\n" + "\n".join(lines) + "\n" if lines else ""


def _overview(made: Sequence[Made]) -> str:
    lines = ["## All figures", "", "| figure | in the paper | verdict |", "| --- | --- | --- |"]
    for figure, rows in made:
        verdicts = dict.fromkeys(finding.verdict for finding in judge(figure, rows))
        lines.append(f"| [{figure.title}](#{figure.name}) | {figure.paper} | {', '.join(verdicts)} |")
    return "\n".join([*lines, ""])


def _section(figure: Figure, rows: list[Row]) -> str:
    findings = [
        f"- {finding.panel + ': ' if finding.panel != 'all' else ''}**{finding.verdict}.** {finding.text}"
        for finding in judge(figure, rows)
    ]
    table = _table(figure, rows) if figure.form == "medians" else ""
    return "\n".join(
        [
            f'<a id="{figure.name}"></a>',
            "",
            f"## {figure.title}",
            "",
            f"`python -m paper {figure.name}` · {figure.paper}. The paper: {figure.claim}",
            "",
            f"![{figure.title}]({picture_of(figure)})",
            "",
            *findings,
            *([f"- {figure.why}"] if figure.why else []),
            *_relative(rows),
            "",
            table,
        ]
    )


def _relative(rows: list[Row]) -> list[str]:
    """How large regularisations are beside the kernel, which is what counts."""
    told: dict[str, None] = {}
    for row in rows:
        if row.get("reg_over_diag") is not None:
            names = [name for name in ("data", "scale", "activation") if len({other.get(name) for other in rows}) > 1]
            which = " ".join(in_words(name, row[name]) for name in names if row.get(name) is not None)
            told[f"reg {row['reg']:g} = {row['reg_over_diag']:.2g}{f' ({which})' if which else ''}"] = None
    return [f"- Over the mean of diag Q: {', '.join(told)}."] if told else []


_COLUMNS: dict[str, Callable[[Row], str]] = {
    "N": lambda row: str(row["partitions"]),
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
    """Medians of each panel, folded away."""
    lines = ["<details><summary>Numbers</summary>", ""]
    for name, own in panels(figure, rows):
        threshold = next((row["C_max"] for row in own if row.get("C_max") is not None), None)
        limit = "" if threshold is None else f" (C_max {threshold:.2g} for one model)"
        lines += [f"{name}{limit}:", "", f"| {' | '.join(_COLUMNS)} |", f"|{' --- |' * len(_COLUMNS)}"]
        ordered = sorted(own, key=lambda row: row["partitions"])
        lines += [f"| {' | '.join(show(row) for show in _COLUMNS.values())} |" for row in ordered]
        lines.append("")
    return "\n".join([*lines, "</details>", ""])


def _pair(row: Row, name: str) -> str:
    """A median, with its upper bound where that is another."""
    lower, upper = row.get(name), row.get(f"{name}_upper")
    return "" if lower is None else str(lower) if lower == upper else f"{lower} to {upper}"


def _known(row: Row, name: str, form: str) -> str:
    value: Any = row.get(name)
    return "" if value is None else format(value, form)
