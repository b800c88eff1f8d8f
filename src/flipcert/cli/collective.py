"""Budgets of one attack on all test points as they are typed, and what came of them as it is shown."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.markup import escape
from rich.table import Table

from flipcert.cli.console import results
from flipcert.report.collective_words import evidence, finding
from flipcert.report.result import Result
from flipcert.report.units import unit_of
from flipcert.report.words import outside

_LARGEST = 10**12


def budgets_of(text: str | None) -> tuple[int, ...]:
    """A list such as 10,50,100 in ascending order; none if nothing was typed."""
    if text is None:
        return ()
    try:
        budgets = [int(part) for part in text.split(",")]
    except ValueError:
        budgets = [0]
    if not all(1 <= budget <= _LARGEST for budget in budgets):
        raise ValueError(
            f"--collective must be whole numbers from 1 to {_LARGEST:,}, with commas between them, such as 10,50,100; "
            f"got {text!r}."
        )
    if len(set(budgets)) < len(budgets):
        raise ValueError(f"--collective names a number twice; got {text!r}.")
    return tuple(sorted(budgets))


def print_collective(shown: Sequence[Result]) -> None:
    """What one attack changes, a row for each model and budget, and what the largest budget means in words."""
    known = [(result, result.collective.certificate) for result in shown if result.collective is not None]
    if not known:
        return
    first = known[0][1]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    share = "accuracy" if first.counts_correct else "share"
    headings = [unit_of(first.threat).nouns, "changed\nat most", "at\nleast", "point\nby point"]
    if len(known) > 1:
        table.add_column("model")
    for heading in [*headings, f"certified\n{share}", "point\nby point"]:
        table.add_column(heading, justify="right")
    for result, c in known:
        for k, budget in enumerate(c.flips.tolist()):
            name = [escape(outside(result.name)) if k == 0 else ""] if len(known) > 1 else []
            counts = (budget, c.changed_at_most[k], c.changed_at_least[k], c.changed_one_by_one[k])
            shares = (c.certified_accuracy[k], c.certified_one_by_one[k])
            table.add_row(*name, *(f"{own:,}" for own in counts), *(f"{own:.3f}" for own in shares))
    results.print("\nOne attack on all test points", style="bold")
    results.print(table)
    if len(known) == 1:
        last = int(first.flips.argmax())
        said = " ".join([f"{finding(first, last)}.", *evidence(first, last)])
        results.print(said, soft_wrap=True, markup=False, highlight=False)
