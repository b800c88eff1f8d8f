"""What the library says about its arguments, in the words of the shell: ``n_partitions=50`` is ``--partitions 50``."""

from __future__ import annotations

import re
from dataclasses import fields
from types import TracebackType

from flipcert.cli.options import ModelOptions, Point

# What arguments of the library are called in the shell.
_OPTIONS = {field.name: f"--{field.name.replace('_', '-')}" for field in fields(ModelOptions) + fields(Point)} | {
    "classes": "--classes",
    "flips": "--flips",
    "image_shape": "--image-shape",
    "n_jobs": "--jobs",
    "n_labels": "--labels",
    "n_neighbors": "--neighbors",
    "n_partitions": "--partitions",
    "partition": "--partition-rule",
    "random_state": "--seed",
    "source": "--source",
    "threat": "--threat",
    "time_limit": "--time-limit",
    "trusted": "--trusted",
    "weights": "--neighbor-weights",
}
# Packages that speak to the shell anyway, and whose messages hold names of files and columns.
_SPEAK_TO_THE_SHELL = ("flipcert.cli", "flipcert.datasets", "flipcert.runs", "flipcert.report", "flipcert.verify")

_NAMES = "|".join(sorted(_OPTIONS, key=len, reverse=True))
_LONG = "|".join(name for name in _OPTIONS if "_" in name)
# Where a name may begin and end, so that it is no part of a path, a quotation or another name.
_BEGIN, _END = r"(?<![\w./'\"\\-])", r"(?![\w/'\"\\=]|\.\w)"
_VALUE = r"\"[^\"]*\"|'[^']*'|\([^)]*\)|\[[^\]]*\]|[^\s;,)]*[^\s;,).:]"

# What Python has and the shell has not, before names are replaced.
_PHRASES = (
    (r"use C=\"auto\" or a smaller C\b", "leave --C out, or take a smaller one"),
    (r"\bC_max_=", ""),
    (r"\bpooling=None\b", "no --pooling"),
    (r", or None for all(?: of them)?\b", ""),
    (r"\bmust be None or\b", "must be left out, or"),
    (r" or None(?=;)", ""),
    (r"\buse PartitionEnsemble\b", "use --partitions"),
    (r", \"distance\" or a kernel object\b", ' or "distance"'),
    (r"\bread from y\b", "read from the labels"),
    (r"\bmax_norm=\.\.\.", "--max-norm"),
    (r"\bpass one id a label to fit\(X, y, source=\.\.\.\)", "name their column with --source"),
    (
        r"\by must hold one label for each row of X; got Annotations, but (?=\w+ is fitted)",
        "--annotations gives rows several labels, but ",
    ),
    (r"\bX must hold\b", "the features must hold"),
    (r"\bX has rows of\b", "the features have rows of"),
)


def in_shell_words(text: str) -> str:
    """A message of the library, with options for its arguments.

    >>> in_shell_words("partition 3 of n_partitions=50 would be empty; use fewer partitions.")
    'partition 3 of --partitions 50 would be empty; use fewer partitions.'
    >>> in_shell_words("reg=1e+300 is too large beside the kernel; take a smaller reg, or rescale the features.")
    '--reg 1e+300 is too large beside the kernel; take a smaller --reg, or rescale the features.'
    """
    for phrase, words in _PHRASES:
        text = re.sub(phrase, words, text)
    text = re.sub(rf"{_BEGIN}({_NAMES})=({_VALUE})", lambda found: f"{_option(found)} {_bare(found[2])}", text)
    # Short names are words as well: they are arguments where something must hold for them, or is to be done with them.
    text = re.sub(
        rf"(^|: )({_NAMES})(?:, if not \S+,)? (?=must )", lambda found: f"{found[1]}{_option(found, 2)} ", text
    )
    text = re.sub(rf"{_BEGIN}({_LONG}){_END}", _option, text)
    return re.sub(
        r"\b(smaller|larger|raise|lower|with|or) (reg|gamma|C|clip|alpha)\b(?=[ ,.;]|$)",
        lambda found: f"{found[1]} {_option(found, 2)}",
        text,
    )


def is_of_the_library(error: BaseException) -> bool:
    """Whether a message was written for Python, and not for the shell: by where it comes from."""
    names = [name for name in _modules(error.__traceback__) if name.startswith("flipcert.")]
    return bool(names) and not names[-1].startswith(_SPEAK_TO_THE_SHELL)


def _modules(traceback: TracebackType | None) -> list[str]:
    names = []
    while traceback is not None:
        names.append(str(traceback.tb_frame.f_globals.get("__name__", "")))
        traceback = traceback.tb_next
    return names


def _option(found: re.Match[str], group: int = 1) -> str:
    return _OPTIONS[found[group]]


def _bare(value: str) -> str:
    """A value as the shell takes it: without quotes, and lists with commas."""
    if value[0] in "([":
        return value[1:-1].replace(" ", "").rstrip(",")
    return value.strip("\"'")
