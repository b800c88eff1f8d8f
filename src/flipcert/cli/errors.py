"""What the command line says when something is wrong: one sentence, and an exit code that tells what kind it is."""

from __future__ import annotations

import errno
import functools
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer

from flipcert.cli.command_words import command_words
from flipcert.cli.console import notes
from flipcert.cli.options import Proof
from flipcert.cli.shell_words import in_shell_words, is_of_the_library

WRONG_INPUT, INTERNAL, INTERRUPTED = 2, 70, 130

Function = TypeVar("Function", bound=Callable[..., Any])


def in_words(command: Function) -> Function:
    """Let a command end with one sentence and exit code 2 whatever is wrong with its input."""

    @functools.wraps(command)
    def told(*arguments: Any, **options: Any) -> Any:
        try:
            with _warnings_as_notes():
                return command(*arguments, **options)
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            notes.print("\nInterrupted. Nothing was begun yet.")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever read our output has had enough of it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
            if os.environ.get("FLIPCERT_DEBUG"):
                raise
            has_memory = any(isinstance(group, Proof) for group in (*arguments, *options.values()))
            notes.print(f"[bold red]Error:[/] {_escaped(_sentence(error, has_memory))}", soft_wrap=True)
            _tell_all(error, command, options)
            raise typer.Exit(WRONG_INPUT) from None
        except Exception as error:
            if os.environ.get("FLIPCERT_DEBUG"):
                raise
            notes.print(
                f"[bold red]Error:[/] flipcert failed ({_escaped(repr(error))}); this is a bug, please report it "
                "with what FLIPCERT_DEBUG=1 shows.",
                soft_wrap=True,
            )
            raise typer.Exit(INTERNAL) from None

    return told  # type: ignore[return-value]


def _tell_all(error: BaseException, command: Callable[..., Any], given: dict[str, Any]) -> None:
    """Say all that is wrong with the data of a command, and the command that would work, if that is known."""
    advice, mended = getattr(error, "advice", None), getattr(error, "mended", None)
    if advice is None:
        return

    from flipcert.report.words import outside

    said = str(error).rstrip(".")
    obstacles = [] if advice.obstacles == [said] else advice.obstacles
    for heading, told in (("All that stands in the way:", obstacles), ("Worth a look:", advice.notes)):
        for number, sentence in enumerate(told):
            if number == 0:
                notes.print(heading)
            notes.print(f"- {outside(sentence)}.", soft_wrap=True, markup=False)
    proof = next((group for group in given.values() if isinstance(group, Proof)), None)
    if mended is not None and proof is not None and (mended.encode or mended.impute) and _changes_rows(proof.threat):
        notes.print(
            f"--encode and --impute go by all training rows, and --threat {proof.threat} changes these: prepare both "
            "files beforehand, by rows that you trust.",
            soft_wrap=True,
        )
    elif mended is not None and proof is not None and proof.threat == "sources" and mended.source is None:
        notes.print("--threat sources needs --source, a column that says who gave each label.")
    elif mended is not None:
        notes.print("This would work:")
        notes.print(command_words(command, given, mended), soft_wrap=True, markup=False)


def _changes_rows(threat: str) -> bool:
    from flipcert.labels.threats import THREATS

    return threat in THREATS and THREATS[threat].changes_rows


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Let warnings be sentences, without the place in the code that they come from."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        notes.print(f"Note: {_escaped(in_shell_words(' '.join(str(message).split())))}", soft_wrap=True)

    before = warnings.showwarning
    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


@contextmanager
def stopping_at_once(message: str) -> Iterator[None]:
    """Let Ctrl-C end the process at once, with a message, as long as the block lasts.

    Compiled code and solvers cannot be interrupted and threads would be waited for. Nothing is lost by not waiting:
    files appear whole or not at all.
    """

    def stop(*_: object) -> None:
        notes.show_cursor(True)
        notes.print(f"\nInterrupted. {message}", soft_wrap=True)
        sys.stderr.flush()
        os._exit(INTERRUPTED)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears of it
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _sentence(error: BaseException, has_memory: bool) -> str:
    """The first paragraph of a message, as a sentence."""
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        advice = "; make room there, or choose another place" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return f"{place}{error.strerror.lower()}{advice}."
    text = " ".join(str(error).strip().split("\n\n")[0].split()) or type(error).__name__
    if is_of_the_library(error):
        text = in_shell_words(text)
    if isinstance(error, MemoryError):
        advice = "use more --partitions or a smaller --memory" if has_memory else "free some, or use a larger machine"
        text = f"there is not enough memory ({text.rstrip('.').lower()}); {advice}"
    # A sentence begins with a capital letter, but not if that would change a path or the name of an argument.
    text = text[0].upper() + text[1:] if text.split()[0] in ("the", "column", "there") else text
    return text if text.endswith((".", "?")) else f"{text}."


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
