"""What columns of a table mean, and what there is to say about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flipcert.datasets.facts import Column

_MOST_NAMES = 5


@dataclass(frozen=True)
class Meaning:
    """What columns mean, as options of the shell say it.

    Attributes
    ----------
    label, id, source, trusted : str or None
        Columns, where they are named.
    drop : tuple of str
        Columns that are left out.
    encode, impute : str or None
        How text becomes numbers, and gaps are filled in.
    """

    label: str | None = None
    id: str | None = None
    source: str | None = None
    trusted: str | None = None
    drop: tuple[str, ...] = ()
    encode: str | None = None
    impute: str | None = None


@dataclass
class Advice:
    """What there is to say about a table.

    Attributes
    ----------
    columns : list of Column
        What they look like.
    uses : dict of str to str
        What each column is used as, by the options that are advised.
    reasons : dict of str to str
        Why a column is left out, where nobody asked for that.
    obstacles : list of str
        What stands in the way, with what mends it.
    notes : list of str
        What does not, but deserves a look.
    advised : Meaning
        Options that mend all of it, as far as options can.
    hopeless : bool
        Whether something stands in the way that no option mends.
    """

    columns: list[Column]
    advised: Meaning
    uses: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    obstacles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hopeless: bool = False


def taken(meaning: Meaning) -> set[str]:
    """Columns that are no features."""
    named = (meaning.label or "label", meaning.id, meaning.source, meaning.trusted)
    return {*(name for name in named if name is not None), *meaning.drop}


def names_of(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:_MOST_NAMES])
    return shown + (f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else "")


def verb(names: Sequence[str], one: str = "has", many: str = "have") -> str:
    """A verb for one name, or for several."""
    return one if len(names) == 1 else many
