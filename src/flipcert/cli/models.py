"""Options about models, as they were typed, become settings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from flipcert.cli.options import DataOptions, Grid, ModelOptions, Point, Proof
from flipcert.ensemble.partition import RULES
from flipcert.labels.validation import check_number
from flipcert.runs.settings import Settings


def _check_votes(model: ModelOptions, partitions: list[int]) -> None:
    """Raise ValueError if options about votes were given where nobody votes."""
    if max(partitions) > 1 or model.partition_rule not in RULES:
        return
    for name, usual in (("vote", "majority"), ("copies", 1), ("partition_rule", "sorted")):
        if (given := getattr(model, name)) != usual:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"{option} {given} is about partitions that vote, but --partitions is 1; give more partitions, or "
                f"leave {option} out."
            )


def settings_of(model: ModelOptions, point: Point, data: DataOptions, proof: Proof) -> Settings:
    """The model that was asked for, and how it is fitted."""
    _check_votes(model, [point.partitions])
    return _settings(model, point, data, proof)


def settings_of_grid(model: ModelOptions, grid: Grid, data: DataOptions, proof: Proof) -> list[Settings]:
    """All models that are to be compared."""
    partitions = _numbers(grid.partitions, "--partitions", int)
    _check_votes(model, partitions)
    regs = [None] if grid.reg is None else _numbers(grid.reg, "--reg", float)
    return [_settings(model, Point(n, reg), data, proof) for reg in regs for n in partitions]


def _settings(model: ModelOptions, point: Point, data: DataOptions, proof: Proof) -> Settings:
    check_number(proof.time_limit, "--time-limit")
    given = asdict(model) | {"reg": point.reg}
    whole = {name: given.pop(name) for name in ("model", "scale", "partition_rule", "seed", "vote", "copies")}
    options = {name: value for name, value in given.items() if value is not None}
    if options.get("kernel") == "conv-ntk":
        options["image_shape"] = image_shape(data)
    if "hidden" in options:
        options["hidden"] = tuple(_numbers(options["hidden"], "--hidden", int, distinct=False))
    return Settings(options=options, partitions=point.partitions, time_limit=proof.time_limit, **whole)


def _numbers(text: str, name: str, kind: type, distinct: bool = True) -> list[Any]:
    """A list such as 1,10,50."""
    try:
        values = [kind(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{name} must be numbers with commas between them, such as 1,10; got {text!r}.") from None
    if distinct and len(set(values)) < len(values):
        raise ValueError(f"{name} names a number twice; got {text!r}.")
    return values


def image_shape(data: DataOptions) -> tuple[int, ...] | None:
    """Shape of a row as (channels, height, width), if rows are images."""
    if data.image_shape is None:
        return None
    try:
        shape = tuple(int(part) for part in data.image_shape.replace("x", ",").split(","))
    except ValueError:
        shape = ()
    if len(shape) not in (2, 3) or min(shape, default=0) < 1:
        raise ValueError(f"--image-shape must be numbers such as 28,28 or 3,32,32; got {data.image_shape!r}.")
    return shape if len(shape) == 3 else (1, *shape)
