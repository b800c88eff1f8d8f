"""Results as files of a run: tables of certificates and attacks, and pictures of the rows that a report shows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.audit.record import RandomCheck
from flipcert.engine.files import whole_file
from flipcert.labels.threats import FLIPS
from flipcert.report.result import Attack, Result, SourcePower
from flipcert.results.certificates import Certificates
from flipcert.results.columns import Column, columns_of, values_of
from flipcert.runs.folder import read_summary
from flipcert.runs.operations import attack_of, columns_of_lines, lines_of, write_parquet
from flipcert.runs.row_ids import ID, TRAINING_ID, read_ids, with_ids
from flipcert.runs.stored_audit import AUDITED, read_audit, write_audit
from flipcert.runs.stored_collective import COLLECTIVE_ATTACKS, read_collective_results, write_collective_results

CERTIFICATES, ATTACKS, IMAGES = "certificates.parquet", "attacks.parquet", "images.npz"
# The column of radii in flips, where others count sources.
IN_FLIPS = "radius_in_flips"


def write_results(folder: Path, results: Sequence[Result]) -> list[str]:
    """Write the tables of one result, or of all points of a sweep, which get a column ``point``; name the files."""
    import pyarrow as pa

    tables, attacks = [], []
    for point, result in enumerate(results):
        certified, flipped = _certificate_columns(result), _attack_columns(result)
        if len(results) > 1:
            certified = {"point": np.full(len(result.certificates), point), **certified}
            flipped = {"point": np.full(len(flipped["row"]), point), **flipped}
        tables.append(pa.table(certified))
        attacks.append(pa.table(flipped))
    write_parquet(folder / CERTIFICATES, pa.concat_tables(tables, promote_options="default"))
    found = [table for table in attacks if table.num_rows] or attacks[:1]
    write_parquet(folder / ATTACKS, pa.concat_tables(found, promote_options="default"))
    images = {"test": results[0].test_images, "train": results[0].train_images}
    names = [CERTIFICATES, ATTACKS]
    if images["test"]:
        names.append(IMAGES)
        arrays: dict[str, Any] = {f"{kind}_rows": np.array(list(own), np.int64) for kind, own in images.items()}
        arrays |= {kind: np.stack(list(own.values())) for kind, own in images.items() if own}
        with whole_file(folder / IMAGES) as file:
            np.savez_compressed(file, **arrays)
    return names + write_collective_results(folder, results) + write_audit(folder, results[0].audit)


def read_results(path: str | os.PathLike[str]) -> list[Result]:
    """Read the results of a finished run.

    Parameters
    ----------
    path : str or path-like
        Folder of the run.

    Returns
    -------
    list of Result
        One, or one for each point of a sweep.
    """
    from pyarrow import parquet

    folder = Path(path)
    summary = read_summary(folder)
    table = _columns(parquet.ParquetFile(folder / CERTIFICATES).read())
    threat = str(summary.get("threat", FLIPS.name))
    held = parquet.ParquetFile(folder / ATTACKS).read()
    attacks = _columns(held) if threat == FLIPS.name else {"lines": held.to_pylist()}
    images = _read_images(folder / IMAGES)
    ids = read_ids(folder / ATTACKS, folder / COLLECTIVE_ATTACKS)
    points = summary.get("points", [summary])
    together = read_collective_results(folder, len(points)) if "collective" in summary else [None] * len(points)
    return [
        replace(
            _result(summary, point, i, table, attacks, images),
            collective=together[i],
            train_ids=ids,
            audit=read_audit(folder, point[AUDITED]) if AUDITED in point else None,
        )
        for i, point in enumerate(points)
    ]


def _certificate_columns(result: Result) -> dict[str, Any]:
    import pyarrow as pa

    c = result.certificates
    columns: dict[str, Any] = {"row": np.arange(len(c))} | ({} if result.test_ids is None else {ID: result.test_ids})
    for name, values in values_of(c).items():
        has_gaps = columns_of(c)[name].gaps
        columns[name] = pa.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values)) if has_gaps else values
        # What follows from others, or was known before, stands beside what it is compared with.
        if name == "prediction" and result.labels is not None:
            columns["label"] = result.labels
        if name == "radius_upper":
            columns["exact"] = c.exact
            if result.in_flips is not None:
                columns[IN_FLIPS] = result.in_flips
    return columns


def _attack_columns(result: Result) -> dict[str, Any]:
    attacks = result.attacks
    if result.certificates.threat != FLIPS.name:
        return _operation_columns(result)
    empty = result.certificates.prediction[:0]
    return {
        "row": np.concatenate([np.full(a.indices.size, a.row) for a in attacks] or [np.empty(0, np.int64)]),
        "flip": np.concatenate([np.arange(a.indices.size) for a in attacks] or [np.empty(0, np.int64)]),
        "training_row": np.concatenate([a.training_rows for a in attacks] or [np.empty(0, np.int64)]),
        "old_label": np.concatenate([a.old for a in attacks] or [empty]),
        "new_label": np.concatenate([a.new for a in attacks] or [empty]),
        **(
            {"annotation": np.concatenate([a.indices for a in attacks])}
            if attacks and attacks[0].rows is not None
            else {}
        ),
        **(
            {TRAINING_ID: [result.train_ids[row] for attack in attacks for row in attack.training_rows.tolist()]}
            if result.train_ids
            else {}
        ),
    }


def _operation_columns(result: Result) -> dict[str, Any]:
    """Attacks under other threats than flips: a line for every change."""
    return columns_of_lines(
        [
            {"row": attack.row, "flip": step, **with_ids(line, result.train_ids)}
            for attack in result.attacks
            for step, line in enumerate(lines_of(attack))
        ],
        ["row", "flip", "training_row"],
    )


def _columns(table: Any) -> dict[str, NDArray[Any] | np.ma.MaskedArray[Any, Any]]:
    """Columns as arrays; one with missing values is masked."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        if missing.any():
            import pyarrow.compute as pc

            column = pc.fill_null(column, _anything(column))
        values = column.to_numpy(zero_copy_only=False)
        values = values.astype(str) if values.dtype == object else values
        columns[name] = np.ma.masked_array(values, mask=missing) if missing.any() else values
    return columns


