"""The classifier at the end of a pipeline, however deep, and what comes before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags


def pipelines_of(estimator: Any) -> Iterator[Pipeline]:
    """The estimator if it is a pipeline, the pipeline at its end, and so on."""
    while isinstance(estimator, Pipeline):
        yield estimator
        estimator = estimator.steps[-1][1]


def final_step(estimator: Any) -> Any:
    """The classifier at the end of a pipeline, or the estimator itself."""
    for pipeline in pipelines_of(estimator):
        estimator = pipeline.steps[-1][1]
    return estimator


def prefix_of_final_step(estimator: Any) -> str:
    """What comes before the name of a parameter of that classifier; empty if there is no pipeline."""
    return "".join(f"{pipeline.steps[-1][0]}__" for pipeline in pipelines_of(estimator))


def transforms(estimator: Any) -> bool:
    """Whether a transformer comes before that classifier."""
    return any(len(pipeline.steps) > 1 for pipeline in pipelines_of(estimator))


def inputs_of_final_step(estimator: Any, X: Any) -> Any:
    """Rows as that classifier sees them."""
    for pipeline in pipelines_of(estimator):
        X = pipeline[:-1].transform(X) if len(pipeline.steps) > 1 else X
    return X


def require_classifier(estimator: Any, example: str) -> None:
    """Raise ValueError unless ``estimator=`` is a classifier that can be fitted, such as the example."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not is_classifier(estimator):
        raise ValueError(f"estimator must be a classifier object, such as {example}; got {estimator!r}.")


def takes_a_kernel_matrix(estimator: Any) -> bool:
    """Whether the inputs of an estimator are rows of a kernel matrix, of which cross-validation slices both axes."""
    return hasattr(estimator, "fit") and bool(get_tags(estimator).input_tags.pairwise)


def takes_sparse(estimator: Any) -> bool:
    """Whether the inputs of an estimator may be sparse."""
    return hasattr(estimator, "fit") and bool(get_tags(estimator).input_tags.sparse)
