"""The page of results, ``docs/benchmarks.md``, made from the records of all runs so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks import collective_page, peers_page, product
from benchmarks.bars import BARS
from benchmarks.figures import GROWTH
from benchmarks.headlines import of_page, why
from benchmarks.records import Record, load
from benchmarks.tables import BUSY, machine_of, measured, median, met, number, rows, table, target, warnings

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
# Groups of rows, as `--only` has them, under the headings of the page.
SPEED = {
    "One model": ("svm", "few", "imagenet", "ridge", "relu", "mnist", "sparse"),
    "Predictions and attacks": ("predict", "attacks", "shell"),
    "Other threats": ("sources", "rows"),
    "Ensembles": ("ensembles", "standardised", "fit", "aggregation", "upper"),
    "The paper's algorithms as published": ("published",),
    "Kernels and networks": ("kernels", "network"),
    "Clusters, and inputs larger than memory": ("cluster", "streamed"),
    "The first seconds": ("startup",),
}

_LEAD = """\
# Benchmarks

No label-linear model can be certified before its weights are known, and one matrix product forms them: *the product*.
So that is what figures are compared with. 1 × means that a certificate, or an attack, took as long as forming the
weights alone.

"""

_HOW = f"""\
## How it is measured

`make bench` measures everything below again and rewrites this page; `make bench ARGS="--only svm,ensembles --quick"`
runs a part of it, and `python -m benchmarks --help` says what can be chosen. It writes one file a row to
`benchmarks/results/`, from which the page is made.

Every figure of time but one rate (pairs of images a second) is a ratio of two times that were taken in turns in the
same run: the median over adjacent pairs, and in parentheses the range of their middle half. What other processes do
meanwhile does not cancel in a ratio, so rows are marked if they used more than {100 * BUSY:.0f} % of the machine.

{product.DEFINITION}

