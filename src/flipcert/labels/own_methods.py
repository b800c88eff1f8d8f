"""Whether a model is fitted and asked by the very methods that its proof is about."""

from __future__ import annotations

import sys
from typing import Any

# What a proof is about: labels go into these, and predictions come out of those. The last could replace all of them.
_PROVEN = ("fit", "_check_parameters", "_fit", "predict", "_winners", "_scores", "__getattribute__")


def require_proven(model: Any, proof: str) -> None:
    """Raise ValueError if a method that flipcert wrote proves things about a fit or a prediction that it did not write.

    ``proof`` is the name of that method, such as "certify". Whoever brings his own answers for it himself. Other
    methods of a subclass are free: how inputs become weights is its own business, and labels never enter there.
    """
    prover = _home(type(model), proof)
    if prover is None or not _is_ours(prover):
        return
    kind = type(model).__name__
    shadowed = next((name for name in vars(model) if callable(getattr(type(model), name, None))), None)
    if shadowed is not None:
        raise ValueError(
            f"this {kind} object has a {shadowed} of its own, which nothing is proven about; take it away, or put it "
            "into a class of yours."
        )
    for name in _PROVEN:
        home = _home(type(model), name)
        if home is not None and home is not object and not _is_ours(home):
            raise ValueError(
                f"{kind} has a {name} of its own (from {home.__qualname__}), but {proof} comes from "
                f"{prover.__qualname__} and proves nothing about it; put what it does to the inputs into a step of a "
                f"pipeline, such as flipcert.LabelFree(...), or give {kind} a {proof} of its own."
            )


def _home(kind: type, name: str) -> type | None:
    """The class that a method comes from."""
    return next((own for own in kind.__mro__ if name in vars(own)), None)


def _is_ours(kind: type) -> bool:
    """Whether a class is one of flipcert's; names can be borrowed, so the class itself is compared."""
    found: Any = sys.modules.get(kind.__module__) if kind.__module__.split(".")[0] == "flipcert" else None
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind
