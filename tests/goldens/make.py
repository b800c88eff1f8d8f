"""Store the answers of the code as it is now: ``python -m tests.goldens.make [GROUP ...]``."""

from __future__ import annotations

import sys

from tests.goldens.functions import certificates_to_keep
from tests.goldens.groups import GROUPS
from tests.goldens.record import STORED, differences, outcome, read, write


def main(groups):
    """Write the stored cases of some groups, or all, and say what is other than before."""
    STORED.mkdir(exist_ok=True)
    for group in groups or GROUPS:
        before = read(group)
        now = {name: outcome(case) for name, case in GROUPS[group].items()}
        for name, found in now.items():
            for said in differences(before[name], found) if name in before else ["new"]:
                print(f"{group}: {name}: {said[:200]}")
        write(STORED / f"{group}.json", now)
    # Files of certificates are for later versions to read, so the old ones stay.
    for name, certificates in certificates_to_keep().items():
        path = STORED / f"{name.replace(' ', '-')}.npz"
        if not path.exists():
            certificates.save(path)


if __name__ == "__main__":
    main(sys.argv[1:])
