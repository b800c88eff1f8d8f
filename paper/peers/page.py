"""The page of the comparison: one table for each data set, from the rows alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from paper.figures.table import read_table, write_table
from paper.figures.words import in_words
from paper.files import whole_file
from paper.peers.methods import METHODS, PARTITIONS, REGS, UNSOUND
from paper.peers.study import FITTED, FLIPS, TRUSTED, Row

TABLE, PAGE = "peers.parquet", "peers.md"

_INTRODUCTION = f"""\
# Certificates against label flips, on the same features

From `python -m paper peers`; every number in the first tables comes from `{TABLE}`, whose rows that command makes. All
methods see the same features and labels of the same training rows, and are asked about the same test points.

Hyper-parameters are chosen for every method by one rule: the first {TRUSTED:,} training rows are taken to be checked,
and are no training rows; candidates are fitted on the first {FITTED:.0%} of them, certified on the others, and the
largest mean share of certified flips wins. No label that an attacker could flip is looked at. Scaling, regularisation,
partitions, noise and clipping are chosen in this way.

Rule and candidates were written down before any method was run on CIFAR-10 or MNIST, but after a trial on the digits of
scikit-learn. What that trial changed: candidates of reg were 1, 10, 100 and 1,000 and became 1, 30 and 1,000; N = 10
was added; and the white-box certificate of a run-off was given a row of its own. Where this page says who is ahead,
methods of others with bounds of ours count as theirs: that run-off, and, since the tables were known, white-box
smoothing and label-linear gradient bounding too. Candidates of N end at {max(PARTITIONS):,}, those of reg at
{min(REGS):g} and at {max(REGS):,.0f}: where one of these was chosen, values beyond it were not tried.

- *Certified accuracy* at r flips: the share of test points that are predicted right and proven to stay so whichever r
  training labels are changed. *All points together*: the same when one attack has to do for all of them; what is
  proven in four minutes (`--quick`: two seconds), the less the busier a machine is.
- *Median*: flips that half of all test points, or of those predicted right, are proven to withstand.
- *Proof*: sound, with the share of points where a known attack meets the radius, or not sound (the formula as published
  over-states).
- *Time*: fitting and certifying, a test point, on two cores that other work shared, MNIST's far more than CIFAR-10's:
  an order of magnitude, and no comparison between the two.
"""

# What others report, and why it is not a row of our tables: method, data, reported, what differs.
_PUBLISHED = (
    (
        "SS-DPA (Levine and Feizi 2021)",
        "MNIST",
        "over 600",
        "up to 3,000 partitions, convolutional heads on RotNet features",
    ),
    ("SS-DPA", "CIFAR-10", "over 300", "up to 1,000 partitions, linear heads on SimCLR features of all 50,000 images"),
    ("smoothing (Rosenfeld et al. 2020)", "MNIST", "under 200", "as SS-DPA quotes it; logistic or linear regression"),
    ("smoothing", "CIFAR-10", "175", "as above"),
)
_AFTERWORD = """
Flips that half of all test points are certified against. Features are other ones than ours, so these compare in order
of magnitude. The radius of smoothing as published is not sound for every input, which
`SmoothedLinear(method="published")` warns of.

Votes alone certify no more than half as many flips as there are partitions, and need many of them; white-box
certificates know how many flips each vote takes, and are at least as large for the same votes.

