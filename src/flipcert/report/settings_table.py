"""What was run, at the end of the page: settings that all results share, versions, and those that differ."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import flipcert
from flipcert.labels.threats import FLIPS
from flipcert.report.pictures import Album
from flipcert.report.result import Result
from flipcert.report.words import Exposure, outside, setting

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def settings_of(results: Sequence[Result], album: Album) -> dict[str, Any]:
    """Settings that all results share, versions, and a table of the settings that differ."""
    only_flips = all(result.certificates.threat == FLIPS.name for result in results)
    rows = [
        {
            "model": result.model,
            "partitions": result.n_partitions,
            **result.settings,
            "features": result.preparation,
            "training labels": f"{result.certificates.n_labels:,}",
            **_exposed(Exposure.of(result.certificates), only_flips),
            "test points": f"{len(result.certificates):,}",
            "seconds": None if result.seconds is None else f"{result.seconds:,.1f}",
            **_files(result, results),
        }
        for result in results
    ]
    keys = list(dict.fromkeys(key for row in rows for key in row if row[key] not in (None, "")))
    shared = [key for key in keys if len({str(row.get(key, "")) for row in rows}) == 1]
    differing = [key for key in keys if key not in shared]
    table = [(outside(key), outside(setting(rows[0][key]))) for key in shared]
    if album.left_out:
        table.append(("pictures", f"{album.left_out:,} left out to keep the page small"))
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    table.append(
        ("page made with", f"flipcert {flipcert.__version__}, Python {platform.python_version()}, {libraries}")
    )
    named = [(result.name or f"result {i + 1}", row) for i, (result, row) in enumerate(zip(results, rows, strict=True))]
    varied = {
        "names": [outside(key) for key in differing],
        "rows": [
            (name, ["" if row.get(key) is None else outside(setting(row[key])) for key in differing])
            for name, row in named
        ],
    }
    return {"settings": table, "varied": varied if differing else None}


def _files(result: Result, results: Sequence[Result]) -> dict[str, str]:
    """What the data are known by, where they are not the same for all results."""
    return {
        f"SHA-256 of the {name} data": f"{result.digests[part][:12]}…"
        for part, name in (("train", "training"), ("test", "test"))
        if part in result.digests and len({other.digests.get(part) for other in results}) > 1
    }


def _exposed(exposure: Exposure, only_flips: bool) -> dict[str, str]:
    """What can be attacked: the threat, unless there are ``only_flips`` on the page, sources, and what is trusted."""
    told = {} if only_flips else {"threat": exposure.threat}
    if exposure.n_sources is not None:
        told["sources of labels"] = f"{exposure.n_sources:,}"
    if exposure.n_trusted:
        what = "rows" if exposure.unit.thing == "row" else "labels"
        told[f"trusted {what}"] = f"{exposure.n_trusted:,}"
        if exposure.unit.bounded:
            told[f"{what} that can be {exposure.unit.can}"] = f"{exposure.n_attackable:,}"
    return told
