"""How many points one attack changes at most: a bound that any multipliers prove, and a search for good ones.

If the coefficients of each cut add up to at least one over any attack that changes its point, then for shares u of the
cuts, at least zero and at most one in all for each point, an attack changes at most

    sum over points of (1 - their shares)  +  the most that an attack is worth, where a choice costs
                                              the sum over cuts of its coefficient times their share.

This takes one pass over everything that an attacker could choose. Good shares come from a linear program on few
choices (``master.py``): its multipliers are tried in a full pass, which prices all choices; the best that the program
did not know of join it, until both agree. Then cuts join that the solution violates. Only full passes prove anything.
In the time that is left, attacks are told apart (``branches.py``), for fewer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from flipcert.collective.branches import lowered
from flipcert.collective.effects import Effects
from flipcert.collective.search import Search
from flipcert.engine.blocks import map_threads
from flipcert.engine.clock import working_time

Told = Callable[[int, int], None]


def changed_at_most(
    effects: Effects,
    budgets: NDArray[np.int64],
    threatened: NDArray[np.bool_],
    deadline: float,
    told: Told = lambda budget, at_most: None,
    mixed: Callable[[Search], Search | None] = lambda search: None,
) -> list[Search]:
    """For each budget, the search that proved how many threatened points an attack changes at most.

    ``told(budget, at_most)`` hears of every better bound. ``mixed(search)`` is another search, among these effects and
    others, that begins where one has ended.
    """
    searches = [
        Search(effects, int(budget), np.flatnonzero(own)) for budget, own in zip(budgets, threatened, strict=True)
    ]
    _run(effects, searches, deadline, told)
    others = [(search, mixed(search)) for search in searches if working_time() < deadline]
    _run(effects, [other for _, other in others if other is not None], deadline, told)
    for search, other in others:
        if other is not None:
            search.proven(other.at_most)
    for place, search in enumerate(searches):
        now = working_time()
        for at_most in lowered(search, now + (deadline - now) / (len(searches) - place)):
            told(search.budget, at_most)
    return searches


def _run(effects: Effects, searches: list[Search], deadline: float, told: Told) -> None:
    """Passes over all units until every search has come to its end."""
    while working_time() < deadline:
        asking = [search for search in searches if not search.finished]
        if not asking:
            break
        # One pass for all budgets.
        answers = effects.prices([(search.cuts, search.shares) for search in asking])
        for search, prices in zip(asking, answers, strict=True):
            if search.hears(prices):
                told(search.budget, search.at_most)
        if working_time() < deadline:
            map_threads(lambda search: search.goes_on(deadline), asking, None)
