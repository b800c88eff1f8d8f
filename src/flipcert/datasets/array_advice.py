"""The same look at files that hold arrays: npz, npy, svmlight."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote

import numpy as np

from flipcert.datasets.advice import LABEL_NAMES
from flipcert.datasets.archives import read_arrays
from flipcert.datasets.facts import Column, facts
from flipcert.datasets.files import Columns, arrays_in, read_table
from flipcert.datasets.meaning import Advice, Meaning
from flipcert.datasets.room import Unreadable
from flipcert.datasets.table import Table
from flipcert.engine.words import plural


def advise_on_arrays(source: str, given: Meaning, test: str | None = None) -> Advice:
    """Look at features and labels of a file without names of columns; an ``.npz`` has names of arrays."""
    held = arrays_in(source)
    is_archive = bool(held)
    wanted = given.label or "y"
    likely = _likely_labels(source, held) if is_archive and wanted not in held else None
    label = likely or given.label
    columns = Columns(label, given.drop, trusted=given.trusted, giver=given.source, id=given.id, impute=True)
    table = read_table(source, columns, labelled=False)
    advised = replace(given, label=label)
    kind = f"{plural(table.X.shape[1], 'column')} of {table.X.dtype}"
    advice = Advice([Column("X", kind, table.X.shape[0])], advised)
    advice.uses["X"] = "features"
    named = {label or "y": "label", given.id: "id", given.source: "source", given.trusted: "trusted"}
    if table.y is not None:
        n_classes = np.unique(table.y).size
        advice.columns.append(Column(label or "y", f"{table.y.dtype} labels", table.y.size, different=n_classes))
    else:
        how = "name their array with --label" if is_archive else "give features and labels as X.npy,y.npy"
        advice.obstacles.append(f"there are no labels; {how}, unless these are test points")
    if likely is not None:
        way_out = f"{likely!r} looks like it: --label {quote(likely)}"
        advice.obstacles.append(f"there is no array {wanted!r} of labels; {way_out}")
    for name in held:
        if name not in ("X", label or "y"):
            advice.columns.append(Column(name, "array", table.X.shape[0]))
    advice.uses |= {c.name: named.get(c.name, "not used") for c in advice.columns[1:]}
    _features(advice, table)
    if test is not None:
        other = read_table(
            test, Columns(label, id_if_there=given.id, impute=True), labelled=False, n_features=table.X.shape[1]
        )
        if other.X.shape[1] != table.X.shape[1]:
            features = plural(other.X.shape[1], "feature")
            advice.obstacles.append(f"{test} has {features}, and {source} {table.X.shape[1]:,}")
        elif np.isnan(other.X).any() and advice.advised.impute is None:
            advice.obstacles.append(f"{test} has missing values: --impute median fills them in")
            advice.advised = replace(advice.advised, impute="median")
    return advice


def _likely_labels(source: str, held: list[str]) -> str | None:
    """The array that is most likely that of the labels: by its name, else the only other one that could be."""
    try:
        arrays = read_arrays(source, held)
    except Unreadable:
        return None  # whoever reads it says why
    n_rows = arrays["X"].shape[0] if "X" in arrays and arrays["X"].ndim else 0
    may_be = [
        name
        for name, own in arrays.items()
        if name != "X"
        and own.shape == (n_rows,)
        and own.dtype.kind in "iubUS"
        and 1 < np.unique(own).size <= n_rows / 2
    ]
    by_name = [own for name in LABEL_NAMES for own in may_be if own.lower() == name]
    return next(iter([*by_name, *may_be]), None)


def _features(advice: Advice, table: Table) -> None:
    """What is odd about columns of an array, which have numbers only."""
    columns = facts(replace(table, names=tuple(str(place) for place in range(table.X.shape[1])), kinds={}, texts={}))
    gaps = [c for c in columns if c.missing]
    if gaps:
        advice.columns[0] = replace(advice.columns[0], missing=sum(c.missing for c in gaps))
        count = sum(c.missing for c in gaps)
        of_X = f"{plural(count, 'value')} of X {'is' if count == 1 else 'are'} missing"
        told = f"{of_X}, in {len(gaps):,} of its {plural(len(columns), 'column')}"
        empty = [c.name for c in gaps if c.is_empty]
        if empty:
            advice.obstacles.append(f"column {empty[0]} of X is empty; leave it out of the file")
        elif advice.advised.impute is None:
            advice.obstacles.append(f"{told}: --impute median fills them in")
            advice.advised = replace(advice.advised, impute="median")
    if fixed := [c.name for c in columns if c.is_constant]:
        many = f"{len(fixed):,} of the {len(columns):,} columns of X, such as {fixed[0]}, have"
        advice.notes.append(f"{f'column {fixed[0]} of X has' if len(fixed) == 1 else many} one value for all rows")
    if ids := [c.name for c in columns if c.is_id]:
        advice.notes.append(
            f"column {ids[0]} of X looks like an id: all values differ, and are whole; leave it out of the file"
        )
