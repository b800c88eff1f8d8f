"""A command as words to paste into a shell, from what its functions were given."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

from flipcert.cli.options import DataOptions

# Arguments that have no option.
_PLACES = ("train", "test")


def command_words(command: Callable[..., Any], given: Mapping[str, Any], data: DataOptions | None = None) -> str:
    """The command that was given, with other options about the data if there are any."""
    words = ["flipcert", command.__name__, *(given[name] for name in _PLACES if given.get(name) is not None)]
    defaults = {name: own.default for name, own in inspect.signature(command).parameters.items()}
    hints = get_type_hints(command, include_extras=True)
    for name, value in given.items():
        if is_dataclass(value):
            words += group_words(data if data is not None and isinstance(value, DataOptions) else value)
        elif name not in _PLACES and value != defaults[name]:
            words += _option(name, hints[name], value)
    return pasted(words)


def pasted(words: Sequence[str]) -> str:
    """Words as a shell takes them; tabs and the like, which a terminal would not show as they are, by their escapes."""
    return " ".join(shlex.quote(word) if word.isprintable() else _escaped(word) for word in words)


def _escaped(word: str) -> str:
    """A word in the quotes of bash and zsh that know escapes."""
    shown = (letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in word.replace("\\", r"\\"))
    return "$'" + "".join(shown).replace("'", r"\'") + "'"


def group_words(group: Any) -> list[str]:
    """The options of a group that are not as they are if nobody gives them."""
    hints = get_type_hints(type(group), include_extras=True)
    words = []
    for own in fields(group):
        value = getattr(group, own.name)
        if value != own.default:
            words += _option(own.name, hints[own.name], value)
    return words


def _option(name: str, hint: Any, value: Any) -> list[str]:
    """An option with its value, as often as it has values."""
    told = [text for about in getattr(hint, "__metadata__", ()) for text in getattr(about, "param_decls", None) or ()]
    option = next((text for text in told if text.startswith("--")), f"--{name.replace('_', '-')}")
    words: list[str] = []
    for own in value if isinstance(value, list) else [value]:
        text = str(own)
        words += [option] if own is True else [f"{option}={text}"] if text.startswith("-") else [option, text]
    return words
