"""Classifiers whose fits must not run beside each other, because they share random numbers in spite of their seeds."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any

from flipcert.labels.randomness import contents

_TURN = Lock()


def takes_turns(estimator: Any) -> bool:
    """Whether fits of copies of an estimator must not run beside each other."""
    inside = [value for _, value in contents(estimator)]
    # An ensemble inside takes turns itself, in threads of its own, and would wait for ever.
    waits = any(type(value).__name__ == "PartitionEnsemble" for value in inside)
    return not waits and any(_shares_random_numbers(value) for value in inside)


def turn(taken: bool) -> AbstractContextManager[Any]:
    """What a thread has to hold while it fits such an estimator, or nothing, if it is another."""
    return _TURN if taken else nullcontext()


def _shares_random_numbers(value: Any) -> bool:
    """Whether a fit uses liblinear or libsvm's probabilities: a seed sets the generator of the whole process."""
    names = {kind.__name__ for kind in type(value).__mro__ if kind.__module__.startswith("sklearn.")}
    return (
        # A calibration without an estimator calibrates a LinearSVC.
        bool(names & {"LinearSVC", "LinearSVR", "CalibratedClassifierCV"})
        or (isinstance(value, str) and value == "liblinear")  # the solver of a LogisticRegression, perhaps in a grid
        or (bool(names & {"SVC", "NuSVC"}) and value.probability is True)
    )
