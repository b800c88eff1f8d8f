"""``python -m flipcert`` is the command line."""

from flipcert.cli import main

main()
