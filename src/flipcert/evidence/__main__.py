"""Evidence on finite networks, from one command: ``python -m flipcert.evidence --out docs``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console

from flipcert.evidence.page import save
from flipcert.evidence.study import QUICK, Plan, Run, study


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
    console = Console(stderr=True, highlight=False)
    plan = QUICK if quick else Plan()
    start = time.perf_counter()

    def report(run: Run) -> None:
        console.print(
            f"{time.perf_counter() - start:6.0f} s  {run.task}; {run.network}; {run.loss} loss; width {run.width}: "
            f"scores {run.score_gap:.3f} from the limit, {100 * run.agreement:.0f} % of predictions equal",
            soft_wrap=True,
        )

    runs = study(plan, report, n_jobs)
    page = save(plan, runs, Path(out))
    console.print(f"Page: {page}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m flipcert.evidence", description=__doc__)
    parser.add_argument("--out", default="evidence", help="folder for the page, its plot and the results")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything works")
    parser.add_argument("--n-jobs", type=int, help="networks to train at a time; all cores by default")
    return parser.parse_args()


if __name__ == "__main__":
    main(**vars(_arguments()))
