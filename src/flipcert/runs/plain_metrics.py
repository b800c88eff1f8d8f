"""Metrics of a model once more, counted in plain Python from the lines of a run's tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flipcert.report.result import Result
from flipcert.report.worth import one_answer, what_it_means
from flipcert.results.certificates import Certificates

_BUDGETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


def metrics_of(
    lines: Sequence[Mapping[str, Any]],
    n_labels: int,
    n_attackable: int,
    threat: str = "flips",
    n_sources: int | None = None,
) -> dict[str, Any]:
    """What the summary of a run must say of a model with these lines, one a test point."""
    # Of how many units an attack is a share, and how large the largest is.
    total = n_sources if n_sources is not None else n_labels if threat in ("insertions", "edits") else n_attackable
    largest_attack = 0 if n_attackable == 0 and threat not in ("insertions", "edits") else total
    n_points, labelled = len(lines), "label" in lines[0]
    right = [line for line in lines if not labelled or line["prediction"] == line["label"]]
    name = "certified_accuracy" if labelled else "share_certified"

    def median(column: str, half: int) -> int:
        radii = sorted((line[column] for line in right), reverse=True)
        return radii[half - 1] if 0 < half <= len(radii) else 0

    def share(flips: int) -> float:
        return sum(line["radius"] >= flips for line in right) / n_points

    largest = max(line["radius"] for line in lines)
    to_one_percent = [share(flips) for flips in range(min(max(1, total // 100), largest_attack) + 1)]
    first_beyond = next((flips for flips in _BUDGETS if flips >= largest), largest)
    metrics = {
        "test_points": n_points,
        "training_labels": n_labels,
        "attackable_labels": n_attackable,
        "median_radius": median("radius", (len(right) + 1) // 2),
        "median_radius_upper": median("radius_upper", (len(right) + 1) // 2),
        "largest_radius": largest,
        "share_exact": sum(line["radius"] == line["radius_upper"] for line in lines) / n_points,
        "share_rounding_sensitive": sum(bool(line["rounding_sensitive"]) for line in lines) / n_points,
        f"{name}_at_1_percent": to_one_percent[-1],
        f"mean_{name}_to_1_percent": sum(to_one_percent) / len(to_one_percent),
    }
    metrics |= {f"{name} {flips}": share(flips) for flips in _BUDGETS if flips <= min(first_beyond, largest_attack)}
    if threat != "flips":
        metrics["threat"] = threat
    if n_sources is not None:
        metrics["sources"] = n_sources
        if all(type(line.get("radius_in_flips")) is int for line in lines):
            metrics["median_radius_in_flips"] = median("radius_in_flips", (len(right) + 1) // 2)
    if labelled:
        metrics["accuracy"] = len(right) / n_points
        metrics["median_radius_over_all"] = median("radius", (n_points + 1) // 2)
    if all(type(line.get("blackbox_radius")) is int for line in lines):
        metrics["median_blackbox_radius"] = median("blackbox_radius", (len(right) + 1) // 2)
    if _tells_nothing(lines, len(right)):
        metrics["warning"] = _warning(lines, n_labels)
    return metrics


def flattened(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics of a summary, each with a name of its own: ``certified_accuracy 10`` is that at 10 flips."""
    flat: dict[str, Any] = {}
    for name, value in metrics.items():
        flat |= {f"{name} {own}": inner for own, inner in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _tells_nothing(lines: Sequence[Mapping[str, Any]], n_right: int) -> bool:
    """Whether one answer for all, of five points or more, would be as good as these predictions."""
    constant = len({line["prediction"] for line in lines}) == 1
    if "label" not in lines[0] or len(lines) < 5:
        return constant and len(lines) >= 5
    counts = Counter(line["label"] for line in lines)
    return len(counts) > 1 and (constant or n_right <= max(counts.values()))


def _warning(lines: Sequence[Mapping[str, Any]], n_labels: int) -> str:
    """That one answer for all would be as good, in the words of the run."""
    prediction, radius = (np.array([line[name] for line in lines]) for name in ("prediction", "radius"))
    certificates = Certificates(
        prediction, radius, radius, None, prediction, np.ma.masked_array(prediction), radius < 0, n_labels
    )
    result = Result("", certificates, np.array([line["label"] for line in lines]) if "label" in lines[0] else None)
    return f"{one_answer(result)}. {what_it_means(result)}"
