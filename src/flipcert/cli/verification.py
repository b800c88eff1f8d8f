"""A verification on a terminal: what was compared and how, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rich import box
from rich.markup import escape
from rich.table import Table

from flipcert.cli.console import results
from flipcert.report.words import plural
from flipcert.runs.comparisons import COMPARISONS, Verification
from flipcert.runs.describe import versions

# Differences that are shown one by one.
_SHOWN = 20


def print_verification(verification: Verification, made_with: Mapping[str, str], n_models: int) -> None:
    """Tables of comparisons and differences, and a verdict."""
    differences = verification.differences
    different = Counter(difference.comparison for difference in differences)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("compared", no_wrap=True)
    table.add_column("times", justify="right", no_wrap=True)
    table.add_column("differ", justify="right", no_wrap=True)
    table.add_column("how")
    for comparison in COMPARISONS:
        if times := verification.compared[comparison]:
            table.add_row(comparison.what, f"{times:,}", f"{different[comparison]:,}", comparison.how)
    results.print(table)
    for sentence in verification.left_out:
        results.print(sentence, soft_wrap=True, markup=False)
    if not differences:
        compared = ", in what was compared" if verification.left_out else ""
        # Points are divided among the models of a sweep, and one that two models are asked about counts twice.
        looked_at = plural(verification.n_points, "test point")
        if n_models > 1:
            looked_at = f"{plural(verification.n_points, 'prediction')} (the run has {n_models} models)"
        results.print(f"No difference at {looked_at}{compared}.", soft_wrap=True)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("model", "row", "", "the run says", "found"):
        table.add_column(heading)
    for difference in differences[:_SHOWN]:
        place, sides = difference.place, (difference.stored, difference.found)
        row = "" if place.row is None else f"{place.row}{' *' if place.sensitive else ''}"
        table.add_row(place.model, row, difference.comparison.what, *map(escape, sides))
    results.print(table)
    if len(differences) > _SHOWN:
        results.print(f"And {len(differences) - _SHOWN:,} more.")
    if any(difference.place.sensitive for difference in differences):
        results.print(
            "* The run itself says that rounding could matter there: on another machine the weights may be others.",
            soft_wrap=True,
        )
    here = versions()
    others = [
        f"{name} {version} (here {here.get(name)})" for name, version in made_with.items() if here.get(name) != version
    ]
    if others:
        results.print(f"The run was made with {', '.join(others)}.", soft_wrap=True, markup=False)
    results.print(
        f"{plural(len(differences), 'difference')} between what the run says and what was found.", soft_wrap=True
    )
