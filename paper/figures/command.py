"""What ``python -m paper`` does: choose figures, make them, tell what came of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import joblib
import sklearn

from paper.figures import source
from paper.figures.figure import Figure, all_figures, load, quick
from paper.figures.reproduction import reproduce
from paper.figures.source import QUICK_TEST, QUICK_TRAIN, Source
from paper.figures.table import read_table
from paper.figures.verdicts import judge
from paper.lines import say

_EPILOG = """
What is finished is kept: a run that was stopped goes on when its command is given again.

  python -m paper --list
  python -m paper figure-2a --data my-data --out reproduction
  python -m paper all --quick --digits
  python -m paper evidence --help    certificates replayed on finite networks
  python -m paper features --help    features learned from images without labels
"""


def run(arguments: list[str]) -> None:
    """Make figures, or list them."""
    options = _parser().parse_args(arguments)
    if options.list:
        _list()
        return
    if not options.names:
        raise ValueError('name a figure, or "all"; `python -m paper --list` shows them.')
    figures = all_figures() if options.names == ["all"] else [load(name) for name in options.names]

    @cache
    def read(name: str) -> Source:
        found = source.digits(name) if options.digits else source.load(name, options.data)
        return found.first(QUICK_TRAIN, QUICK_TEST) if options.quick else found

    with sklearn.config_context(working_memory=options.memory), _on_cluster(options.dask):
        # Every file is looked at before the first long job.
        sizes = {name: read(name).y_train.size for figure in figures for name in figure.data}
        if options.quick:
            figures = [quick(figure, min(sizes[name] for name in figure.data)) for figure in figures]
        told = (lambda line: None) if options.quiet else say
        page = reproduce(figures, options.out, read, told, options.jobs, options.known)
    _print_verdicts(figures, page.parent)
    if options.quick or options.digits:
        print("Small versions, to see that all can be made: their verdicts say nothing about the paper.")
    print(f"Results: {page}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m paper",
        description="Make the figures of the EnsembleCert paper again: tables, plots, and a page that compares them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help='figures to make, or "all"')
    parser.add_argument("--list", action="store_true", help="show all figures and end")
    parser.add_argument("--quick", action="store_true", help="a subsample and fewer settings, in minutes")
    parser.add_argument("--digits", action="store_true", help="the bundled digits in place of all data")
    parser.add_argument("--data", type=Path, help="folder of data; FLIPCERT_DATA or the user's cache if not given")
    parser.add_argument("--out", "-o", type=Path, default=Path("reproduction"), help="folder to write to")
    parser.add_argument(
        "--from",
        dest="known",
        type=Path,
        help="folder of tables: their rows are taken where settings, data and version are the same, by a digest",
    )
    parser.add_argument("--jobs", "-j", type=int, help="threads; all cores if not given")
    parser.add_argument("--memory", type=int, default=1024, help="MiB that blocks may take beside the data")
    parser.add_argument("--dask", metavar="ADDRESS", help="certify on the Dask cluster of this scheduler")
    parser.add_argument("--quiet", "-q", action="store_true", help="show no progress")
    return parser


@contextmanager
def _on_cluster(address: str | None) -> Iterator[None]:
    """Let flipcert's jobs go to a Dask cluster, as joblib is told to."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ImportError('--dask needs Dask. Install with: pip install "flipcert[dask]".') from None
    with Client(address) as client, joblib.parallel_config(backend="dask", client=client):
        yield


def _list() -> None:
    figures = all_figures()
    width = max(len(figure.name) for figure in figures)
    print(f"{'name':{width}}  {'paper':5}  what it shows")
    for figure in figures:
        print(f"{figure.name:{width}}  {figure.number or 'new':5}  {figure.title}")


def _print_verdicts(figures: list[Figure], folder: Path) -> None:
    width = max(len(figure.name) for figure in figures)
    print(f"{'name':{width}}  {'paper':5}  verdict")
    for figure in figures:
        found = dict.fromkeys(f.verdict for f in judge(figure, read_table(folder / f"{figure.name}.parquet")))
        print(f"{figure.name:{width}}  {figure.number or 'new':5}  {', '.join(found)}")
