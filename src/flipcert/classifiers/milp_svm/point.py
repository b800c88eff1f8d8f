"""One test point of a support vector machine under attack: scores after flips, bounds on them, attacks that work."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from flipcert.classifiers.milp_svm.integer_program import TOLERANCE, Program
from flipcert.classifiers.milp_svm.machine import Machine
from flipcert.labels.labels import Labels
from flipcert.results.witness import Witness

# Labellings to try one by one before a solver is set up, and solver attacks to refute before giving up.
_QUICK, _REFUTED = 1000, 50


@dataclass
class State:
    """A labelling with the machines that were fitted to it."""

    codes: NDArray[np.int64]
    machines: dict[int, Machine]

    @property
    def is_solved(self) -> bool:
        """Whether ``fit`` would accept these machines."""
        return all(machine.is_solved for machine in self.machines.values())


class OutOfTime(Exception):
    """A search may go on no longer."""


@dataclass
class Point:
    """A test point, in units of the kernel times C.

    Attributes
    ----------
    machines : dict
        The machine of each class against the rest; with two classes, of the second only.
    labels : Labels
    row : ndarray of shape (n,)
        Kernel with the training points.
    size : float
        Kernel with itself of what the training points know of it: of its projection onto their span.
    doubt : float
        How far ``row`` may be off, summed up, from the kernel of such a projection.
    """

    machines: dict[int, Machine]
    labels: Labels
    row: NDArray[np.float64]
    size: float
    doubt: float
    upper: NDArray[np.int64] = field(init=False)
    attacks: dict[int, NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        self.clean = State(self.labels.codes, self.machines)
        self.scores_now = scores = self.scores(self.clean)
        self.prediction = int(scores.argmax())
        self.upper = np.full(self.labels.n_classes, self.labels.unreachable)
        self.upper[self.prediction] = 0
        self.attacks = {}
        # The tolerances of a solver come on top of what machines may be off.
        self.slack = self.error(self.clean) + 2.0 * TOLERANCE * float(np.abs(self.row).sum())
        self.sensitive = not self.leads(self.clean, self.prediction)

    def error(self, state: State) -> float:
        """How far a difference of scores that bounds or repeats those of a state may be off.

        By strong convexity, and for each of two machines: what the state leaves unsolved, and what ``fit`` may leave.
        So a state that was not solved proves little by itself. Coefficients change by two at most, so what the span of
        the training points does not explain counts twice for each machine.
        """
        machines = state.machines.values()
        left = max(np.sqrt(machine.gap) + np.sqrt(machine.goal) for machine in machines)
        return 2.0 * float(left * np.sqrt(self.size)) + 4.0 * self.doubt

    def leads(self, state: State, target: int) -> bool:
        """Whether the target wins for certain."""
        scores = self.scores(state)
        return bool(scores[target] - np.delete(scores, target).max() > self.error(state))

    def scores(self, state: State) -> NDArray[np.float64]:
        """Decision values of all classes."""
        own = {c: float(self.row @ (m.duals * m.signs)) for c, m in state.machines.items()}
        if self.labels.n_classes == 2:
            return np.array([-own[1], own[1]])
        return np.array([own.get(c, -np.inf) for c in range(self.labels.n_classes)])

    def relabelled(self, state: State, flips: list[tuple[int, int]], part: list[int] | None = None) -> State:
        """Fit the machines to other labels: those of the classes in ``part``, or all."""
        codes = state.codes.copy()
        for i, to in flips:
            codes[i] = to
        machines = {}
        for c, machine in state.machines.items():
            if part is None or c in part:
                changed = np.flatnonzero((codes == c) != (state.codes == c))
                machines[c] = machine.flipped(changed) if changed.size else machine
        return State(codes, machines)

    def part(self, target: int, rivals: list[int]) -> list[int]:
        """Classes whose machines decide between the target and its rivals."""
        return [1] if self.labels.n_classes == 2 else sorted({target, *rivals})

    def try_attack(self, codes: NDArray[np.int64]) -> State:
        """Fit all machines to a labelling as ``fit`` does; if another class wins for certain, note the attack."""
        machines = {
            c: Machine.fit(machine.kernel, np.where(codes == c, 1.0, -1.0)) for c, machine in self.machines.items()
        }
        state = State(codes.copy(), machines)
        flips = int((codes != self.labels.codes).sum())
        winner = int(self.scores(state).argmax())
        if state.is_solved and self.leads(state, winner) and flips < self.upper[winner]:
            self.upper[winner] = flips
            self.attacks[winner] = state.codes
        return state

    def gains(self, state: State, target: int, rivals: list[int]) -> NDArray[np.float64]:
        """By how much flipping each sample brings the target nearer to each rival at most (strong convexity)."""

        def moved(c: int, upwards: bool) -> NDArray[np.float64]:
            machine = state.machines[c]
            pull = machine.signs * self.row
            own = np.diag(machine.kernel)
            weight = 0.5 * (machine.duals + machine.active)
            reach = np.sqrt(np.maximum(own, 0.0) * self.size)
            return np.maximum(weight * (reach - pull if upwards else reach + pull), 0.0)

        if self.labels.n_classes == 2:
            table = 2.0 * moved(1, target == 1)[None]
        else:
            ours = moved(target, True)
            rows = []
            for rival in rivals:
                theirs = moved(rival, False)
                among = (state.codes == target) | (state.codes == rival)
                rows.append(np.where(among, ours + theirs, np.maximum(ours, theirs)))
            table = np.array(rows)
        return np.where(self.labels.coded.movable & (state.codes == self.labels.codes), table, 0.0)

    def behind(self, state: State, target: int, rivals: list[int]) -> NDArray[np.float64]:
        """By how much the target is behind each rival, for certain."""
        scores = self.scores(state)
        return scores[rivals] - scores[target] - self.error(state)

    def fewest(self, target: int, rivals: list[int]) -> int:
        """Lower bound on the flips that bring the target level with its dearest rival: largest gains first."""
        gains = np.sort(self.gains(self.clean, target, rivals), axis=1)[:, ::-1]
        reached = np.cumsum(gains, axis=1) >= self.behind(self.clean, target, rivals)[:, None]
        needed = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, self.labels.unreachable)
        return max(1, int(needed.max()))

    def attack_greedily(self, target: int, deadline: float) -> None:
        """Flip what promises most, fit again, until the target wins."""
        state = self.clean
        movable = self.labels.coded.movable
        for count in range(1, self.labels.n_movable + 1):
            if count >= self.upper[target] or time.monotonic() > deadline:
                return
            flip = self._most_promising(state, target, movable & (state.codes == self.labels.codes))
            if flip is None:
                return
            state = self.relabelled(state, [flip])
            if self.leads(state, target):
                self.try_attack(state.codes)
                return

    def _most_promising(self, state: State, target: int, usable: NDArray[np.bool_]) -> tuple[int, int] | None:
        """The flip with the largest effect on the gap to the strongest rival, if duals went to 1 and stayed."""
        scores = self.scores(state)
        scores[target] = -np.inf
        leader = int(scores.argmax())
        best, found = 0.0, None
        for to, other in ((target, leader), (leader, target)):
            # `to` gains a sample that it had on the other side; whoever had it loses one.
            lift = self._effect(state, to)
            drop = np.where(state.codes == other, self._effect(state, other), 0.0)
            promise = np.where(usable & (state.codes != to), (lift + drop) * (1.0 if to == target else -1.0), 0.0)
            i = int(promise.argmax())
            if promise[i] > best:
                best, found = float(promise[i]), (i, to)
        return found

    def _effect(self, state: State, c: int) -> NDArray[np.float64]:
        machine = state.machines[1 if self.labels.n_classes == 2 else c]
        return (machine.duals + 1.0) * self.row

    def narrow(self, target: int, rivals: list[int], lower: int, limit: int, deadline: float) -> int:
        """Raise the lower bound on flips that bring the target level with its rivals, up to ``limit``.

        Attacks found on the way are noted. Far above the small-C regime a search is best, near it the solver: what a
        short search leaves open goes to the solver, and what that leaves open to a longer search.
        """
        lower, is_final = self._search(target, rivals, lower, limit, deadline, _QUICK)
        if not is_final:
            halfway = (time.monotonic() + deadline) / 2
            lower, is_final = self._solve(target, rivals, lower, min(limit, int(self.upper[target])), halfway)
        if not is_final:
            lower, _ = self._search(target, rivals, lower, min(limit, int(self.upper[target])), deadline, np.inf)
        return lower

    def _search(
        self, target: int, rivals: list[int], lower: int, limit: int, deadline: float, nodes: float
    ) -> tuple[int, bool]:
        """Try all labellings with one more flip again and again, those that cannot suffice left out.

        Returns the bound, and whether it is final: at the limit, or at a labelling that is (as good as) an attack.
        """
        # What promises most comes first, so that little is left to gain once it is passed over.
        order = np.argsort(-self.gains(self.clean, target, rivals).max(axis=0), kind="stable")
        search = _Search(self, target, rivals, order, deadline, nodes)
        try:
            while lower < limit and not search.finds(self.clean, lower, 0):
                lower += 1
        except OutOfTime:
            return lower, False
        return lower, True

    def _solve(self, target: int, rivals: list[int], lower: int, limit: int, deadline: float) -> tuple[int, bool]:
        """Integer programs with growing budgets: the smaller the budget, the tighter the program. As ``_search``."""
        machines = {c: self.machines[c] for c in self.part(target, rivals)}
        budget = lower
        while lower < limit and time.monotonic() < deadline:
            budget = min(max(budget, lower), limit - 1)
            program = Program(
                machines, self.labels.codes, self.labels.coded.movable, self.labels.n_classes, self.row, target, rivals,
                budget, self.slack,
            )  # fmt: skip
            for _ in range(_REFUTED):
                solution = program.solve(deadline - time.monotonic())
                lower = max(lower, min(solution.bound, limit))
                if solution.classes is None:
                    break
                state = self.try_attack(solution.classes)
                if not solution.solved:
                    break
                if (self.behind(state, target, rivals) <= 0.0).all():
                    return lower, True
                program.exclude(solution.classes)
            if not solution.solved or solution.classes is not None:
                return lower, lower >= limit
            budget *= 2
        return lower, lower >= limit

    def witness(self, target: int) -> Witness:
        """The flips of a noted attack, largest kernel values first."""
        codes = self.attacks[target]
        flipped = np.flatnonzero(codes != self.labels.codes)
        order = flipped[np.argsort(-np.abs(self.row[flipped]), kind="stable")]
        return Witness(order, codes[order])


class _Search:
    """Depth-first search over flips, in a given order of the samples, pruned by what flips can gain at most."""

    def __init__(
        self, point: Point, target: int, rivals: list[int], order: NDArray[np.int64], deadline: float, nodes: float
    ) -> None:
        self.point = point
        self.target = target
        self.rivals = rivals
        self.order = order
        self.deadline = deadline
        self.nodes = nodes
        self.part = point.part(target, rivals)
        self.others = [c for c in range(point.labels.n_classes) if c not in self.part]

    def finds(self, state: State, flips: int, begin: int) -> bool:
        """Whether a labelling with at most so many more flips, of samples from ``begin`` on, may be an attack."""
        behind = self.point.behind(state, self.target, self.rivals)
        if (behind <= 0.0).all():
            self.point.try_attack(state.codes)
            return True
        if flips == 0:
            return False
        gains = self.point.gains(state, self.target, self.rivals)[:, self.order]
        for place in range(begin, self.order.size):
            left = gains[:, place:]
            top = np.partition(left, -flips, axis=1)[:, -flips:] if flips < left.shape[1] else left
            if (top.sum(axis=1) < behind).any():
                return False
            if (gains[:, place] == 0.0).all() or (flips == 1 and (gains[:, place] < behind).any()):
                continue
            i = int(self.order[place])
            for to in self._classes(int(state.codes[i])):
                self._count()
                child = self.point.relabelled(state, [(i, to)], self.part)
                if self.finds(child, flips - 1, place + 1):
                    return True
        return False

    def _classes(self, own: int) -> list[int]:
        """Classes that a sample could be flipped to with different effects."""
        if len(self.part) == 1:
            return [1 - own]
        return [c for c in [*self.part, *([] if own in self.others else self.others[:1])] if c != own]

    def _count(self) -> None:
        self.nodes -= 1
        if self.nodes < 0 or time.monotonic() > self.deadline:
            raise OutOfTime