The data are CIFAR-10 features of a pretrained network; where they are not at hand, a synthetic stand-in of the same
shape takes their place, and the note says so. Every row of certificates is checked on points that do not hang on the
rounding of a product: one model against full sorts, ensembles against the published bounds, attacks by replaying them;
for ensembles with weights that are not negative also against exact costs and the dynamic program. A difference ends the
run, and so does a check that finds no point to compare.
"""

_COMPLEXITIES = (
    (
        "aggregation, N voters",
        "O(K N²)",
        "O(K N) by counting, O(K N log N) for large costs",
        "voters-aggregation",
        "voters-aggregation-compiled-dynamic-program",
    ),
    (
        "lower bounds of all classes, n samples",
        "O(K n log n)",
        "O(n) to pick the m largest weights, O(m log m + K² m) on these",
        "samples-lower-bounds",
        "samples-lower-bounds-as-published",
    ),
    (
        "upper bounds, weights of both signs",
        "O(n²) a class",
        "O(n) to pick, O(m log m) to sort, O(K) a flip",
        "samples-upper-bounds",
        "samples-upper-bounds-as-published",
    ),
    ("exact radius of one model", "O(K n log n)", "O(n) to pick, O(m log m + K m)", "samples-radius-of-one-model", ""),
)


def write(path: Path = PAGE) -> Path:
    """Write the page from all records."""
    path.write_text(render(load()))
    return path


def render(records: Sequence[Record]) -> str:
    """The page as Markdown."""
    machines = list(dict.fromkeys(machine_of(record) for record in records))
    memory = [record for record in records if record.unit == "GiB"]
    parts = [
        _LEAD + _front(records),
        _HOW,
        _where(machines),
        "## Speed\n",
        *_speed(records, machines),
        _peers(records, machines),
        "## Memory\n",
        rows(memory, machines),
        "## Tightness\n",
        _tightness([record for record in records if record.group == "tightness"]),
        "## Certified accuracy\n",
        _accuracy([record for record in records if record.group == "accuracy"]),
        rows([record for record in records if record.group == "published-network"], machines),
        *_collective([record for record in records if record.group == "collective"]),
        "## Growth\n",
        _growth([record for record in records if record.group == "growth"]),
    ]
    return "\n".join(parts)


def _front(records: Sequence[Record]) -> str:
    """The picture, and a dozen lines: what it takes, what was wanted, and why that is missed."""
    lines = [(words, median(record), target(record), _verdict(record)) for words, record in of_page(records)]
    picture = f"![Time of each job over that of the product, as bars on a logarithmic axis]({BARS.name})\n"
    heads = ("job", "takes", "wanted", "reached?")
    text = "50,000 training rows of 512 features unless a line says otherwise; all figures, with sizes, are below.\n"
    return "\n".join([picture, text, table(heads, lines)])


def _verdict(record: Record) -> str:
    """Whether it is reached, or why not; and whether the machine was busy."""
    reason = why(record)
    text = {"yes": "yes", "no": f"no: {reason}" if reason else "no"}.get(met(record), "")
    return text + (" (machine not idle)" if record.others > BUSY else "")


def _speed(records: Sequence[Record], machines: Sequence[str]) -> list[str]:
    """A table for each heading."""
    parts = []
    for heading, groups in SPEED.items():
        own = [record for group in groups for record in records if record.group == group and record.unit != "GiB"]
        if own:
            parts += [f"### {heading}\n", rows(own, machines)]
    return parts


def _peers(records: Sequence[Record], machines: Sequence[str]) -> str:
    """Other methods: speed, certified accuracy, and how often integer programs are solved."""
    peers, programs = ([record for record in records if record.group == group] for group in ("peers", "milp"))
    if not peers:
        return ""
    limits = _join({f"{record.details['limit']:g}" for record in programs})
    return "\n".join(
        [
            "## Other methods\n",
            rows(peers, machines),
            "Certified accuracy on digits: the share of test points predicted right and proven to stay so. "
            "ScaLabelCert is exact for the ridge regression that smoothing predicts with.\n",
            table(*peers_page.accuracies(peers)),
            "`MilpSVM` on n samples (breast cancer, two classes, linear kernel), C times the largest row sum of the "
            f"kernel across: share of points with an exact radius within {limits} s each, and the mean of "
            f"`radius_upper - radius` where it is not zero. Up to 1 no program is needed.{warnings(programs)}\n",
            table(*peers_page.solved(programs)),
        ]
    )


def _tightness(records: Sequence[Record]) -> str:
    """Share of exact radii, gap and time; by default, and where it was run with the solver."""
    settings = dict.fromkeys(tuple(r.details[key] for key in ("scaling", "model", "n_partitions")) for r in records)
    lines = []
    for setting in settings:
        line = [str(part) for part in setting]
        for exact in (False, True):
            found = [
                r
                for r in records
                if r.details["exact"] == exact
                and (r.details["scaling"], r.details["model"], r.details["n_partitions"]) == setting
            ]
            line += _tightness_cells(found[0]) if found else ["", "", ""]
        lines.append(line)
    heads = ("features", "model", "N", "share exact", "mean gap", "time", "with `exact=True`", "mean gap", "time")
    points = sorted({r.measured.count for r in records})
    text = (
        f"Share of {' or '.join(f'{count:,}' for count in points)} test points with `radius == radius_upper` (targets: "
        "at least 0.99, and 1 with `exact=True`), mean of `radius_upper - radius`, and the time of `certify` over the "
        f"product. Linear NTK; every row checked on some points: {_join({r.checked for r in records})}."
        f"{warnings(records)}\n"
    )
    return text + "\n" + table(heads, lines)


def _tightness_cells(record: Record) -> list[str]:
    time = record.details["time"]["median"]
    missed = "" if record.met or record.quick else " (missed)"
    return [f"{record.measured.median:.3f}{missed}", f"{record.details['mean_gap']:.3f}", f"{number(time)} ×"]


def _accuracy(records: Sequence[Record]) -> str:
    """All methods on the same data, by number of flips."""
    if not records:
        return ""
    flips = records[0].details["flips"]
    lines = [
        (record.job, *(f"{share:.3f}" for share in record.details["accuracies"]), str(record.details["median"]))
        for record in records
    ]
    heads = ("method", *(f"{count} flips" if count != 1 else "1 flip" for count in flips), "median of the correct")
    text = (
        f"Share of {records[0].measured.count} test points that are predicted right and proven to stay so, with no "
        f"hyper-parameter tuned; {records[0].data}.\n"
    )
    return text + "\n" + table(heads, lines)


def _collective(records: Sequence[Record]) -> list[str]:
    """One attack on all points: bounds and attacks against time."""
    if not records:
        return []
    lines = table(collective_page.HEADS, collective_page.lines(records))
    return [f"## One attack on all points\n\n{collective_page.TEXT.rstrip()}{warnings(records)}\n\n{lines}"]


def _growth(records: Sequence[Record]) -> str:
    """The plot, and complexities with measured exponents."""
    by_name = {record.name.removeprefix("growth-"): record for record in records}
    lines = []
    for step, paper, ours, name, published in _COMPLEXITIES:
        cells = [measured(by_name[key]) if key in by_name else "" for key in (published, name)]
        lines.append((step, paper, ours, *cells))
    plot = f"![Time against samples, voters, classes and test points, on logarithmic axes]({GROWTH.name})\n"
    text = (
        "Exponents are slopes of log processor time against log size. m is the number of weights that can matter for a "
        "test point; they are picked by a histogram, without sorting the row. NumPy's cost of a call hides the square "
        "of the published program for small N, so the table has the exponent of the compiled one."
        f"{warnings(records)}\n"
    )
    heads = ("step", "paper", "flipcert", "exponent, as published", "exponent, flipcert")
    return "\n".join([plot, text, table(heads, lines)]) if records else ""


def _where(machines: Sequence[str]) -> str:
    if len(machines) == 1:
        return f"Measured on: {machines[0]}.\n"
    return "".join(f"{place}. {machine}\n" for place, machine in enumerate(machines, 1))


def _join(texts: Iterable[str]) -> str:
    return "; ".join(sorted(texts))
