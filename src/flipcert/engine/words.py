"""Numbers in sentences."""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """A number and its noun.

    >>> plural(1, "row"), plural(1200, "row"), plural(2, "entry"), plural(3, "class")
    ('1 row', '1,200 rows', '2 entries', '3 classes')
    """
    if count == 1:
        return f"{count:,} {noun}"
    return f"{count:,} " + (f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}{'es' if noun[-1] == 's' else 's'}")
