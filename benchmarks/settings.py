"""Sizes of a run, as chosen on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class Settings:
    """How large and how often; ``quick`` only shows that everything works."""

    quick: bool = False
    n_train: int = 50_000
    n_test: int = 2_048
    pairs: int = 7
    partitions: tuple[int, ...] = (10, 50, 100, 250, 500, 1000)
    exact: bool = False

    def size(self, full: Value, quick: Value) -> Value:
        """A size that the command line does not set."""
        return quick if self.quick else full

    @property
    def few_pairs(self) -> int:
        """Repetitions of jobs that take long."""
        return max(1, min(self.pairs, 3))


QUICK = Settings(quick=True, n_train=10_000, n_test=256, pairs=3, partitions=(10, 50, 250))
