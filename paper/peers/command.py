"""What ``python -m paper peers`` does: run the comparison, and write its table and page."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import cache
from pathlib import Path

import sklearn

from paper.figures import source
from paper.figures.source import QUICK_TEST, QUICK_TRAIN, Source
from paper.lines import say
from paper.peers.page import save
from paper.peers.study import QUICK, Plan, study


def run(arguments: list[str]) -> None:
    """Run the comparison as the command line asks for it."""
    parser = argparse.ArgumentParser(
        prog="python -m paper peers",
        description="Compare certificates against label flips, ours and others', on the same features (needs torch). "
        "What is finished is kept: a run that was stopped goes on when its command is given again.",
    )
    parser.add_argument("--quick", action="store_true", help="few rows and candidates, in a minute")
    parser.add_argument("--digits", action="store_true", help="the bundled digits in place of all data")
    parser.add_argument("--data", type=Path, help="folder of data; FLIPCERT_DATA or the user's cache if not given")
    parser.add_argument("--only", choices=Plan.data, help="one of the data sets")
    parser.add_argument("--points", type=int, help="certify the first so many test points; all if not given")
    parser.add_argument("--out", "-o", type=Path, default=Path("reproduction"), help="folder to write to")
    parser.add_argument("--jobs", "-j", type=int, help="threads; all cores if not given")
    options = parser.parse_args(arguments)
    main(options)


def main(options: argparse.Namespace) -> None:
    """Run the comparison and write its table and page."""

    @cache
    def read(name: str) -> Source:
        found = source.digits(name) if options.digits else source.load(name, options.data)
        return found.first(QUICK_TRAIN, QUICK_TEST) if options.quick else found

    plan = QUICK if options.quick else Plan()
    names = (options.only,) if options.only else plan.data
    with sklearn.config_context(working_memory=1024):
        # Every file is looked at before the first long job.
        for name in names:
            read(name)
        asked = replace(plan, data=names, points=options.points)
        for rows in study(asked, options.out, read, say, options.jobs):
            page = save(rows, options.out / "results")
    print(f"Results: {page}")
