"""Columns that are no features, or are features only after an option; and what a test table has otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from shlex import quote

from flipcert.datasets.columns import BYTES, TEXT, UNEVEN
from flipcert.datasets.facts import Column
from flipcert.datasets.meaning import Advice, names_of, taken, verb
from flipcert.datasets.table import Table
from flipcert.engine.words import plural


def left_out(advice: Advice, columns: Sequence[Column], same: Sequence[str]) -> None:
    """Columns that are no features: ids, copies of the label, and what cannot be a number."""
    useful = any(c.usable and not (c.is_id or c.is_constant or c.is_empty or c.name in same) for c in columns)

    def is_id(column: Column) -> bool:
        return column.is_id and (useful or column.kind == TEXT)

    def stops(column: Column) -> bool:
        return column.kind == TEXT and (advice.advised.encode is None or not column.is_encodable)

    left = list(columns)
    ids = sorted(filter(is_id, left), key=lambda c: (not c.is_called_id, c.kind != TEXT and not c.too_large))
    if advice.advised.id is None and ids:
        first = ids[0]
        left.remove(first)
        advice.advised = replace(advice.advised, id=first.name)
        (advice.obstacles if stops(first) or first.too_large else advice.notes).append(
            f"{first.name!r} looks like an id, as all values differ: --id {quote(first.name)} names rows by it in "
            "results"
        )
    # The first of these that applies to a column is what is said of it.
    rules: list[tuple[Callable[[Column], bool], str, Callable[[list[str]], str], Callable[[Column], bool]]] = [
        (
            lambda c: c.too_large,
            "too large",
            lambda names: f"{verb(names)} whole numbers beyond 2**53, which doubles cannot tell apart: --drop",
            lambda c: True,
        ),
        (
            lambda c: c.commas,
            "commas in numbers",
            lambda names: (
                f"{verb(names, 'holds', 'hold')} numbers with commas; write them with a decimal point, and nothing "
                "else between digits, or --drop"
            ),
            stops,
        ),
        (
            is_id,
            "looks like an id",
            lambda names: f"{verb(names, 'looks like an id', 'look like ids')}, as all values differ: --drop",
            stops,
        ),
        (
            lambda c: c.name in same,
            "copy of the labels",
            lambda names: (
                f"{verb(names, 'looks like a copy', 'look like copies')} of the labels: --drop, unless "
                f"{verb(names, 'it was', 'they were')} measured without them"
            ),
            stops,
        ),
        (
            lambda c: c.is_empty,
            "empty",
            lambda names: f"{verb(names, 'is', 'are')} empty: --drop",
            lambda c: True,
        ),
        (
            lambda c: c.kind == UNEVEN,
            "vectors of several lengths",
            lambda names: (
                f"{verb(names, 'does', 'do')} not hold a vector of one length in every row; mend that in the file, or "
                "--drop"
            ),
            lambda c: True,
        ),
        (
            lambda c: c.kind == BYTES,
            "bytes",
            lambda names: (
                f"{verb(names, 'holds', 'hold')} bytes, or text that is not UTF-8; save text as UTF-8 (iconv does "
                "that), or --drop"
            ),
            lambda c: True,
        ),
        (
            lambda c: not c.usable,
            "no numbers",
            lambda names: f"{verb(names, 'holds', 'hold')} neither numbers nor text: --drop",
            lambda c: True,
        ),
        (
            lambda c: c.infinite,
            "infinite values",
            lambda names: f"{verb(names)} infinite values; mend them in the file, or --drop",
            lambda c: True,
        ),
        (
            lambda c: c.stray is not None,
            "numbers and text",
            lambda names: (
                f"{verb(names, 'holds', 'hold')} numbers, and texts such as {strays[names[0]]!r} between; "
                "make such cells empty in the file, or --drop"
            ),
            stops,
        ),
        (
            lambda c: c.kind == TEXT and not c.has_categories,
            "too many different texts",
            lambda names: (
                f"{verb(names, 'is text', 'are texts')} with too many different values for categories; embed "
                f"{verb(names, 'it', 'them')} beforehand, or --drop"
            ),
            stops,
        ),
        (
            lambda c: c.is_constant and useful,
            "constant",
            lambda names: f"{verb(names)} one value for all rows, and {verb(names, 'tells', 'tell')} nothing: --drop",
            stops,
        ),
    ]
    strays = {c.name: c.stray for c in left}
    for applies, why, told, stop in rules:
        own = [c for c in left if applies(c)]
        if own:
            left = [c for c in left if c not in own]
            names = [c.name for c in own]
            for sentences, stopping in ((advice.obstacles, True), (advice.notes, False)):
                if some := [c.name for c in own if stop(c) is stopping]:
                    sentences.append(f"{names_of(some)} {told(some)}")
            advice.advised = replace(advice.advised, drop=(*advice.advised.drop, *names))
            advice.reasons |= dict.fromkeys(names, why)


def mended(advice: Advice, columns: Sequence[Column]) -> None:
    """Features that are numbers without gaps only after an option."""
    texts = [c.name for c in columns if c.kind == TEXT]
    if texts and advice.advised.encode is None:
        advice.obstacles.append(
            f"{names_of(texts)} {verb(texts, 'holds', 'hold')} text: --encode onehot makes numbers of it"
        )
        advice.advised = replace(advice.advised, encode="onehot")
    gaps = [c for c in columns if c.missing]
    if gaps and advice.advised.impute is None:
        names, count = [c.name for c in gaps], sum(c.missing for c in gaps)
        advice.obstacles.append(
            f"{names_of(names)} {verb(names)} missing values ({count:,} in all): --impute median fills them in"
        )
        advice.advised = replace(advice.advised, impute="median")


def compare(advice: Advice, columns: Sequence[Column], others: Sequence[Column], table: Table, test: Table) -> None:
    """What the test table lacks, or has otherwise."""
    where = test.source
    if test.X.shape[0] == 0:
        advice.obstacles.append(f"{where} has no rows; it must hold at least one")
        advice.hopeless = True
        return
    by_name = {c.name: c for c in others}
    gone = [c.name for c in columns if c.name not in by_name]
    if gone:
        advice.obstacles.append(f"{where} has no column {names_of(gone)}: --drop")
    unlike = [c for c in columns if c.name in by_name and not _alike(c, by_name[c.name])]
    for c in unlike:
        other = by_name[c.name]
        such = f", such as {other.stray!r}" if other.stray is not None else ""
        advice.obstacles.append(f"{c.name!r} holds {c.kind}, and in {where} {other.kind}{such}: --drop")
    advice.reasons |= dict.fromkeys(gone, f"not in {where}") | {c.name: f"other in {where}" for c in unlike}
    drop = [*gone, *(c.name for c in unlike)]
    advice.advised = replace(advice.advised, drop=(*advice.advised.drop, *drop))
    known = {c.name for c in advice.columns}
    extra = [c.name for c in others if c.name not in known and c.name not in taken(advice.advised)]
    if extra:
        advice.obstacles.append(f"{where} has {names_of(extra)}, which {table.source} has not: --drop")
        advice.advised = replace(advice.advised, drop=(*advice.advised.drop, *extra))
    if gone and extra:
        advice.notes.append(
            f"if a column is called {gone[0]!r} in {table.source} and {extra[0]!r} in {where}, give it one name, "
            "rather than --drop"
        )
    both = [c for c in columns if c.name in by_name and c not in unlike]
    gaps = [c.name for c in both if by_name[c.name].missing and not c.missing]
    if gaps and advice.advised.impute is None:
        advice.obstacles.append(
            f"{names_of(gaps)} {verb(gaps)} missing values in {where}: --impute median fills them in"
        )
        advice.advised = replace(advice.advised, impute="median")
    endless = [c.name for c in both if by_name[c.name].infinite]
    if endless:
        advice.obstacles.append(
            f"{names_of(endless)} {verb(endless)} infinite values in {where}; mend them in the file"
        )
        advice.hopeless = True
    for c in both:
        if by_name[c.name].is_empty:
            continue  # told as gaps
        if c.kind == TEXT != by_name[c.name].kind:
            advice.notes.append(
                f"{c.name!r} holds text, and in {where} {by_name[c.name].kind}, which are read as text; those that no "
                "training row has are encoded as none of the known ones"
            )
        elif c.kind == TEXT:
            new = set(test.texts[c.name].tolist()) - set(table.texts[c.name].tolist()) - {None}
            if new:
                advice.notes.append(
                    f"{c.name!r} has values in {where} that no training row has, such as {sorted(new)[0]!r}; they are "
                    "encoded as none of the known ones"
                )
    label = advice.advised.label or "label"
    if label in by_name and by_name[label].missing:
        gap = by_name[label]
        advice.obstacles.append(
            f"labels ({label!r}) are missing in {gap.missing:,} of {plural(gap.n_rows, 'row')} of {where}; fill them "
            "in, leave these rows out, or leave the column out of that file, which needs no labels"
        )
        advice.hopeless = True
    elif label in known and label not in by_name:
        advice.notes.append(f"{where} has no column {label!r}, so there will be radii, and no accuracy")


def _alike(column: Column, other: Column) -> bool:
    """Whether columns of two tables can be used together: numbers can be read as text, text not as numbers."""
    if column.has_vectors or other.has_vectors:
        return column.kind == other.kind
    return other.usable if column.kind == TEXT else other.kind != TEXT and other.usable
