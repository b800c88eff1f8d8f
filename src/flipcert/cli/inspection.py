"""What a file holds, what its columns would be used as, and the command that would work."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from flipcert.cli.command_words import group_words, pasted
from flipcert.cli.console import results
from flipcert.cli.looking import look
from flipcert.cli.options import DataOptions
from flipcert.cli.tables import say
from flipcert.datasets.files import is_table
from flipcert.datasets.meaning import Advice
from flipcert.datasets.preparation import check_preparation
from flipcert.report.words import outside, plural, shorten

# Tables with more columns show those that need a look, and how many others there are.
_MOST_COLUMNS = 20
# What stands for the test points in a command, if there are none.
_TEST = "TEST"


def inspect_command(file: str, test: str | None, data: DataOptions, as_json: bool) -> None:
    """Say what a file holds, and all that stands in the way of using it."""
    check_preparation(data.encode, data.impute)
    advice, mended = look(file, test, data)
    command = None
    if mended is not None:
        command = pasted(["flipcert", "certify", file, _TEST if test is None else test, *group_words(mended)])
    if as_json:
        typer.echo(json.dumps(_described(file, advice, command), indent=2))
        return
    n_rows = advice.columns[0].n_rows if advice.columns else 0
    parts = plural(len(advice.columns), "column" if is_table(file) else "array")
    say(f"{outside(file)}: {plural(n_rows, 'row')}, {parts}.")
    results.print(_table(advice))
    _list("Stands in the way:", advice.obstacles)
    _list("Worth a look:", advice.notes)
    if command is None:
        say("No option mends all of this: change the file.", style="bold")
        return
    say("This would work:" if advice.obstacles or advice.notes else "Nothing stands in the way:", style="bold")
    # In one line, whatever the terminal, so that it can be pasted.
    results.print(command, soft_wrap=True, markup=False)
    if test is None:
        say(f"{_TEST} stands for a file of test points with the same columns; labels are not needed there.")


def _table(advice: Advice) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("name", "holds", "used as"):
        table.add_column(heading)
    plain = [c for c in advice.columns if advice.uses.get(c.name) == "feature"]
    hidden = plain[1:] if len(advice.columns) > _MOST_COLUMNS else []
    for column in advice.columns:
        if column not in hidden:
            use = advice.uses.get(column.name, "")
            table.add_row(*(escape(text) for text in (shorten(column.name, 30), column.told, shorten(use, 40))))
    if hidden:
        table.add_row(f"and {len(hidden):,} more", "", "feature")
    return table


def _list(heading: str, sentences: list[str]) -> None:
    if sentences:
        say(heading, style="bold")
        for sentence in sentences:
            say(f"- {outside(sentence)}.")


def _described(file: str, advice: Advice, command: str | None) -> dict[str, Any]:
    return {
        "file": file,
        "rows": advice.columns[0].n_rows if advice.columns else 0,
        "columns": [
            {
                "name": column.name,
                "holds": column.kind,
                "missing": column.missing,
                "different": column.different,
                "used_as": advice.uses.get(column.name),
            }
            for column in advice.columns
        ],
        "obstacles": advice.obstacles,
        "notes": advice.notes,
        "command": command,
    }
