"""Flip costs of label-linear classifiers, and the attacks behind them.

Compiled algorithms live in ``_jit/``; the Python around them checks inputs, decides what
floating-point numbers cannot, and closes gaps with a solver.
"""

from flipcert.flips.attack import cheapest_flips
from flipcert.flips.costs import flip_costs
from flipcert.results.witness import Witness

__all__ = ["Witness", "cheapest_flips", "flip_costs"]
