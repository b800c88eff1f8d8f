"""What stands in the way of using a table, all at once, and which options would mend it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.columns import BYTES, TEXT, Columns
from flipcert.datasets.delimited import is_delimited
from flipcert.datasets.facts import Column, copies, facts, is_number
from flipcert.datasets.feature_advice import compare, left_out, mended
from flipcert.datasets.meaning import Advice, Meaning, names_of, taken, verb
from flipcert.datasets.spelling import like_missing
from flipcert.datasets.table import Table
from flipcert.engine.words import plural

# What columns of labels, and of those who gave them, are often called.
LABEL_NAMES = ("label", "labels", "target", "class", "y", "species", "diagnosis", "outcome", "category")
_SOURCES = ("source", "annotator", "annotator_id", "vendor", "labeler", "labeller", "rater", "worker")


def advise(table: Table, given: Meaning, test: Table | None = None, labelled: bool = True) -> Advice:
    """Look at a training table, and at a test table if there is one, of which all columns were read as they are.

    ``labelled`` says whether the labels are in the training table.
    """
    columns = facts(table)
    names = [*(c.name for c in columns), *(test.kinds if test is not None and test.kinds else ())]
    advice = Advice(columns, replace(given, drop=tuple(Columns(drop=given.drop).dropped(names))))
    if table.X.shape[0] == 0:
        advice.obstacles.append("it has no rows")
        advice.hopeless = True
        return advice
    _named(advice, labelled, names)
    _label(advice, table, labelled)
    _sources(advice)
    rest = [c for c in columns if c.name not in taken(advice.advised)]
    left_out(advice, rest, copies(table, advice.advised.label or "label", rest))
    rest = [c for c in columns if c.name not in taken(advice.advised)]
    mended(advice, rest)
    advice.notes += _words_for_missing({c.name: table.texts[c.name] for c in rest if c.kind == TEXT})
    _first_line(advice, table)
    if test is not None:
        compare(advice, rest, facts(test), table, test)
    if not any(c.name not in taken(advice.advised) for c in columns):
        advice.obstacles.append("no column is left that could be a feature")
        advice.hopeless = True
    _say_uses(advice)
    return advice


def noticed(table: Table) -> list[str]:
    """What deserves a look in a table that is used as it is: what is called NA, columns like ids or like the labels."""
    told = [*([] if table.y is None else _like_missing(table.y)), *_words_for_missing(table.texts)]
    if not table.tabular:
        return told
    columns, labels = facts(table), "\0labels"
    ids, same = [c.name for c in columns if c.is_id], []
    if table.y is not None and table.rows is None:
        beside = replace(table, texts={**table.texts, labels: table.y.astype(str).astype(object)})
        same = copies(beside, labels, columns)
    looks = (
        (ids, "an id: all values differ", "ids: all values differ"),
        (same, "a copy of the labels", "copies of the labels"),
    )
    return told + [
        f"{names_of(names)} {verb(names, f'looks like {one}, and is', f'look like {many}, and are')} used as "
        f"{verb(names, 'a feature', 'features')}; --drop leaves {verb(names, 'it', 'them')} out"
        for names, one, many in looks
        if names
    ]


def _named(advice: Advice, labelled: bool, names: Sequence[str]) -> None:
    """Columns that are named, and not there, or that of the labels; ``names`` are those of both files."""
    present = [c.name for c in advice.columns]
    given = advice.advised
    label = given.label or "label" if labelled else None
    for option in ("id", "source", "trusted"):
        name = getattr(given, option)
        if name is not None and (name not in present or name == label):
            wrong = "the labels are in" if name == label else "there is no"
            has = "leave it out, or name another" if name == label else f"it has {names_of(present)}"
            advice.obstacles.append(f"{wrong} column {name!r}, which --{option} names; {has}")
            absent: dict[str, Any] = {option: None}
            advice.advised = replace(advice.advised, **absent)
    if label in present and label in given.drop:
        advice.obstacles.append(f"the labels are in column {label!r}, which --drop names; leave it out")
        advice.advised = given = replace(advice.advised, drop=tuple(name for name in given.drop if name != label))
    gone = [name for name in given.drop if name not in names]
    if gone:
        advice.obstacles.append(f"there is no column {names_of(gone)}, which --drop names; leave it out")
        advice.advised = replace(advice.advised, drop=tuple(name for name in given.drop if name in names))


def _label(advice: Advice, table: Table, labelled: bool) -> None:
    """The column of labels, and what is wrong with it."""
    by_name = {c.name: c for c in advice.columns}
    wanted = advice.advised.label or "label"
    if not labelled:
        return
    if wanted not in by_name:
        rest = [c for c in advice.columns if c.name not in taken(advice.advised)]
        found = _likely_label(rest)
        told = f"there is no column {wanted!r} of labels"
        if found is None:
            advice.obstacles.append(f"{told}; name one with --label")
            advice.hopeless = True
            return
        advice.obstacles.append(f"{told}; {found.name!r} looks like it ({found.told}): --label {quote(found.name)}")
        advice.advised = replace(advice.advised, label=found.name)
        others = [c.name for c in rest if c.may_be_label and c is not found]
        if others and found.name.lower() not in LABEL_NAMES and found not in (rest[0], rest[-1]):
            advice.notes.append(
                f"--label {quote(found.name)} is a guess; {names_of(others)} could be labels as well, so name the "
                "right one"
            )
        return
    label = by_name[wanted]
    if label.missing:
        where = f"{label.missing:,} of {plural(label.n_rows, 'row')}"
        remedy = "; fill them in, or leave these rows out of the file"
        if is_delimited(table.source):
            remedy = f", as they are empty, or such as NA among numbers{remedy}; a class may not be called so"
        advice.obstacles.append(f"labels ({wanted!r}) are missing in {where}{remedy}")
        advice.hopeless = True
    elif label.kind == BYTES:
        pass  # they may be text: whoever reads them tells
    elif not label.usable or label.has_vectors:
        advice.obstacles.append(f"the labels ({wanted!r}) are {label.kind}, not whole numbers or words")
        advice.hopeless = True
    elif label.different is None or label.different * 2 > max(label.n_rows, 4):
        what = (
            "many numbers"
            if label.different is None
            else f"{label.different:,} different values in {label.n_rows:,} rows"
        )
        advice.notes.append(f"the labels ({wanted!r}) are {what}, hardly classes; perhaps --label should name another")
    if wanted in table.texts and not label.missing:
        advice.notes += _like_missing(table.texts[wanted].astype(str))


def _words_for_missing(texts: Mapping[str, NDArray[Any]]) -> list[str]:
    """Categories that are called as many programs call what is missing."""
    return [
        f"{word!r} is a category of {name!r} here, in {plural(count, 'row')}; if it stands for what is missing, make "
        f"{'this cell' if count == 1 else 'these cells'} empty in the file"
        for name, own in texts.items()
        for word, count in like_missing(np.array([text for text in own if text is not None], str)).items()
    ]


def _first_line(advice: Advice, table: Table) -> None:
    """A first line that is hardly one of names."""
    numbers = [c.name for c in advice.columns if is_number(c.name)]
    if is_delimited(table.source) and len(numbers) * 2 > len(advice.columns):
        advice.notes.append(
            f"the first line of the file is read as names of columns, such as {numbers[0]!r}; if it is a row, put a "
            "line of names before it"
        )


def _like_missing(labels: NDArray[Any]) -> list[str]:
    return [
        f"{name!r} is a class here, with {plural(count, 'label')}; if it stands for what is missing, leave "
        f"{'it' if count == 1 else 'these'} out of the file"
        for name, count in like_missing(labels).items()
    ]


def _likely_label(columns: Sequence[Column]) -> Column | None:
    """The column that is most likely that of the labels: by its name, else the last one, or the first, with classes."""
    may_be = [c for c in columns if c.may_be_label]
    by_name = [c for name in LABEL_NAMES for c in may_be if c.name.lower() == name]
    ends = [c for c in (*columns[-1:], *columns[:1]) if c in may_be]
    return next(iter([*by_name, *ends, *[c for c in may_be if c.kind == TEXT], *may_be]), None)


def _sources(advice: Advice) -> None:
    """A column that says who gave the labels, by its name."""
    if advice.advised.source is not None:
        return
    rest = [c for c in advice.columns if c.name not in taken(advice.advised)]
    found = [c.name for c in rest if c.name.lower() in _SOURCES and not c.missing and not c.is_constant]
    if len(found) == 1:
        advice.notes.append(f"{found[0]!r} may say who gave the labels: --source {quote(found[0])}")
        advice.advised = replace(advice.advised, source=found[0])


def _say_uses(advice: Advice) -> None:
    """What each column is used as."""
    advised = advice.advised
    named = {advised.label or "label": "label", advised.id: "id", advised.source: "source", advised.trusted: "trusted"}
    for c in advice.columns:
        if c.name in advised.drop:
            use = f"left out: {advice.reasons.get(c.name, '--drop')}"
        elif c.name in named:
            use = named[c.name]
        else:
            use = "feature"
            use += ", one-hot" if c.kind == TEXT else ""
            use += ", gaps filled in" if c.missing else ""
        advice.uses[c.name] = use