Why others are ahead where they are. At few flips it is accuracy that tells: smoothed regression is one model of all
rows, strongly regularised. At many flips the rule chose as many partitions as it could for every ensemble of ridge
regressions; with 15 rows a partition on CIFAR-10 and 18 on MNIST, knowing flip costs adds nothing to votes that shows
in three digits. Run-Off gains on them where it does because its second round lets every model choose between the two
classes with the most votes: votes for other classes are not lost.
"""


def save(rows: Sequence[Row], folder: Path) -> Path:
    """Write table and page into a folder; return where the page is."""
    folder.mkdir(parents=True, exist_ok=True)
    write_table(rows, folder / TABLE)
    with whole_file(folder / PAGE) as file:
        file.write(render(read_table(folder / TABLE)).encode())
    return folder / PAGE


def render(rows: Sequence[Row]) -> str:
    """The page as Markdown."""
    data = dict.fromkeys(row["data"] for row in rows)
    sections = [_section(name, [row for row in rows if row["data"] == name]) for name in data]
    published = [
        "## Published figures",
        "",
        "| method | data | median, all | what differs |",
        "| --- | --- | --- | --- |",
    ]
    published += [f"| {' | '.join(entry)} |" for entry in _PUBLISHED]
    return "\n".join([_INTRODUCTION, *sections, *published, _AFTERWORD.rstrip(), ""])


def _section(data: str, rows: Sequence[Row]) -> str:
    full = max(row["n_train"] for row in rows)
    columns = ["method", "proof", *(f"{r:,}" for r in FLIPS), "median, all", "median, right", "ms a point", "chosen"]
    lines = [
        f"## {in_words('data', data)}",
        "",
        f"{full:,} training rows, {max(row['n_test'] for row in rows):,} test points; certified accuracy at r flips.",
        "",
        f"| {' | '.join(columns)} |",
        f"|{' --- |' * len(columns)}",
    ]
    lines += [*(_line(row, full) for row in rows), ""]
    left = [method.name for method in METHODS if method.name not in {row["method"] for row in rows}]
    if left:
        lines += [f"Not run on these data, for want of time: {'; '.join(left)}. What follows is of the others.", ""]
    return "\n".join([*lines, *_ahead(rows, full), ""])


def _line(row: Row, full: int) -> str:
    small = "" if row["n_train"] == full else f" ({row['n_train']:,} rows, {row['n_test']:,} points)"
    name = f"{row['method']}, all points together" if row["together"] else row["method"]
    spent = float(f"{1e3 * (row['seconds_fit'] + row['seconds_certify']) / row['n_test']:.2g}")
    settings = ", ".join(f"{key} {value}" for key, value in json.loads(row["settings"]).items())
    medians = ["" if row[key] is None else f"{row[key]:,}" for key in ("median_all", "median_correct")]
    shares = [f"{share:.3f}" for share in row["certified"]]
    return f"| {' | '.join([name + small, _proof(row), *shares, *medians, f'{spent:,g}', settings])} |"


def _proof(row: Row) -> str:
    known = row["share_exact"]
    return row["proof"] if known is None or row["together"] else f"{row['proof']}, {known:.0%} exact"


def _ahead(rows: Sequence[Row], full: int) -> list[str]:
    """Which method is ahead at each number of flips: point by point, sound, on the whole training set."""
    able = [row for row in rows if row["n_train"] == full and not row["together"] and row["proof"] != UNSOUND]
    if not able:
        return []
    best = [_best(able, place) for place in range(len(FLIPS))]
    told = "; ".join(
        f"{r:,}: {row['method']}"
        for place, (r, row) in enumerate(zip(FLIPS, best, strict=True))
        if row["certified"][place]
    )
    others = [row for row in able if not _is_ours(row)]
    ours = [row for row in able if _is_ours(row)]
    lines = [f"Ahead, point by point, among sound methods on all rows, at r flips: {told}."]
    if others and ours:
        leads = []
        for place, flips in enumerate(FLIPS):
            one, two = (_best(own, place) for own in (others, ours))
            gap = one["certified"][place] - two["certified"][place]
            if gap > 0:
                leads.append(f"{flips:,} ({one['method']} by {gap:.3f} over {two['method']})")
        ahead = f"Others are ahead of all of ours at {', '.join(leads)}." if leads else "Others are ahead nowhere."
        lines.append(f"\n{ahead}")
    return lines


def _best(rows: Sequence[Row], place: int) -> Row:
    return max(rows, key=lambda row: row["certified"][place])


def _is_ours(row: Row) -> bool:
    return row["source"] in ("ScaLabelCert", "EnsembleCert", "flipcert")
