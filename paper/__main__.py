"""``python -m paper``: the paper's figures; or ``evidence``, ``tangent``, ``features`` if they come first."""

import sys

from paper.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
