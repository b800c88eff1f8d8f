"""Every way to delete, insert, replace and edit training rows, in exact numbers; no code of the package."""

from __future__ import annotations

from fractions import Fraction


class Rows:
    """A row of weights as an attacker of training rows sees it: all training sets within reach, by fewest operations.

    ``new`` are the weights that a new row can have. A state is the class scores and the rows of each class.
    """

    def __init__(self, weights, codes, n_classes, trusted=None, offset=None, new=(), open_space=False):
        self.weights = [Fraction(float(w)) for w in weights]
        self.codes, self.n_classes, self.open_space = [int(c) for c in codes], n_classes, open_space
        self.trusted = [False] * len(self.codes) if trusted is None else list(trusted)
        self.offset = [Fraction(0)] * n_classes if offset is None else [Fraction(float(b)) for b in offset]
        self.new = [Fraction(w) for w in new]

    @property
    def n(self):
        return len(self.codes)

    def winner(self, state, empty_votes=False):
        """Who wins, or None if fit refuses: no rows, or one class where the label space is read from the labels."""
        scores, counts = state
        if empty_votes:
            return scores.index(max(scores))
        there = [c for c in range(self.n_classes) if counts[c] or not self.open_space]
        if not any(counts) or (self.open_space and len(there) < 2):
            return None
        return max(there, key=lambda c: (scores[c], -c))

    def states(self, threat):
        """All states that can be reached with at most n operations, and how many each takes."""
        after = {}
        for state, operations in self._old_rows(threat).items():
            for final, inserted in self._with_new_rows(state, threat, operations):
                cost = operations if threat == "replacements" else operations + inserted
                if cost <= self.n and cost < after.get(final, self.n + 1):
                    after[final] = cost
        return after

    def _old_rows(self, threat):
        start = (tuple(self.offset), (0,) * self.n_classes)
        states = {start: 0}
        for weight, code, trusted in zip(self.weights, self.codes, self.trusted, strict=True):
            following = {}
            for state, cost in states.items():
                options = [(code, 0)]
                if not trusted and threat in ("deletions", "replacements", "edits", "moves"):
                    options.append((None, 1))
                if not trusted and threat in ("edits", "flips"):
                    options.extend((c, 1) for c in range(self.n_classes) if c != code)
                for to, price in options:
                    reached = state if to is None else put(state, to, weight)
                    following[reached] = min(cost + price, following.get(reached, self.n + 1))
            states = following
        return states

    def _with_new_rows(self, state, threat, operations):
        if threat in ("deletions", "flips"):
            return [(state, 0)]
        # As many rows come as are gone.
        most = operations if threat == "replacements" else self.n - operations
        reached, everything = {state}, [] if threat == "replacements" and operations else [(state, 0)]
        for inserted in range(1, most + 1):
            reached = {put(own, c, w) for own in reached for c in range(self.n_classes) for w in self.new}
            if threat != "replacements" or inserted == operations:
                everything.extend((own, inserted) for own in reached)
        return everything

    @property
    def prediction(self):
        state = tuple(self.offset), (0,) * self.n_classes
        for weight, code in zip(self.weights, self.codes, strict=True):
            state = put(state, code, weight)
        return self.winner(state)

    def cost_of_change(self, threat):
        """Fewest operations after which fit works and another class is predicted; n + 1 if there are none."""
        outcomes = ((self.winner(state), cost) for state, cost in self.states(threat).items())
        return min((cost for who, cost in outcomes if who not in (None, self.prediction)), default=self.n + 1)

    def costs(self, threat, empty_votes=True):
        """Fewest operations after which each class wins."""
        costs = [self.n + 1] * self.n_classes
        for state, cost in self.states(threat).items():
            who = self.winner(state, empty_votes)
            if who is not None:
                costs[who] = min(costs[who], cost)
        return costs


def put(state, c, weight):
    """The state with one more row."""
    scores, counts = state
    return (
        tuple(score + weight if q == c else score for q, score in enumerate(scores)),
        tuple(count + (q == c) for q, count in enumerate(counts)),
    )
