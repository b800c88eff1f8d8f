"""Features from tables with text and gaps: categories are encoded and missing values filled in, without labels.

scikit-learn's own transformers do it, fitted on the training rows alone; test rows are never looked at. The same as a
pipeline in Python: ``docs/cli.md`` shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.table import Table
from flipcert.engine.mapped import give_back, room_for, row_pieces

ENCODINGS = ("onehot",)
# How missing numbers are filled in, by what scikit-learn calls it; a missing text is always the most frequent one.
IMPUTATIONS = {"median": "median", "most-frequent": "most_frequent"}
# A column of more different texts is hardly one of categories.
MOST_CATEGORIES = 1000
# Rows that are encoded at a time.
_ROWS = 2**14


def check_preparation(encode: str | None, impute: str | None) -> None:
    """Raise ValueError if something is asked for that does not exist."""
    for option, value, known in (("--encode", encode, ENCODINGS), ("--impute", impute, tuple(IMPUTATIONS))):
        if value is not None and value not in known:
            choice = f"one of {', '.join(known)}" if len(known) > 1 else known[0]
            raise ValueError(f"{option} must be {choice}; got {value!r}.")


def prepare(train: Table, test: Table, encode: str | None, impute: str | None) -> tuple[Table, Table]:
    """Both tables as numbers without gaps; what was done is in ``prepared`` of the training table."""
    done: dict[str, Any] = {}
    if impute is not None:
        done |= {"impute": impute, "filled_in": _gaps(train)}
        if gaps := _gaps(test):
            done["filled_in_test"] = gaps
        train, test = _filled(train, test, IMPUTATIONS[impute])
    if encode is not None:
        done["encode"] = encode
        if train.texts:
            train, test, about = _encoded(train, test)
            done |= about
    return replace(train, prepared=done), test


def _gaps(table: Table) -> dict[str, int]:
    """Number of missing values, by column, where there are any."""
    counts = np.zeros(table.X.shape[1], np.int64)
    for _, rows in row_pieces(table.X):
        counts += np.isnan(rows).sum(axis=0)
    names = table.names or [str(place) for place in range(counts.size)]
    missing = {name: int(count) for name, count in zip(names, counts, strict=True)}
    missing |= {name: int(_missing(own).sum()) for name, own in table.texts.items()}
    return {name: count for name, count in missing.items() if count}


def _missing(texts: NDArray[Any]) -> NDArray[np.bool_]:
    return np.array([text is None for text in texts], np.bool_)


def _filled(train: Table, test: Table, strategy: str) -> tuple[Table, Table]:
    """Both tables without gaps, by what the training table holds."""
    from sklearn.impute import SimpleImputer

    gaps = _gaps(train) | _gaps(test)
    names = train.names or tuple(str(place) for place in range(train.X.shape[1]))
    values: dict[int, Any] = {}
    for place, name in enumerate(names):
        if name in gaps:
            column = np.array(train.X[:, place : place + 1])
            if np.isnan(column).all():
                raise _empty(train, name)
            values[place] = SimpleImputer(strategy=strategy).fit(column).statistics_[0]
    texts: tuple[dict[str, NDArray[Any]], ...] = ({}, {})
    for name, own in train.texts.items():
        if name in gaps and _missing(own).all():
            raise _empty(train, name)
        imputer = SimpleImputer(strategy="most_frequent", missing_values=None).fit(own[:, None])
        for filled, table in zip(texts, (train, test), strict=True):
            filled[name] = imputer.transform(table.texts[name][:, None])[:, 0]
    return (
        replace(train, X=_without_gaps(train.X, values), texts=texts[0], gaps=False),
        replace(test, X=_without_gaps(test.X, values), texts=texts[1], gaps=False),
    )


def _empty(table: Table, name: str) -> ValueError:
    drop = f"leave it out with --drop {quote(name)}" if table.names else "leave it out of the file"
    return ValueError(f"column {name!r} of {table.source} is empty, so nothing can be filled in; {drop}.")


def _without_gaps(X: NDArray[Any], values: dict[int, Any]) -> NDArray[Any]:
    if not values:
        return X
    places = np.array(list(values))
    fill = np.zeros(X.shape[1], X.dtype)
    fill[places] = list(values.values())
    result = room_for(X.shape, X.dtype)
    for place, rows in row_pieces(X):
        result[place] = np.where(np.isnan(rows), fill, rows)
        give_back(result[place])
    return result


def _encoded(train: Table, test: Table) -> tuple[Table, Table, dict[str, Any]]:
    """Both tables with a column of zeros and ones for each category of the training table, and what was done."""
    from sklearn.preprocessing import OneHotEncoder

    for table in (train, test):
        for name, own in table.texts.items():
            missing = _missing(own)
            if missing.any():
                raise ValueError(
                    f"column {name!r} of {table.source} has no text in row {missing.argmax()}; fill it in, or let "
                    "--impute most-frequent do that."
                )
    columns = list(train.texts)
    for name in columns:
        count = len(set(train.texts[name].tolist()))
        if count > MOST_CATEGORIES:
            raise ValueError(
                f"column {name!r} of {train.source} has {count:,} different texts, and --encode makes a column of "
                f"each, up to {MOST_CATEGORIES:,}; leave it out with --drop {quote(name)}."
            )
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=train.X.dtype)
    encoder.fit(_matrix(train, columns, slice(None)))
    unknown = {}
    for name, known in zip(columns, encoder.categories_, strict=True):
        strange = np.isin(test.texts[name].astype(str), known.astype(str), invert=True).sum()
        if strange:
            unknown[name] = int(strange)
    categories = {name: len(known) for name, known in zip(columns, encoder.categories_, strict=True)}
    names = [f"{name}={text}" for name, known in zip(columns, encoder.categories_, strict=True) for text in known]
    tables = []
    for table in (train, test):
        width = table.X.shape[1]
        X = room_for((table.X.shape[0], width + len(names)), train.X.dtype)
        for start in range(0, X.shape[0], _ROWS):
            place = slice(start, start + _ROWS)
            X[place, :width] = table.X[place]
            X[place, width:] = encoder.transform(_matrix(table, columns, place))
            give_back(X[place])
        tables.append(replace(table, X=X, names=(*(table.names or ()), *names), texts={}))
    about = {"encoded": categories} | ({"unknown": unknown} if unknown else {})
    return tables[0], tables[1], about


def _matrix(table: Table, columns: Sequence[str], place: slice) -> NDArray[Any]:
    return np.stack([table.texts[name][place] for name in columns], axis=1)
