"""The command line: ``flipcert certify``, ``attack``, ``sweep``, ``check``, ``report``, ``verify``, ``demo``."""

import sys

from flipcert.cli.app import app
from flipcert.cli.errors import INTERRUPTED


def main() -> None:
    """Run the command line."""
    try:
        app()
    except KeyboardInterrupt:  # before a command was found, which has more to say
        print("\nInterrupted. Nothing was begun yet.", file=sys.stderr)
        sys.exit(INTERRUPTED)


__all__ = ["app", "main"]
