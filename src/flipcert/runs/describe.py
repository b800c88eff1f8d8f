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
from flipcert.audit.record import RandomCheck
from flipcert.report.check_words import n_proven
from flipcert.report.key_figures import summarise
from flipcert.report.result import Result
from flipcert.results.collective_certificate import CollectiveCertificate
from flipcert.runs.job import Job
from flipcert.runs.stored_audit import AUDITED, describe_audit

# What one attack on all points does, in a summary; the budgets alone are a setting.
COLLECTIVELY = "collective_certificate"
# What a random check proves about predictions; the check itself is a setting.
BY_CHECK = "same_as_with_right_labels"


def describe_run(
    job: Job, inputs: Mapping[str, str], data: Mapping[str, Any], memory: int, check: RandomCheck | None = None
) -> dict[str, Any]:
    """All that decides the results of a run; two runs that agree in this end with the same bytes."""
    points = [settings.identity() for settings in job.settings]
    return {
        "inputs": {
            name: {"sha256": inputs[name], "rows": table.X.shape[0], "features": table.X.shape[1]}
            for name, table in (("train", job.train), ("test", job.test))
        }
        | {name: {"sha256": inputs[name]} for name in ("annotations", "checked") if name in inputs},
        "data": dict(data),
        "threat": job.threat,
        "models": points,
        "exact": job.exact,
        "time_limit": job.time_limit if job.exact or job.collective else None,
        "attacks": job.n_attacks,
        "image_shape": None if job.image_shape is None else list(job.image_shape),
        "memory": memory,
        "versions": versions(),
        # Runs from before there were collective certificates, and those without, name none.
        **({"collective": sorted(job.collective)} if job.collective else {}),
        **({} if job.audit is None else {"audit": job.audit.identity()}),
        **({} if check is None else {"check": check.described()}),
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
    if result.preparation is not None:
        described["features"] = result.preparation
    described["metrics"] = summarise(result)
    if result.powers:
        described["strongest_sources"] = [
            {"source": own.source, "labels": own.n_labels, "points_changed_alone": own.n_changed}
            for own in result.powers
        ]
    if result.collective is not None:
        described[COLLECTIVELY] = describe_collective(result.collective.certificate)
    if result.audit is not None:
        described[AUDITED] = describe_audit(result.audit)
    if result.check is not None:
        described[BY_CHECK] = {"predictions": n_proven(result), "share": n_proven(result) / len(result.certificates)}
    if result.seconds is not None:
        described["seconds"] = round(result.seconds, 3)
    return described


def describe_collective(certificate: CollectiveCertificate) -> dict[str, Any]:
    """What one attack on all points does."""
    c = certificate
    accuracy = "certified_accuracy" if c.counts_correct else "share_certified"
    return {
        "counted": c.n_counted,
        "why_one_by_one": c.why_one_by_one,
        "budgets": [
            {
                c.threat: int(budget),
                "changed_at_most": int(c.changed_at_most[k]),
                "changed_at_least": int(c.changed_at_least[k]),
                "changed_one_by_one": int(c.changed_one_by_one[k]),
                accuracy: float(c.certified_accuracy[k]),
                f"{accuracy}_one_by_one": float(c.certified_one_by_one[k]),
            }
            for k, budget in enumerate(c.flips)
        ],
    }
