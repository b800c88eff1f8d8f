"""The classifier at the end of a pipeline, however deep, and what comes before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.pipeline import Pipeline


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
