"""Which labels look wrong: how much a model that did not see a label prefers another class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from flipcert.audit.leave_one_out import knows_left_out, scores_without_own
from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.engine.sparse import indexable
from flipcert.engine.watch import Watcher, counted, watched_by
from flipcert.labels.annotations import Annotations
from flipcert.labels.encoding import encode_labels
from flipcert.labels.known_transformers import is_label_free
from flipcert.labels.steps import (
    final_step,
    inputs_of_final_step,
    pipelines_of,
    prefix_of_final_step,
    require_classifier,
    takes_a_kernel_matrix,
)
from flipcert.labels.validation import check_integers
from flipcert.linear.shared_rows import SharedRows


class Suspicion(NamedTuple):
    """How much another class is preferred to each label, and which; by folds, or without each label alone."""

    margin: NDArray[np.float64]
    preferred: NDArray[Any]
    by_folds: bool


def suspicious_labels(
    model: Any, X: ArrayLike, y: ArrayLike | Annotations, *, cv: int = 5, random_state: Any = 0
) -> NDArray[np.float64]:
    """How much a model that did not see a training label prefers another class: which labels look wrong.

    An estimate, not a proof: a rare but right label looks wrong as well, and a mistake that many labels share does not.
    It may serve to choose what to look at; it must not serve to change labels without a look.

    Parameters
    ----------
    model : estimator or Pipeline
        A classifier, fitted or not; a copy of it is fitted.
    X : array-like of shape (n_samples, n_features)
        Training inputs.
    y : array-like of shape (n_samples,), or Annotations
        Training labels.
    cv : int, default=5
        Number of folds, for models that have to be fitted again (see Notes).
    random_state : int, RandomState instance or None, default=0
        Which labels are in which fold; likewise.

    Returns
    -------
    ndarray of float64 of shape (n_labels,)
        Score of the best other class minus that of the label, in the unit of ``decision_function`` (or of
        ``predict_proba``, for classifiers of others without it), by the model without the label. Positive: the model
        prefers another class; the larger, the more so.

    Notes
    -----
    For :class:`flipcert.KernelRidge`, :class:`flipcert.KernelSVM` and :class:`flipcert.WeightedNeighbors`, alone or
    behind transformers that never see a label, the model without a row follows from the model with it: leave-one-out is
    exact, to rounding, and takes one pass. Transformers are then fitted on all rows. Labels of the same row
    (:class:`flipcert.Annotations`) are left out together.

    All others are fitted ``cv`` times, without one fold each; every fold has its part of every class. A class that no
    label of the other folds has is scored like the last of the others.

    See Also
    --------
    plan_audit : Labels that proofs hang on.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> import flipcert
    >>> X, y = load_digits(return_X_y=True)
    >>> wrong = y.copy()
    >>> wrong[:100] = (y[:100] + 1) % 10
    >>> doubt = flipcert.suspicious_labels(flipcert.KernelRidge(reg=10.0), X / 16, wrong)
    >>> int(np.sum(np.argsort(-doubt)[:100] < 100))
    92
    """
    return suspicion_of(model, X, y, cv, random_state).margin


def suspicion_of(model: Any, X: Any, y: ArrayLike | Annotations, cv: int = 5, random_state: Any = 0) -> Suspicion:
    """The same with the class that is preferred."""
    require_classifier(model, "KernelRidge()")
    X = indexable(X)
    folds = int(check_integers(cv, "cv", minimum=2, ndim=0))
    labels = y.label if isinstance(y, Annotations) else np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must be one-dimensional, one label for each row of X; got shape {labels.shape}.")
    if not isinstance(y, Annotations) and labels.size != _num_samples(X):
        raise ValueError(f"y must hold one label for each of the {_num_samples(X)} rows of X; got {labels.size}.")
    named = final_step(model).get_params(deep=False).get("classes")
    classes, codes = encode_labels(labels, named)
    own = clone(model)
    if "classes" in final_step(own).get_params(deep=False):
        # Whoever is left out names a class nevertheless.
        own.set_params(**{f"{prefix_of_final_step(own)}classes": classes})
    exact = isinstance(final_step(own), CertifiedByWeights) and all(map(is_label_free, pipelines_of(own)))
    scores = _left_out(own, X, y, codes, classes.size) if exact else None
    by_folds = scores is None
    if scores is None:
        if isinstance(y, Annotations):
            raise ValueError(
                f"y must hold one label for each row of X; got Annotations, but {type(final_step(model)).__name__} has "
                "to be fitted again for each fold."
            )
        scores = _cross_validated(own, X, labels, codes, classes, folds, random_state)
    elif isinstance(y, Annotations):
        scores = scores[y.row]
    given = scores[np.arange(codes.size), codes].copy()
    scores[np.arange(codes.size), codes] = -np.inf
    best = scores.argmax(axis=1)
    return Suspicion(scores[np.arange(codes.size), best] - given, classes[best], by_folds)


def _left_out(
    model: Any, X: Any, y: ArrayLike | Annotations, codes: NDArray[np.int64], n_classes: int
) -> NDArray[np.float64] | None:
    """Scores of each row without it, in one pass; None where it is not known what that changes."""
    with watched_by(Watcher()):
        model.fit(X, y)
    linear, rows = final_step(model)._asked(inputs_of_final_step(model, X))
    weights = linear.weights
    if isinstance(weights, SharedRows):
        row, share, weights = weights.shares.row, weights.shares.share, weights.of_rows
    else:
        row, share = np.arange(codes.size), np.ones(codes.size)
    if not knows_left_out(weights):
        return None
    targets = np.zeros((weights.n_samples, n_classes))
    np.add.at(targets, (row, codes), share)
    return scores_without_own(weights, rows, targets, linear.n_jobs)


def _cross_validated(
    model: Any,
    X: Any,
    y: NDArray[Any],
    codes: NDArray[np.int64],
    classes: NDArray[Any],
    folds: int,
    random_state: Any,
) -> NDArray[np.float64]:
    """Scores of each row by a model that was fitted on the other folds."""
    if folds > y.size:
        raise ValueError(f"cv must be at most the {y.size} labels that there are; got {folds}.")
    names = [name for name in ("decision_function", "predict_proba") if hasattr(model, name)]
    if not names:
        raise ValueError(
            f"model must have decision_function or predict_proba; {type(final_step(model)).__name__} has none."
        )
    pairwise = takes_a_kernel_matrix(model)
    fold = _dealt(codes, folds, random_state)
    scores = np.empty((y.size, classes.size))
    done = counted(folds, "folds")
    for number in range(folds):
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        seen, asked = _safe_indexing(X, train), _safe_indexing(X, test)
        if pairwise:
            seen, asked = np.asarray(seen)[:, train], np.asarray(asked)[:, train]
        with watched_by(Watcher()):
            fitted = clone(model).fit(seen, y[train])
            told = np.asarray(getattr(fitted, names[0])(asked), np.float64)
        if told.ndim == 1:
            told = np.column_stack([np.zeros(told.size), told])
        known = np.searchsorted(classes, fitted.classes_)
        scores[test] = told.min(axis=1, keepdims=True)
        scores[test[:, None], known] = told
        done()
    return scores


def _dealt(codes: NDArray[np.int64], folds: int, random_state: Any) -> NDArray[np.int64]:
    """The fold of each label: labels of a class are shuffled and dealt out in turn, so all folds have a part of it."""
    shuffled = check_random_state(random_state).permutation(codes.size)
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold = np.empty(codes.size, np.int64)
    fold[order] = np.arange(codes.size) % folds
    return fold
