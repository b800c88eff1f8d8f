"""What ``python -m paper evidence`` does: run the study, and write its results, page and plot."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from paper.evidence.page import save
from paper.evidence.study import QUICK, Plan, Run, study
from paper.lines import say


def run(arguments: list[str]) -> None:
    """Run the study as the command line asks for it."""
    parser = argparse.ArgumentParser(
        prog="python -m paper evidence",
        description="Train finite networks and replay certificates on them (half an hour; needs torch).",
    )
    parser.add_argument("--out", "-o", default="evidence", help="folder for the page, its plot and the results")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--jobs", "-j", type=int, help="networks to train at a time; all cores by default")
    options = parser.parse_args(arguments)
    main(options.out, options.quick, options.jobs)


def main(out: str = "evidence", quick: bool = False, n_jobs: int | None = None) -> None:
    """Run the study and write its results, page and plot.

    Parameters
    ----------
    out : str, default="evidence"
        Folder for ``evidence.json``, ``evidence.md`` and ``evidence.svg``.
    quick : bool, default=False
        Small sizes, to see that everything works.
    n_jobs : int, optional
        Networks to train at a time; as many as there are cores by default.
    """
    plan = QUICK if quick else Plan()
    start = time.perf_counter()

    def report(run: Run) -> None:
        say(
            f"{time.perf_counter() - start:6.0f} s  {run.task}; {run.network}; {run.loss} loss; width {run.width}: "
            f"scores {run.score_gap:.3f} from the limit, {100 * run.agreement:.0f} % of predictions equal"
        )

    runs = study(plan, report, n_jobs)
    page = save(plan, runs, Path(out))
    say(f"Page: {page}")