def _anything(column: Any) -> Any:
    """A value to stand where one is missing."""
    from pyarrow import types

    if types.is_string(column.type) or types.is_large_string(column.type):
        return ""
    return False if types.is_boolean(column.type) else 0


def _result(
    summary: dict[str, Any],
    point: dict[str, Any],
    number: int,
    table: dict[str, Any],
    attacks: dict[str, Any],
    images: dict[str, dict[int, NDArray[np.uint8]]],
) -> Result:
    own = {name: values[table["point"] == number] for name, values in table.items()} if "point" in table else table
    certificates = Certificates(
        **{name: _column(own, name, column) for name, column in columns_of(Certificates).items()},
        n_labels=int(summary["n_labels"]),
        n_attackable=int(summary["n_attackable"]),
        threat=str(summary.get("threat", FLIPS.name)),
        n_sources=summary.get("n_sources"),
        model=dict(point["settings"]),
        classes=np.array(summary["classes"]) if "classes" in summary else None,
    )
    known = _attacks(attacks, number) if certificates.threat == FLIPS.name else _others(attacks, number, certificates)
    powers = tuple(
        SourcePower(own["source"], int(own["labels"]), int(own["points_changed_alone"]))
        for own in point.get("strongest_sources", ())
    )
    return Result(
        name=point["name"],
        certificates=certificates,
        labels=own.get("label"),
        attacks=tuple(known),
        test_images=images["test"],
        train_images=images["train"],
        digests={part: str(about["sha256"]) for part, about in summary.get("inputs", {}).items()},
        in_flips=own.get(IN_FLIPS),
        test_ids=own.get(ID),
        powers=powers,
        check=RandomCheck.of(summary["check"]) if "check" in summary else None,
        preparation=str(summary["preparation"]["said"]) if "preparation" in summary else None,
    )


def _attacks(attacks: dict[str, Any], number: int) -> list[Attack]:
    """Flips of one model, put together again."""
    mine = attacks["point"] == number if "point" in attacks else np.ones(attacks["row"].size, bool)
    flips = {name: values[mine] for name, values in attacks.items()}
    starts = np.flatnonzero(flips["flip"] == 0)
    known = []
    for start, stop in pairwise([*starts, flips["flip"].size]):
        place = slice(start, stop)
        known.append(
            Attack(
                row=int(flips["row"][start]),
                indices=flips.get("annotation", flips["training_row"])[place],
                rows=flips["training_row"][place] if "annotation" in flips else None,
                old=flips["old_label"][place],
                new=flips["new_label"][place],
            )
        )
    return known


def _others(attacks: dict[str, Any], number: int, certificates: Certificates) -> list[Attack]:
    """The same for attacks under another threat."""
    by_row: dict[int, list[dict[str, Any]]] = {}
    for line in attacks["lines"]:
        if line.get("point", 0) == number:
            by_row.setdefault(line["row"], []).append(line)
    return [attack_of(row, certificates.threat, lines) for row, lines in by_row.items()]


def _column(table: dict[str, Any], name: str, column: Column) -> Any:
    """A column of certificates from the table of one model, which may have none even if others of the sweep have."""
    if column.optional and name not in table:
        return None
    values = table[name]
    missing = np.ma.getmaskarray(values)
    if column.optional and (missing.all() if column.gaps else missing.any()):
        return None
    return np.ma.masked_array(values) if column.gaps else np.ma.getdata(values)


def _read_images(path: Path) -> dict[str, dict[int, NDArray[np.uint8]]]:
    if not path.exists():
        return {"test": {}, "train": {}}
    with np.load(path, allow_pickle=False) as stored:
        return {
            kind: dict(zip(stored[f"{kind}_rows"].tolist(), stored[kind], strict=True)) if kind in stored.files else {}
            for kind in ("test", "train")
        }
