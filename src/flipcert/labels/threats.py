"""What an attacker may do to the training set, and what a radius counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from flipcert.labels.labels import Labels


class Threat(Protocol):
    """What an attacker may do.

    Attributes
    ----------
    name : str
        As users say it: ``certify(X, threat=name)``.
    unit : str
        What a radius counts, in the singular.
    """

    @property
    def name(self) -> str:
        """What users call it, as in ``certify(X, threat=name)``."""

    @property
    def unit(self) -> str:
        """What a radius counts, in the singular."""

    def limit(self, labels: Labels) -> int:
        """The largest radius there is; one more is the cost of what no attack does."""


@dataclass(frozen=True)
class Flips:
    """Labels are changed to other classes of the label space."""

    name: str = "flips"
    unit: str = "label"

    def limit(self, labels: Labels) -> int:
        """All labels; not even changing all of them does it."""
        return labels.n_labels


FLIPS = Flips()
THREATS: dict[str, Threat] = {threat.name: threat for threat in (FLIPS,)}


def check_threat(threat: str, model: object) -> Threat:
    """The threat of this name; a ValueError if there is none, or no proof for this model."""
    if not isinstance(threat, str) or threat not in THREATS:
        names = ", ".join(f'"{name}"' for name in THREATS)
        raise ValueError(f"threat must be {names}, as {type(model).__name__} has no proofs for others; got {threat!r}.")
    return THREATS[threat]
