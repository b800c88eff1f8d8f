"""In which order base classifiers put the classes: what a run-off election asks of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble.voters import ConstantVote
from flipcert.labels.encoding import class_indices
from flipcert.labels.steps import final_step

_SCORES = ("decision_function", "predict_proba")


def require_scores(estimator: Any) -> None:
    """Raise ValueError if a base classifier, which need not be fitted, does not tell how it likes each class."""
    model = final_step(estimator)
    name = type(model).__name__
    if not any(hasattr(estimator, own) for own in _SCORES):
        raise ValueError(
            f'vote="runoff" ranks classes by scores, and {name} has neither decision_function nor predict_proba; use '
            'vote="majority", or another base classifier.'
        )
    if getattr(model, "decision_function_shape", "ovr") != "ovr":
        raise ValueError(
            f'vote="runoff" ranks classes by scores, and decision_function of {name} compares pairs of classes; give '
            'it decision_function_shape="ovr".'
        )


def rank(
    estimator: Any,
    X: NDArray[Any],
    classes: NDArray[Any],
    n_rows: int | None = None,
    first: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Class indices in the order of a fitted base classifier, best first, one row a test point.

    Scores decide, as it returns them; classes with equal ones come in the order of the label space. Classes that it was
    never shown come last, in the same order. ``first`` is put before all others.
    """
    model = final_step(estimator)
    if isinstance(model, ConstantVote):
        known = class_indices(np.asarray([model.label]), classes, "{label} is none of {classes}.")
        scores = np.zeros((X[:n_rows].shape[0], 1))
    else:
        known = class_indices(
            np.asarray(estimator.classes_),
            classes,
            f"{type(model).__name__} was fitted to {{label}}, which is none of the classes {{classes}}.",
        )
        scores = _scores(estimator, X, known.size)[:n_rows]
    rankings = np.empty((scores.shape[0], classes.size), np.int64)
    # Classes in the order of the label space, so that a stable sort leaves ties as they have to be.
    by_index = np.argsort(known)
    rankings[:, : known.size] = known[by_index][np.argsort(-scores[:, by_index], axis=1, kind="stable")]
    rankings[:, known.size :] = np.setdiff1d(np.arange(classes.size), known)
    return rankings if first is None else _put_first(rankings, first)


def _scores(estimator: Any, X: NDArray[Any], n_known: int) -> NDArray[np.float64]:
    """Scores of the classes that a classifier knows, one row a test point."""
    name = next(own for own in _SCORES if hasattr(estimator, own))
    scores = np.asarray(getattr(estimator, name)(X), np.float64)
    if scores.ndim == 1 and n_known == 2:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    what = f"{name} of {type(final_step(estimator)).__name__}"
    if scores.shape != (X.shape[0], n_known):
        raise ValueError(
            f'vote="runoff" ranks classes by score, and {what} must return one for each of the {X.shape[0]} rows and '
            f"{n_known} classes; got shape {scores.shape}."
        )
    if np.isnan(scores).any():
        raise ValueError(f'vote="runoff" ranks classes by score, but {what} returns NaN.')
    return scores


def _put_first(rankings: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same order but for one class of each row, which comes first."""
    others = rankings[rankings != first[:, None]].reshape(rankings.shape[0], -1)
    return np.concatenate([first[:, None], others], axis=1)
