"""Exact cost of making a class win a vote, as an integer program (P1 of the EnsembleCert paper)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from flipcert.exceptions import UnsolvedError


def exact_reach(
    votes: NDArray[np.int64], costs: NDArray[np.int64], target: int, lower: int, upper: int, time_limit: float
) -> int:
    """Fewest flips that make ``target`` win, given bounds on it.

    Counts and costs are small whole numbers, so the solver's tolerances cannot blur a comparison; its solution is
    counted again all the same.
    """
    n_voters, n_classes = costs.shape
    prices = costs.astype(np.float64)
    prices[np.arange(n_voters), votes] = 0.0
    one_vote_each = sparse.kron(sparse.eye_array(n_voters), np.ones((1, n_classes)))
    lead = np.full((n_classes, n_classes), 0.0)
    lead[:, target] = 1.0
    lead -= np.eye(n_classes)
    rivals = [q for q in range(n_classes) if q != target]
    leads = sparse.csr_array(np.tile(lead[rivals], (1, n_voters)))
    result = milp(
        prices.ravel(),
        integrality=np.ones(prices.size),
        bounds=Bounds(0.0, 1.0),
        constraints=[
            LinearConstraint(one_vote_each, 1.0, 1.0),
            LinearConstraint(leads, np.array([1.0 if q < target else 0.0 for q in rivals]), np.inf),
        ],
        options={"mip_rel_gap": 0.0, "time_limit": time_limit},
    )
    if result.x is not None:
        chosen = result.x.reshape(n_voters, n_classes).argmax(axis=1)
        counts = np.bincount(chosen, minlength=n_classes)
        cost = int(np.where(chosen == votes, 0, costs[np.arange(n_voters), chosen]).sum())
        if counts.argmax() == target and result.mip_dual_bound is not None:
            proven = max(lower, math.ceil(result.mip_dual_bound - 1e-6))
            if proven >= min(cost, upper):
                return min(cost, upper)
    raise UnsolvedError(
        f"the exact cost of class {target} was not proven within time_limit={time_limit:g} s "
        f"(it is between {lower} and {upper}); raise time_limit, or take the two bounds."
    )
