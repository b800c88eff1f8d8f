"""What ``python -m paper tangent`` does: run the study, and write its results, page and plot."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from paper.extras import load_torch
from paper.lines import say


def run(arguments: list[str]) -> None:
    """Run the study as the command line asks for it."""
    parser = argparse.ArgumentParser(
        prog="python -m paper tangent",
        description="Fine-tune networks and replay certificates of their tangent kernels (some minutes; torch).",
    )
    parser.add_argument("--out", "-o", default="tangent", help="folder for the page, its plot and the results")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--jobs", "-j", type=int, help="networks to fine-tune at a time; all cores by default")
    options = parser.parse_args(arguments)
    main(options.out, options.quick, options.jobs)


def main(out: str = "tangent", quick: bool = False, n_jobs: int | None = None) -> None:
    """Run the study and write its results, page and plot.

    Parameters
    ----------
    out : str, default="tangent"
        Folder for ``tangent.json``, ``tangent.md`` and ``tangent.svg``.
    quick : bool, default=False
        Small sizes, to see that everything works.
    n_jobs : int, optional
        Networks to fine-tune at a time; as many as there are cores by default.
    """
    load_torch("Networks that are fine-tuned need")
    from paper.tangent.page import save
    from paper.tangent.study import QUICK, Plan, TangentRun, study

    plan = QUICK if quick else Plan()
    start = time.perf_counter()

    def report(done: TangentRun) -> None:
        say(
            f"{time.perf_counter() - start:6.0f} s  {done.task}; {done.loss} loss; {done.network}; width {done.width}: "
            f"scores {done.score_gap:.3f} from the machine, {100 * done.agreement:.0f} % of predictions equal"
        )

    page = save(plan, study(plan, report, n_jobs), Path(out))
    say(f"Page: {page}")
