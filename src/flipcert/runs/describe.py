"""A run in plain values: what decides its results, and what came of it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
import scipy
import sklearn

import flipcert
from flipcert.report.key_figures import summarise
from flipcert.report.result import Result
from flipcert.runs.job import Job


def describe_run(job: Job, inputs: Mapping[str, str], data: Mapping[str, Any], memory: int) -> dict[str, Any]:
    """All that decides the results of a run; two runs that agree in this end with the same bytes."""
    points = [settings.identity() for settings in job.settings]
    return {
        "inputs": {
            name: {"sha256": inputs[name], "rows": table.X.shape[0], "features": table.X.shape[1]}
            for name, table in (("train", job.train), ("test", job.test))
        }
        | ({"annotations": {"sha256": inputs["annotations"]}} if "annotations" in inputs else {}),
        "data": dict(data),
        "threat": job.threat,
        "models": points,
        "exact": job.exact,
        "time_limit": job.time_limit if job.exact else None,
        "attacks": job.n_attacks,
        "image_shape": None if job.image_shape is None else list(job.image_shape),
        "memory": memory,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of what computes."""
    return {
        "flipcert": flipcert.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "numba": numba.__version__,
    }


def describe_point(result: Result) -> dict[str, Any]:
    """One model and what was certified for it."""
    settings = {"partitions": 1, **result.certificates.model}
    described: dict[str, Any] = {"name": result.name, "threat": result.certificates.threat, "settings": settings}
    described["metrics"] = summarise(result)
    if result.powers:
        described["strongest_sources"] = [
            {"source": own.source, "labels": own.n_labels, "points_changed_alone": own.n_changed}
            for own in result.powers
        ]
    if result.seconds is not None:
        described["seconds"] = round(result.seconds, 3)
    return described
