"""What a picture does not show of its instances: features, scaling, kernel, regularisation, partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import flipcert
from flipcert.kernels import NTK, ConvNTK
from paper.figures.figure import Figure
from paper.figures.measures import MARK, NEAR, is_near
from paper.figures.table import Row
from paper.figures.words import in_words

# From what factor on it is told that a curve lies beside its band.
_APART = 1.01
_SCALES = {
    "none": "as given",
    "centre": "with the mean of the training set taken off (centred)",
    "standard": "with mean 0 and deviation 1 in each column (standardised)",
    "unit": "with every row divided by its length",
}


def caption(figure: Figure, rows: Sequence[Row]) -> str:
    """All that holds of the whole figure, in sentences."""
    parts = [
        _scaling(rows),
        *_models(rows),
        _regularisation(rows),
        _partitions(rows),
        _near(rows),
        figure.hidden,
    ]
    return " ".join(part for part in parts if part)


def _values(rows: Sequence[Row], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows if row.get(name) is not None))


def _list(words: Sequence[str]) -> str:
    return " or ".join(words)


def _scaling(rows: Sequence[Row]) -> str:
    features = {row["data"]: row["features"] for row in rows if row.get("features")}
    lead = "; ".join(f"{in_words('data', data)}: {in_words('features', what)}" for data, what in features.items())
    scales = _list([_SCALES[scale] for scale in _values(rows, "scale")])
    return f"{lead}. Scaling, which sees no label: {scales}." if lead else f"Features {scales}."


def _models(rows: Sequence[Row]) -> list[str]:
    found = []
    kernels = [row for row in rows if row.get("model") in ("svm", "ridge")]
    if any(row.get("kernel") == "conv-ntk" for row in kernels):
        size, shown = _default(ConvNTK, "filter_size"), _list([in_words("", a) for a in _values(kernels, "activation")])
        found.append(
            f"Kernel: NTK of an infinitely wide network of one convolution ({size} x {size}, stride 1, zero padding "
            f"that keeps the size, activation {shown}) and a dense read-out from all positions, without biases or "
            "pooling; the paper tells neither filter nor padding nor activation."
        )
    if any(row.get("kernel") != "conv-ntk" for row in kernels):
        depth = _default(NTK, "depth")
        found.append(f"Kernel: NTK of an infinitely wide linear network of {depth} hidden layer, without biases.")
    if "network" in _values(rows, "model"):
        given = flipcert.BoundedNetwork().get_params()
        found.append(
            f"Gradient bounding: one linear layer, so that width plays no part; {given['epochs']} steps of full-batch "
            f"descent on the cross-entropy, learning rate {given['learning_rate']:g}."
        )
    if "smoothed" in _values(rows, "model"):
        found.append(
            "Smoothed regression: labels flipped with probability q each, whose effect is computed, not sampled."
        )
    return found


def _default(kind: Any, name: str) -> Any:
    import inspect

    return inspect.signature(kind).parameters[name].default


def _regularisation(rows: Sequence[Row]) -> str:
    told: dict[str, None] = {}
    regs = [row for row in rows if row.get("reg") is not None]
    for row in regs:
        names = [name for name in ("data", "scale", "activation") if len({other.get(name) for other in regs}) > 1]
        which = ", ".join(in_words(name, row[name]) for name in names if row.get(name) is not None)
        beside = "" if row.get("reg_over_diag") is None else f" is {row['reg_over_diag']:.2g} of the mean of diag Q"
        told[f"{row['reg']:g}{beside}{f' ({which})' if which and beside else ''}"] = None
    return f"Regularisation: {', '.join(told)}." if told else ""


def _partitions(rows: Sequence[Row]) -> str:
    if all(row.get("partitions", 1) == 1 for row in rows):
        return ""
    seeds, points = _values(rows, "seed"), _values(rows, "points")
    if "times_threshold" in rows[0] or not seeds:
        return "Partitions: rows in lexicographic order, dealt out in turns."
    some = f", on the first {points[0]:,} test points" if points else ""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        if row.get("seed") is not None:
            groups.setdefault(_but_for_the_seed(row), []).append(row["median"])
    widest = max(max(own) / max(min(own), 1) for own in groups.values())
    return (
        "Partitions: rows in lexicographic order, dealt out in turns; the band is what "
        f"{len(seeds)} random partitions give, from least to most{some}: a factor of {widest:.2f} at most at one N"
        f"{_beside_the_band(rows, groups)}."
    )


def _but_for_the_seed(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("data", "model", "scale", "activation", "reg", "partitions", "points"))


def _beside_the_band(rows: Sequence[Row], groups: Mapping[tuple[Any, ...], Sequence[int]]) -> str:
    """How far rows that are dealt out lie above or below random ones, where both are about the same points."""
    dealt = {_but_for_the_seed(row): row for row in rows if row.get("seed") is None}
    both = dealt.keys() & groups.keys()
    if not both:
        return ""
    over = {key: dealt[key]["median"] / max(*groups[key], 1) for key in both}
    under = {key: dealt[key]["median"] / max(min(groups[key]), 1) for key in both}
    told = ""
    most, least = max(over, key=lambda key: over[key]), min(under, key=lambda key: under[key])
    if over[most] >= _APART:
        told += f"; rows dealt out have up to {over[most]:.2f} times the most of these (N = {most[5]:,})"
    if under[least] <= 1 / _APART:
        told += f"; rows dealt out have as little as {under[least]:.2f} times the least of these (N = {least[5]:,})"
    return told


def _near(rows: Sequence[Row]) -> str:
    if not any("most_frequent" in row and is_near(row) for row in rows):
        return ""
    return (
        f"{MARK} Near one class: less than {NEAR:.0%} of the way from the accuracy of always naming the most frequent "
        "class to 1; what is certified there is little more than that constant."
    )
