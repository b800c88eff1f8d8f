"""Columns of an arrow table as arrays: numbers, vectors, texts, labels, ids."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.room import check_room
from flipcert.datasets.table import LARGEST_WHOLE, check_exact, no_id, no_label, too_large


def is_vectors(kind: Any) -> bool:
    """Whether a column of this type holds vectors."""
    from pyarrow import types

    return bool(types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind))


def is_numeric(kind: Any) -> bool:
    """Whether a column of this type holds numbers, or vectors of them."""
    from pyarrow import types

    inner = kind.value_type if is_vectors(kind) else kind
    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    return types.is_decimal(kind) or any(is_one(inner) for is_one in kinds)


def is_boolean(kind: Any) -> bool:
    """Whether a column of this type holds true or false."""
    from pyarrow import types

    return bool(types.is_boolean(kind))


def type_of(column: Any) -> str:
    """What a column holds, by its type, however it is packed."""
    from pyarrow import types

    held = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_date(held) or types.is_timestamp(held):
        return "dates"
    return "times of day" if types.is_time(held) else str(held)


def count_beyond_doubles(column: Any) -> int | None:
    """Number of different values of a column of whole numbers that doubles cannot tell apart; None for all others."""
    from pyarrow import compute, types

    if not (types.is_integer(column.type) or types.is_decimal(column.type)):
        return None
    ends = compute.min_max(column).as_py()
    if ends["min"] is None or max(-ends["min"], ends["max"]) <= LARGEST_WHOLE:
        return None
    return int(compute.count_distinct(column).as_py())


def numbers_of(
    column: Any, name: str, source: str, first_row: int, exact: bool = True, may_encode: bool = False
) -> NDArray[Any]:
    """A column of numbers, or a matrix for a column of vectors; with ``exact``, of numbers that are doubles.

    ``may_encode`` says whether a column of text could be encoded.
    """
    from pyarrow import types

    kind = column.type
    vectors = is_vectors(kind)
    inner = kind.value_type if vectors or types.is_dictionary(kind) else kind
    if not is_numeric(kind):
        encode = ", or make numbers of categories with --encode onehot" if may_encode and is_text(column) else ""
        raise ValueError(
            f"column {name!r} of {source} holds {inner}, not numbers; name the labels with --label, "
            f"and leave out other columns with --drop{encode}."
        )
    if not vectors:
        values = column.to_numpy()
        if types.is_decimal(kind) and exact:
            large = (row for row, value in enumerate(values) if value is not None and abs(value) > LARGEST_WHOLE)
            if (row := next(large, None)) is not None:
                raise too_large(source, values[row], first_row + row, repr(name))
        numbers = values.astype(np.float64) if values.dtype.kind in "Ob" else values
        if exact:
            check_exact(numbers[:, None], source, (name,), first_row)
        return np.asarray(numbers)
    rows = column.combine_chunks()
    if rows.null_count:
        row = first_row + int(np.flatnonzero(rows.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError(f"column {name!r} of {source} has no vector in row {row}; fill it in or drop the row.")
    lengths = np.unique(rows.value_lengths().to_numpy(zero_copy_only=False)) if len(rows) else np.array([0])
    if lengths.size != 1:
        raise ValueError(f"the vectors in column {name!r} of {source} must all have the same length.")
    flat = rows.flatten().to_numpy(zero_copy_only=False)
    matrix = np.asarray(flat.astype(np.float64) if flat.dtype.kind == "O" else flat).reshape(len(rows), -1)
    if exact:
        check_exact(matrix, source, tuple(f"{name}.{i}" for i in range(matrix.shape[1])), first_row)
    return matrix


def is_text(column: Any) -> bool:
    """Whether a column holds text, or categories."""
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    packed = types.is_dictionary(column.type) and types.is_integer(kind)
    return bool(types.is_string(kind) or types.is_large_string(kind) or packed)


def texts_of(column: Any, name: str, source: str) -> NDArray[Any]:
    """A column as texts, None where one is missing; equal texts are one object, however many there are."""
    import pyarrow as pa
    from pyarrow import types

    packed = column if types.is_dictionary(column.type) else column.dictionary_encode()
    packed = packed.unify_dictionaries().combine_chunks()
    try:
        different = packed.dictionary.cast(pa.string()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(
            f"column {name!r} of {source} holds {column.type}, not text; leave it out with --drop."
        ) from None
    places = packed.indices.fill_null(len(different)).to_numpy(zero_copy_only=False)
    values = np.empty(len(different) + 1, object)
    values[:-1] = [text or None for text in different]
    return np.asarray(values[places])


def ids_of(column: Any, name: str, source: str, first_row: int, what: str) -> NDArray[Any]:
    """Ids of rows or of sources, as an array of numbers or strings."""
    if column.null_count:
        row = first_row + int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise ValueError(no_id(source, what, row))
    return labels_of(column, name, source, first_row, f"{what}s", "--source" if what == "source" else "--id")


def labels_of(
    column: Any, name: str, source: str, first_row: int = 0, what: str = "labels", option: str = "--label"
) -> NDArray[Any]:
    """Labels, or ids, as an array of numbers or strings."""
    import pyarrow as pa
    from pyarrow import compute, types

    packed = types.is_dictionary(column.type)
    kind = column.type.value_type if packed else column.type
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    texts = types.is_string(kind) or types.is_large_string(kind)
    spelled = types.is_decimal(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    if texts or types.is_binary(kind) or types.is_large_binary(kind):
        different = pa.chunked_array([part.dictionary for part in column.chunks], kind) if packed else column
        longest = compute.max(compute.binary_length(different)).as_py() or 0
        # NumPy gives every label the room of the longest one.
        check_room(
            f"column {name!r} of {source}, with {what} of up to {longest:,} characters,",
            4.0 * longest * len(column),
            f"shorten them, or name another column with {option}",
        )
    column = column.cast(kind)
    if column.null_count:
        raise no_label(source, column.is_null().to_numpy(), first_row)
    if numbers:
        return np.asarray(column.to_numpy())
    if not texts and not spelled:
        raise ValueError(
            f"the {what} in column {name!r} of {source} are {kind}, not numbers or strings; name another with {option}."
        )
    try:
        column = column.cast(pa.string())
    except pa.ArrowInvalid:
        raise ValueError(
            f"the {what} in column {name!r} of {source} are bytes that are no UTF-8 text; save them as text."
        ) from None
    if compute.any(compute.match_substring(column, "\0")).as_py():
        raise ValueError(f"the {what} in column {name!r} of {source} hold a zero byte, which ends a text; remove it.")
    return np.asarray(column.to_numpy().astype(str))
