"""What ``python -m paper peers`` does: run the comparison, and write its table and page."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import cache
from pathlib import Path

import sklearn

from paper.figures import source
from paper.figures.source import QUICK_TEST, QUICK_TRAIN, Source
from paper.figures.table import read_table
from paper.lines import say
from paper.peers.methods import METHODS
from paper.peers.page import TABLE, save
from paper.peers.study import QUICK, Plan, Row, study


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
    parser.add_argument(
        "--only", choices=Plan.data, help="one of the data sets; what the table says of the other stays"
    )
    parser.add_argument(
        "--method",
        action="append",
        choices=[method.name for method in METHODS],
        metavar="NAME",
        help='a method to run, such as "label spreading" (several allowed); what the table says of the others stays',
    )
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
        methods = None if options.method is None else tuple(options.method)
        asked = replace(plan, data=names, points=options.points, methods=methods)
        others = _rows_of_others(options.out / "results" / TABLE, asked)
        for rows in study(asked, options.out, read, say, options.jobs):
            page = save(sorted([*rows, *others], key=_place), options.out / "results")
    print(f"Results: {page}")


def _rows_of_others(table: Path, asked: Plan) -> list[Row]:
    """What the table says of data and methods that are not asked about."""
    known = read_table(table) if table.exists() else []
    return [
        row
        for row in known
        if row["data"] not in asked.data or (asked.methods is not None and row["method"] not in asked.methods)
    ]


def _place(row: Row) -> tuple[int, int, bool]:
    methods = [method.name for method in METHODS]
    return Plan.data.index(row["data"]), methods.index(row["method"]), row["together"]
