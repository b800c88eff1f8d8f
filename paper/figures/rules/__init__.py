"""Rules that compare a claim of the paper with our tables: what each demands, in words, and whether it is met."""

from paper.figures.rules import curves, medians, other
from paper.figures.rules.rule import IN_SHAPE, NOT, REPRODUCED, THEOREM, Rule

RULES: dict[str, Rule] = {**medians.RULES, **curves.RULES, **other.RULES}

__all__ = ["IN_SHAPE", "NOT", "REPRODUCED", "RULES", "THEOREM", "Rule"]
