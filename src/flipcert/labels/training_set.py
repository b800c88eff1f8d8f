"""Training data as estimators take them: checked, encoded, and never copied if they are larger than memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.validation import validate_data

from flipcert.engine.mapped import is_large, row_pieces
from flipcert.engine.sparse import canonical
from flipcert.labels.annotations import Annotations
from flipcert.labels.encoding import encode_labels
from flipcert.labels.labels import Labels
from flipcert.labels.sources import check_sources
from flipcert.labels.validation import check_mask, check_n_jobs


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What ``fit`` was given, ready for use.

    Attributes
    ----------
    inputs : ndarray or sparse matrix of shape (n_samples, n_features)
        Training inputs, row after row; sparse ones in canonical form.
    targets : ndarray of shape (n_labels,)
        Training labels as the user wrote them; one a row, unless there are annotations.
    trusted : ndarray of bool of shape (n_labels,) or None
        Labels that an attacker cannot flip; None if nobody named any.
    classes : ndarray
        The label space, sorted.
    labels : Labels
        The labels as an attacker sees them, in class indices, with their sources.
    annotations : Annotations or None
        Which rows the labels are about, where rows have several.
    """

    inputs: NDArray[Any]
    targets: NDArray[Any]
    trusted: NDArray[np.bool_] | None
    classes: NDArray[Any]
    labels: Labels
    annotations: Annotations | None = None


def read_training_set(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike | Annotations,
    trusted: ArrayLike | None = None,
    source: ArrayLike | None = None,
    *,
    dtype: Sequence[DTypeLike] = (np.float64, np.float32),
    copy: bool = False,
    checked: bool = False,
) -> TrainingSet:
    """Check and encode the arguments of ``fit``, in the label space that the estimator names or ``y`` shows.

    Whatever estimators have in common is read here: ``n_jobs`` (where there is one), ``classes``, and all that ``fit``
    takes. scikit-learn's ``n_features_in_`` and ``feature_names_in_`` are set. Inputs of any other ``dtype`` become the
    first one; ``copy`` is for who looks at them again after ``fit``. Arrays that were ``checked`` with others, as
    parts of an ensemble are, and have such a type, are taken as they are.
    """
    check_n_jobs(getattr(estimator, "n_jobs", None))
    annotations = y if isinstance(y, Annotations) else None
    if annotations is not None:
        _refuse_beside_annotations(trusted, "trusted")
        _refuse_beside_annotations(source, "source")
    if checked:
        inputs, targets = np.asarray(X), np.asarray(y)
        estimator.n_features_in_ = inputs.shape[1]
    else:
        inputs, targets = _check_data(estimator, X, y, list(dtype), copy)
    classes, codes = encode_labels(targets, estimator.classes)
    if annotations is not None:
        mask, sources = annotations.trusted, annotations.sources
    else:
        mask, sources = check_mask(trusted, targets.size), check_sources(source, targets.size)
    labels = Labels.of(codes, classes.size, mask, space_is_fixed=estimator.classes is not None, sources=sources)
    return TrainingSet(inputs, targets, mask, classes, labels, annotations)


def read_test_inputs(estimator: Any, X: ArrayLike, dtype: Sequence[DTypeLike]) -> NDArray[Any]:
    """Check test inputs of a fitted estimator; sparse ones are taken where training inputs could be."""
    X = _checked_sparse(estimator, X) if issparse(X) else X
    options: dict[str, Any] = {"accept_sparse": "csr", "dtype": list(dtype), "order": "C"}
    inputs: NDArray[Any] = validate_data(estimator, X, reset=False, **options)
    return inputs


def _checked_sparse(estimator: Any, X: Any) -> Any:
    """Rows of a sparse matrix in one form, whichever it had; a TypeError where they would have to be dense."""
    if X.ndim == 2 and not get_tags(estimator).input_tags.sparse:
        named = " ".join(repr(estimator).split())
        raise TypeError(
            f"X must be dense for {named}; got a sparse {type(X).__name__} of shape {X.shape}. Pass "
            'X.toarray(), or use KernelSVM, KernelRidge (kernels "linear", "rbf" and NTK) or WeightedNeighbors, which '
            "take it as it is."
        )
    return canonical(X) if X.ndim == 2 else X


def _refuse_beside_annotations(given: ArrayLike | None, name: str) -> None:
    """Raise ValueError if something is given that annotations say themselves."""
    if given is not None:
        raise ValueError(
            f"{name} must not be given beside Annotations, which have one of their own; pass it to Annotations(row, "
            f"label, {name}=...)."
        )


def _check_data(
    estimator: Any, X: ArrayLike, y: ArrayLike | Annotations, dtype: list[DTypeLike], copy: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Inputs and their labels.

    A memory-mapped array of a fitting type, row after row, is looked at in pieces and stays where it is.
    """
    large = is_large(X)
    if issparse(X):
        X = _checked_sparse(estimator, X)
    options: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": dtype,
        "order": "C",
        "copy": copy,
        "ensure_all_finite": not large,
    }
    if isinstance(y, Annotations):
        inputs, targets = validate_data(estimator, X, **options), y.label
        y.require_rows(inputs.shape[0])
    else:
        inputs, targets = validate_data(estimator, X, y, **options)
    if large:
        for _, rows in row_pieces(inputs):
            assert_all_finite(rows, input_name="X")
    return inputs, targets
