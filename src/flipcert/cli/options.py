"""Arguments and options that several commands share.

What may be chosen is checked where it is known, so that the help does not wait for imports.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer


def _option(panel: str, help: str, *names: str, **settings: Any) -> Any:
    # A default of None is explained by the text.
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


# More threads, processes or layers than anyone has; a machine would not survive them.
MOST = 1024
LARGEST_SEED = 2**32 - 1

_MODEL, _DATA, _RUN, _CLUSTER, _CHECK, _AUDIT = "Model", "Data", "Run", "Cluster", "Check", "Audit"

Train = Annotated[
    str, typer.Argument(help="Training data: a file of features and labels, or NAME:train.", show_default=False)
]
Test = Annotated[str, typer.Argument(help="Test points, with or without labels, or NAME:test.", show_default=False)]


@dataclass(frozen=True)
class ModelOptions:
    """Which model, all but the number of partitions and the regularisation."""

    model: Annotated[
        str,
        _option(_MODEL, "svm, ridge, neighbors, spreading, logistic, smoothed, network or milp-svm.", "--model", "-m"),
    ] = "svm"
    kernel: Annotated[
        str | None, _option(_MODEL, "ntk, conv-ntk, linear or rbf; ntk if not given.", "--kernel", "-k")
    ] = None
    depth: Annotated[
        int | None, _option(_MODEL, "ntk, conv-ntk: number of hidden layers, 1 if not given.", max=MOST)
    ] = None
    activation: Annotated[
        str | None,
        _option(
            _MODEL, "ntk, conv-ntk: linear, relu, leaky_relu, gelu or erf; linear, or relu for conv-ntk, if not given."
        ),
    ] = None
    weight_std: Annotated[float | None, _option(_MODEL, "ntk, conv-ntk: scale of weights, 1 if not given.")] = None
    bias_std: Annotated[float | None, _option(_MODEL, "ntk, conv-ntk: scale of biases, 0 if not given.")] = None
    filter_size: Annotated[int | None, _option(_MODEL, "conv-ntk: side of the filters, 3 if not given.")] = None
    pooling: Annotated[str | None, _option(_MODEL, "conv-ntk: average, or flattened if not given.")] = None
    gamma: Annotated[float | None, _option(_MODEL, "rbf: inverse squared width; 1 / features if not given.")] = None
    C: Annotated[
        float | None,
        _option(
            _MODEL, "svm: small enough to be exact, found if not given; logistic, milp-svm: any, 1 if not given.", "--C"
        ),
    ] = None
    max_norm: Annotated[
        float | None,
        _option(
            _MODEL, "svm: largest norm of added rows (as scaled), for kernels that are not bounded; none if not given."
        ),
    ] = None
    n_neighbors: Annotated[
        int | None, _option(_MODEL, "neighbors, spreading: how many, 5 or 10 if not given.", "--neighbors", min=1)
    ] = None
    weights: Annotated[
        str | None, _option(_MODEL, "neighbors: uniform or distance; uniform if not given.", "--neighbor-weights")
    ] = None
    alpha: Annotated[
        float | None, _option(_MODEL, "spreading: how much rows take from neighbours, 0.9 if not given.")
    ] = None
    flip_probability: Annotated[
        float | None, _option(_MODEL, "smoothed: probability that noise flips a label, 0.01 if not given.")
    ] = None
    hidden: Annotated[
        str | None, _option(_MODEL, "network: units of hidden layers, such as 64,32; none if not given.")
    ] = None
    loss: Annotated[str | None, _option(_MODEL, "network: cross-entropy or squared; cross-entropy if not given.")] = (
        None
    )
    epochs: Annotated[int | None, _option(_MODEL, "network: passes over the training set, 2 if not given.")] = None
    batch_size: Annotated[int | None, _option(_MODEL, "network: samples in a step; all if not given.")] = None
    learning_rate: Annotated[float | None, _option(_MODEL, "network: first step, 5 if not given.")] = None
    decay: Annotated[float | None, _option(_MODEL, "network: how fast steps get smaller, 1 if not given.")] = None
    clip: Annotated[float | None, _option(_MODEL, "network: clamp of gradients; none if not given.")] = None
    max_flips: Annotated[
        int | None, _option(_MODEL, "network: where the search for a radius ends; at all labels if not given.")
    ] = None
    method: Annotated[
        str | None,
        _option(
            _MODEL,
            "smoothed: white-box (if not given), neyman-pearson, kl; network: auto (likewise), intervals, published.",
        ),
    ] = None
    scale: Annotated[
        str,
        _option(
            _MODEL,
            "Scale features, without labels: none, centre, standard (columns), unit (rows), or auto: columns of tables "
            "are standardised, or only centred if they share one scale; arrays stay as they are.",
        ),
    ] = "auto"
    partition_rule: Annotated[
        str,
        _option(
            _MODEL,
            "Which rows go together: sorted, hash, random, or source (all labels of a source).",
            "--partition-rule",
            "--partition",
        ),
    ] = "sorted"
    seed: Annotated[
        int, _option(_MODEL, "Seed of --partition-rule random, --copies and networks.", min=0, max=LARGEST_SEED)
    ] = 0
    vote: Annotated[
        str, _option(_MODEL, "How partitions decide: majority, or runoff (between the two classes with most votes).")
    ] = "majority"
    copies: Annotated[
        int, _option(_MODEL, "Voters that each row is given to: more votes, of which a flip reaches so many.", min=1)
    ] = 1


@dataclass(frozen=True)
class Point:
    """One number of partitions and one regularisation."""

    partitions: Annotated[
        int, _option(_MODEL, "Partitions of the ensemble; 1 is one model.", "--partitions", "-n", min=1)
    ] = 1
    reg: Annotated[float | None, _option(_MODEL, "ridge, smoothed: regularisation, 1 if not given.")] = None


@dataclass(frozen=True)
class Grid:
    """Several of them."""

    partitions: Annotated[str, _option(_MODEL, "Numbers of partitions; 1 is one model.", "--partitions", "-n")] = (
        "1,10,50,100"
    )
    reg: Annotated[str | None, _option(_MODEL, "ridge: regularisations, such as 0.1,1,10; 1 if not given.")] = None


@dataclass(frozen=True)
class CheckOptions:
    """A random check of labels: to be drawn, or filled in."""

    labels: Annotated[int | None, _option(_CHECK, "Draw so many labels to check, and write them to --out.", min=1)] = (
        None
    )
    checked: Annotated[
        Path | None,
        _option(_CHECK, "The file that was drawn, filled in (csv, parquet); with --labels, draw so many more."),
    ] = None
    confidence: Annotated[float, _option(_CHECK, "Probability over the draw with which the bound holds.")] = 0.95
    peeked: Annotated[
        bool,
        _option(
            _CHECK,
            "Somebody looked at results before the check was complete, or may go on because of this one: use the bound "
            "that holds at every stage. It is used anyway if cells are left empty, or if more labels were drawn later.",
            "--peeked",
        ),
    ] = False


@dataclass(frozen=True)
class DataOptions:
    """What the files mean."""

    label: Annotated[
        str | None,
        _option(
            _DATA,
            "Column (csv, parquet) or array (npz) of the labels; label, or y in npz, if not given.",
            "--label",
            "-l",
        ),
    ] = None
    drop: Annotated[
        list[str] | None, _option(_DATA, "Columns that are no features (csv, parquet), such as a,b; or repeat it.")
    ] = None
    encode: Annotated[
        str | None, _option(_DATA, "onehot: make a column of zeros and ones for each category of a column of text.")
    ] = None
    impute: Annotated[
        str | None,
        _option(
            _DATA, "Fill in missing values, by the training rows: median (text: the most frequent) or most-frequent."
        ),
    ] = None
    trusted: Annotated[
        str | None, _option(_DATA, "Column (csv, parquet) or array (npz) of labels that cannot be flipped.")
    ] = None
    source: Annotated[
        str | None,
        _option(
            _DATA,
            "Column (csv, parquet) or array (npz) that says who gave each label: an annotator, a vendor, a batch.",
        ),
    ] = None
    annotations: Annotated[
        Path | None,
        _option(
            _DATA,
            "Several labels a row, from a second table (csv, parquet: --id or row, --label, --source) or from Label "
            "Studio (json).",
        ),
    ] = None
    id: Annotated[
        str | None,
        _option(
            _DATA,
            "Column (csv, parquet) or array (npz) of ids: what rows are called in results, and in --annotations and "
            "--checked; row numbers if not given.",
        ),
    ] = None
    cap: Annotated[
        int | None,
        _option(_DATA, "Weigh annotations by 1 / max(labels of their source, this); equally if not given.", min=1),
    ] = None
    image_shape: Annotated[str | None, _option(_DATA, "Rows are images: height,width or channels,height,width.")] = None
    classes: Annotated[
        str | None, _option(_DATA, "The label space, such as a,b,c, if the labels do not show all of it.")
    ] = None


@dataclass(frozen=True)
class Proof:
    """How far to go for a certificate, and with what."""

    threat: Annotated[
        str,
        _option(
            _RUN,
            "What an attacker may do, and radii count: flips, sources, deletions, insertions, replacements or edits.",
            "--threat",
            "-t",
        ),
    ] = "flips"
    exact: Annotated[bool, _option(_RUN, "Close radii that are left open with a solver.", "--exact")] = False
    time_limit: Annotated[
        float,
        _option(_RUN, "Seconds for one integer program of --exact, one point of milp-svm, one budget of --collective."),
    ] = 60.0
    jobs: Annotated[int | None, _option(_RUN, "Threads; all cores if not given.", "--jobs", "-j", min=1, max=MOST)] = (
        None
    )
    memory: Annotated[int, _option(_RUN, "MiB that blocks of test points may take beside the data.", min=16)] = 1024
    quiet: Annotated[bool, _option(_RUN, "Show no progress.", "--quiet", "-q")] = False


@dataclass(frozen=True)
class ClusterOptions:
    """Where blocks are computed, if not on the cores of this process."""

    dask: Annotated[
        str | None, _option(_CLUSTER, "Address of a Dask scheduler, such as tcp://10.0.0.1:8786 (extra: dask).")
    ] = None
    workers: Annotated[
        int | None,
        _option(_CLUSTER, "Or so many worker processes on this machine, until the run ends.", min=1, max=MOST),
    ] = None
    tls_ca: Annotated[Path | None, _option(_CLUSTER, "tls:// schedulers: certificate of who signed theirs.")] = None
    tls_cert: Annotated[Path | None, _option(_CLUSTER, "tls:// schedulers: our certificate.")] = None
    tls_key: Annotated[Path | None, _option(_CLUSTER, "tls:// schedulers: the key of our certificate.")] = None


@dataclass(frozen=True)
class RunOptions:
    """What to keep of a run, and what to show."""

    out: Annotated[
        Path | None, _option(_RUN, "Folder of the run: results, report, and where it goes on.", "--out", "-o")
    ] = None
    collective: Annotated[
        str | None,
        _option(
            _RUN,
            "Budgets, such as 10,50,100: how many predictions one attack of so many flips on all test points changes; "
            "--time-limit is for each.",
        ),
    ] = None
    attacks: Annotated[int, _option(_RUN, "Test points whose smallest attacks the report shows.", min=0)] = 100
    json: Annotated[bool, _option(_RUN, "Print the summary as JSON.", "--json")] = False


@dataclass(frozen=True)
class CheckedModelOptions(ModelOptions):
    """The same after a random check, whose draw has a seed, too."""

    seed: Annotated[
        int | None,
        _option(
            _CHECK,
            "Seed of the draw, a new one if not given; with TEST, of --partition-rule random and of networks, 0 if not "
            "given.",
            min=0,
            max=LARGEST_SEED,
        ),
    ] = None  # type: ignore[assignment]


@dataclass(frozen=True)
class CheckedRunOptions(RunOptions):
    """The same for a command that also writes files to fill in."""

    out: Annotated[
        Path | None, _option(_RUN, "File to fill in (--labels), or folder of the run (TEST).", "--out", "-o")
    ] = None


@dataclass(frozen=True)
class AuditOptions:
    """How many labels can be checked, for what, and what was checked before."""

    labels: Annotated[
        int, _option(_AUDIT, "How many labels can be checked; of sources, with --threat sources.", "--labels", min=1)
    ] = 100
    flips: Annotated[int, _option(_AUDIT, "Flips that predictions are to be proven against.", "--flips", min=1)] = 10
    suspicious: Annotated[
        float,
        _option(
            _AUDIT, "Share of the list for labels that look wrong; the rest is for what proofs hang on.", min=0, max=1
        ),
    ] = 0.5
    checked: Annotated[
        list[Path] | None,
        _option(_AUDIT, "A list that was filled in: its labels are corrected and trusted; repeat for more."),
    ] = None
