"""The command line: ``flipcert certify``, ``attack``, ``sweep``, ``report``, ``demo``."""

from flipcert.cli.app import app


def main() -> None:
    """Run the command line."""
    app()


__all__ = ["app", "main"]
