"""The minimiser of penalised softmax regression, by Newton's method with a Hessian that is kept while it serves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from flipcert.classifiers.logistic.objective import Objective

# A Hessian is formed again if a step with the old one leaves more than this part of the gradient.
_LEFT = 0.1
_STEPS, _IN_VAIN, _HALVINGS = 300, 10, 60
# What is left of a gradient that is nothing but rounding, as a part of the one at no weights.
_NOTHING = 1e-13
# From so many parameters on, a Hessian is dear enough to be put off until a first-order method is near.
_MANY_PARAMETERS = 1000


@dataclass
class State:
    """Weights, the probabilities there, and the gradient."""

    W: NDArray[np.float64]
    P: NDArray[np.float64]
    gradient: NDArray[np.float64]

    @classmethod
    def at(cls, objective: Objective, W: NDArray[np.float64], codes: NDArray[np.int64]) -> State:
        """What follows from weights."""
        P = objective.probabilities(W)
        return cls(W, P, objective.gradient(W, P, codes))

    @property
    def norm(self) -> float:
        """How far from zero the gradient is."""
        return float(np.linalg.norm(self.gradient))


# The step from a state to where a quadratic that is tangent there has its minimum.
Newton = Callable[[State], NDArray[np.float64]]


def minimise(objective: Objective, codes: NDArray[np.int64]) -> State:
    """The minimiser, as near as doubles come; whoever asks looks at the residual."""
    W = np.zeros((objective.n_classes, objective.X.shape[1]))
    if objective.n_parameters > _MANY_PARAMETERS:
        W = _draw_near(objective, codes, W)
    # The goal is about what can be proven. Of large features it may be longer than the gradient of no weights at all,
    # so go on from there as long as it helps.
    first = State.at(objective, np.zeros_like(W), codes).norm
    enough = objective.goal / 8.0
    return descend(objective, codes, W, min(enough, _NOTHING * first), KeptHessian(objective), enough)


def descend(
    objective: Objective,
    codes: NDArray[np.int64],
    W: NDArray[np.float64],
    goal: float,
    newton: Newton,
    enough: float = 0.0,
) -> State:
    """Newton's method until the gradient is no longer than the goal, or stays as it is; once, if it is ``enough``."""
    state = nearest = State.at(objective, W, codes)
    in_vain = 0
    for _ in range(_STEPS):
        if state.norm <= goal or in_vain == (1 if nearest.norm <= enough else _IN_VAIN):
            break
        moved = _along(objective, codes, state, newton(state))
        in_vain = 0 if moved.norm < nearest.norm else in_vain + 1
        nearest = min(nearest, moved, key=lambda one: one.norm)
        state = moved
    return nearest


@dataclass
class KeptHessian:
    """Newton steps by a Hessian that is formed again only if a step left too much of the gradient."""

    objective: Objective
    factor: Any = None
    last: float = np.inf

    def __call__(self, state: State) -> NDArray[np.float64]:
        """The step from a state."""
        if self.factor is None or state.norm > _LEFT * self.last:
            self.factor = _factorised(self.objective.hessian(state.P))
        self.last = state.norm
        step: NDArray[np.float64] = cho_solve(self.factor, state.gradient.ravel(), check_finite=False)
        return step.reshape(state.W.shape)


def _factorised(hessian: NDArray[np.float64]) -> Any:
    """Cholesky factor of a Hessian, with as much added to it as rounding makes necessary: it only points the way."""
    scale = float(np.abs(np.diagonal(hessian)).max())
    for digits in (16, 14, 12, 10, 8):
        with suppress(LinAlgError):
            return cho_factor(hessian, lower=True, check_finite=False)
        hessian[np.diag_indices_from(hessian)] += scale * 10.0**-digits
    return cho_factor(hessian, lower=True, check_finite=False)


def _along(objective: Objective, codes: NDArray[np.int64], state: State, step: NDArray[np.float64]) -> State:
    """Go down along a Newton step: all of it where that shrinks the gradient, else as far as the objective falls."""
    moved = State.at(objective, state.W - step, codes)
    if moved.norm <= 0.9 * state.norm:
        return moved
    here, fall = objective.value(state.W, codes), float(np.sum(state.gradient * step))
    length = 1.0
    for _ in range(_HALVINGS):
        if objective.value(state.W - length * step, codes) <= here - 1e-4 * length * fall:
            break
        length *= 0.5
    return State.at(objective, state.W - length * step, codes)


def _draw_near(objective: Objective, codes: NDArray[np.int64], W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights near the minimiser, by a method that needs gradients only."""
    scale = float(np.square(objective.norms).sum()) / 4.0 + objective.penalty

    def value_and_slope(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.reshape(W.shape)
        slope = objective.gradient(weights, objective.probabilities(weights), codes)
        return objective.value(weights, codes) / scale, slope.ravel() / scale

    options = {"maxiter": 1000, "maxcor": 20, "gtol": 1e-5 * objective.penalty / scale, "ftol": 1e-14}
    found = minimize(value_and_slope, W.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x, np.float64).reshape(W.shape)
