"""A figure of the evaluation, as its file declares it: what is certified, how it is drawn, what the paper says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

_DECLARED = Path(__file__).parent / "declared"
FORMS = ("medians", "trends", "curves", "times", "small-c")
_SETTINGS = ("data", "model", "scale", "partitions")
# Settings that most cells do not have.
_SELDOM = ("seed", "points")


@dataclass(frozen=True)
class Cell:
    """One test set to certify with one model.

    Attributes
    ----------
    data : str
        Name of the data.
    model : str
        Name of the model, as on the command line.
    partitions : int
        Number of partitions; 1 is one model on everything.
    scale : str
        How features are scaled.
    seed : int or None
        Seed of a random partition; None for rows dealt out in their order.
    points : int or None
        How many of the first test points are certified; None for all.
    options : tuple of pairs
        Options of the model and its kernel, sorted by name.
    published : bool
        Whether the paper's own bounds are taken as well.
    timed : bool
        Whether the parts of the work are timed one by one as well.
    """

    data: str
    model: str
    partitions: int = 1
    scale: str = "none"
    options: tuple[tuple[str, Any], ...] = ()
    published: bool = False
    timed: bool = False
    seed: int | None = None
    points: int | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides the certificates, as plain values."""
        seldom = {name: getattr(self, name) for name in _SELDOM if getattr(self, name) is not None}
        return {name: getattr(self, name) for name in _SETTINGS} | seldom | dict(self.options)

    def __getitem__(self, name: str) -> Any:
        """A setting or an option by name; None for an option that is not given."""
        return getattr(self, name) if name in (*_SETTINGS, *_SELDOM) else dict(self.options).get(name)


@dataclass(frozen=True)
class Claim:
    """Something that the paper says of a figure, and the rule that it is judged by.

    Attributes
    ----------
    words : str
        The paper's own words.
    where : str
        Where they stand.
    rule : str
        Name of the rule (``rules/``).
    thresholds : mapping
        What the rule counts as what.
    only : mapping
        Settings of the instances that it is about; empty for all.
    """

    words: str
    where: str
    rule: str
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    only: Mapping[str, Any] = field(default_factory=dict)

    def is_about(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of the table is one that the claim is about."""
        return all(row.get(name) == value for name, value in self.only.items())


@dataclass(frozen=True)
class Figure:
    """A figure of the evaluation.

    Attributes
    ----------
    name : str
        What it is called on the command line.
    title : str
        What it shows.
    paper : str
        Where the paper shows it, or that it does not.
    form : str
        How it is drawn: one of ``FORMS``.
    claims : tuple of Claim
        What the paper says of it.
    why : str
        Why our numbers are not the paper's, where they are not.
    hidden : str
        What the picture does not show, beyond what settings tell.
    afterwards : tuple of mapping
        Settings of instances that were chosen after the paper's own had been seen.
    panels : tuple of str
        Settings with a panel of its own for each value; the others tell the lines of a panel apart.
    certify : tuple of mapping
        What is certified; a list of values stands for one test set each.
    study : mapping
        What another kind of study than certifying needs.
    """

    name: str
    title: str
    paper: str
    form: str
    claims: tuple[Claim, ...] = ()
    why: str = ""
    hidden: str = ""
    afterwards: tuple[Mapping[str, Any], ...] = ()
    panels: tuple[str, ...] = ()
    certify: tuple[Mapping[str, Any], ...] = ()
    study: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All test sets of the figure, in the order of the file."""
        return tuple(dict.fromkeys(cell for block in self.certify for cell in _cells_of(block)))

    def is_chosen_afterwards(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Whether all rows are of instances that were chosen afterwards."""
        return all(
            any(all(row.get(name) == value for name, value in chosen.items()) for chosen in self.afterwards)
            for row in rows
        )

    @property
    def number(self) -> str | None:
        """Its number in the paper, such as "2 (a)"."""
        found = re.match(r"Figure (\d+(?: \(\w\))?)", self.paper)
        return found.group(1) if found else None

    @property
    def data(self) -> tuple[str, ...]:
        """Names of the data it needs."""
        own = [cell.data for cell in self.cells] or [self.study["data"]]
        return tuple(dict.fromkeys(own))


def names() -> list[str]:
    """Names of all figures.

    >>> names()[:2]
    ['figure-1b', 'figure-2a']
    """
    return sorted(entry.name.removesuffix(".toml") for entry in _DECLARED.iterdir() if entry.name.endswith(".toml"))


def load(name: str) -> Figure:
    """Read the file of a figure."""
    if name not in names():
        raise ValueError(f"there is no figure {name!r}; `python -m paper --list` shows all.")
    return parse(name, (_DECLARED / f"{name}.toml").read_text(encoding="utf-8"))


def all_figures() -> list[Figure]:
    """All figures, in the order of the paper; what is not in it comes last."""
    return sorted((load(name) for name in names()), key=_place)


def _place(figure: Figure) -> tuple[int, str]:
    return (int(figure.number.split()[0]) if figure.number else 10**6, figure.name)


def quick(figure: Figure, n_train: int) -> Figure:
    """A small version of a figure for so many training samples: the first, middle and last of long lists of values."""
    blocks = [dict(block) for block in figure.certify]
    for block in blocks:
        if isinstance(block.get("partitions"), list):
            block["partitions"] = _spread(sorted({min(n, n_train // 15) for n in block["partitions"]}))
        if isinstance(block.get("reg"), list):
            block["reg"] = _spread(block["reg"])
        if isinstance(block.get("seed"), list):
            block["seed"] = block["seed"][:2]
    study = dict(figure.study)
    if study:
        study |= {"times_threshold": _spread(study["times_threshold"], 5)}
        study |= {"sizes": study["sizes"][:2], "seeds": 2} if "sizes" in study else {"folds": 2, "partitions": [10, 50]}
    return replace(figure, certify=tuple(blocks), study=study)


def _spread(values: list[Any], most: int = 3) -> list[Any]:
    """At most so many of the values, evenly spread over the list, its ends included."""
    if len(values) <= most:
        return values
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]


def parse(name: str, text: str) -> Figure:
    """Make a figure of the text of its file."""
    declared = tomllib.loads(text)
    declared["panels"] = tuple(declared.get("panels", ()))
    declared["claims"] = tuple(_claim(stated) for stated in declared.get("claims", ()))
    declared["afterwards"] = tuple(declared.get("afterwards", ()))
    declared["certify"] = tuple(declared.get("certify", ()))
    figure = Figure(name=name, **declared)
    if figure.form not in FORMS:
        raise ValueError(f"form of {name} must be one of {', '.join(FORMS)}; got {figure.form!r}.")
    return figure


def _claim(stated: Mapping[str, Any]) -> Claim:
    """A claim; all that is not its own is a threshold."""
    own = {name: value for name, value in stated.items() if name in ("words", "where", "rule", "only")}
    return Claim(**own, thresholds={name: value for name, value in stated.items() if name not in own})


def _cells_of(block: Mapping[str, Any]) -> Iterator[Cell]:
    """One cell for each combination of values, the first setting of the file varying slowest."""
    several = {name: value if isinstance(value, list) else [value] for name, value in block.items()}
    flags = {name: several.pop(name)[0] for name in ("published", "timed") if name in several}
    for values in product(*several.values()):
        given = dict(zip(several, values, strict=True))
        settings = {name: given.pop(name) for name in (*_SETTINGS, *_SELDOM) if name in given}
        yield Cell(**settings, options=tuple(sorted(given.items())), **flags)
