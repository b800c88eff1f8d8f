"""``python -m paper``: the paper's figures; with ``evidence`` or ``features`` before the arguments, those."""

import sys

from paper.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
