"""Run benchmarks: ``python -m benchmarks --only svm,ensembles --quick``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from rich.console import Console

from benchmarks import bars, figures, page, scale_page, tables
from benchmarks.bystanders import Bystanders
from benchmarks.records import Record, load, save
from benchmarks.rows import (
    against_published,
    aggregation,
    attacks,
    certified_accuracy,
    cluster,
    collective,
    ensembles,
    few_points,
    growth,
    imagenet,
    kernels,
    larger_than_memory,
    memory,
    mnist,
    networks,
    peers,
    predictions,
    ridge,
    row_changes,
    scale,
    shell,
    sources,
    sparse,
    stand_alone,
    startup,
    streamed,
    tightness,
    upper_bound,
)
from benchmarks.settings import QUICK, Settings

GROUPS: dict[str, Callable[[Settings], Iterator[Record]]] = {
    "svm": stand_alone.rows,
    "few": few_points.rows,
    "predict": predictions.rows,
    "attacks": attacks.rows,
    "shell": shell.rows,
    "sources": sources.rows,
    "sparse": sparse.rows,
    "rows": row_changes.rows,
    "ensembles": ensembles.given,
    "standardised": ensembles.standardised,
    "fit": ensembles.fits,
    "published": against_published.rows,
    "aggregation": aggregation.rows,
    "upper": upper_bound.rows,
    "ridge": ridge.linear,
    "relu": ridge.relu,
    "mnist": mnist.rows,
    "imagenet": imagenet.rows,
    "network": networks.rows,
    "published-network": networks.published,
    "accuracy": certified_accuracy.rows,
    "collective": collective.rows,
    "peers": peers.rows,
    "kernels": kernels.rows,
    "cluster": cluster.rows,
    "scale": scale.rows,
    "memory": memory.rows,
    "large": larger_than_memory.rows,
    "streamed": streamed.rows,
    "startup": startup.rows,
    "tightness": tightness.rows,
    "growth": growth.rows,
}
# Only when asked for: an hour of work and most of the memory of a small machine; gigabytes of scratch files; data that
# not everyone has.
ON_REQUEST = ("mnist", "large", "streamed", "published-network")


def main() -> None:
    """Measure the chosen groups, row by row, then write the page."""
    arguments = _parse()
    settings = _settings(arguments)
    console = Console(highlight=False)
    for group in arguments.only:
        start = time.perf_counter()
        watch = Bystanders()
        for record in GROUPS[group](settings):
            record.others = watch.share()
            save(record)
            console.print(f"[bold]{tables.measured(record)}[/bold]  {record.job}", soft_wrap=True)
        console.print(f"[dim]{group}: {time.perf_counter() - start:.0f} s[/dim]")
    figures.draw()
    bars.draw(load())
    console.print(f"Pages: {page.write()}, {scale_page.write()}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    default = [group for group in GROUPS if group not in ON_REQUEST]
    parser.add_argument(
        "--only", type=_groups, default=default, metavar="GROUPS",
        help=f"comma-separated, of {', '.join(GROUPS)}; all but {', '.join(ON_REQUEST)} by default; "
        "'none' only writes the page",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--exact", action="store_true", help="tightness with exact=True too")
    parser.add_argument("--train", type=int, metavar="n", help="training samples of the CIFAR-10 rows")
    parser.add_argument("--test", type=int, metavar="T", help="test points of the CIFAR-10 rows")
    parser.add_argument("--pairs", type=int, help="repetitions of a ratio")
    parser.add_argument("--partitions", type=_numbers, metavar="N,N,...", help="numbers of partitions")
    return parser.parse_args()


def _settings(arguments: argparse.Namespace) -> Settings:
    chosen = {
        "n_train": arguments.train,
        "n_test": arguments.test,
        "pairs": arguments.pairs,
        "partitions": arguments.partitions,
    }
    base = QUICK if arguments.quick else Settings()
    return replace(base, exact=arguments.exact, **{name: value for name, value in chosen.items() if value is not None})


def _groups(text: str) -> list[str]:
    names = [] if text == "none" else text.split(",")
    for name in names:
        if name not in GROUPS:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(GROUPS)}")
    return names


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


if __name__ == "__main__":
    main()
