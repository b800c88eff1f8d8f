"""The commands of the paper, and what they say when something is wrong: one sentence, and exit code 2."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from paper.lines import say

WRONG_INPUT, INTERRUPTED = 2, 130


def main(arguments: Sequence[str]) -> int:
    """Run a command; return its exit code."""
    command, rest = _chosen(list(arguments))
    try:
        command(rest)
    except KeyboardInterrupt:
        say("Interrupted. What is finished is kept; give the same command again to go on.")
        return INTERRUPTED
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        if os.environ.get("FLIPCERT_DEBUG"):
            raise
        say(f"Error: {str(error).rstrip('.') or type(error).__name__}.")
        return WRONG_INPUT
    return 0


def _chosen(arguments: list[str]) -> tuple[Callable[[list[str]], None], list[str]]:
    """A command and its arguments; it is imported only if it is the one."""
    if arguments[:1] == ["evidence"]:
        from paper.evidence.command import run as evidence

        return evidence, arguments[1:]
    if arguments[:1] == ["tangent"]:
        from paper.tangent.command import run as tangent

        return tangent, arguments[1:]
    if arguments[:1] == ["peers"]:
        from paper.peers.command import run as peers

        return peers, arguments[1:]
    if arguments[:1] == ["features"]:
        from paper.features.command import run as features

        return features, arguments[1:]
    from paper.figures.command import run as figures

    return figures, arguments
