"""Which pipelines treat each row by itself, so that rows that come or go leave the features of all others alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from flipcert.labels.known_transformers import known_name, parts_of

# What these do to a row depends on their parameters, and at most on the number of features.
_ROW_BY_ROW = {"Binarizer", "FeatureHasher", "FrozenEstimator", "HashingVectorizer", "Normalizer", "PolynomialFeatures"}
# What these do depends on their parts.
_CONTAINERS = {"ColumnTransformer", "FeatureUnion", "Pipeline"}


def require_row_by_row(pipeline: Pipeline, threat: str) -> None:
    """Raise ValueError unless no step before the last learns anything from rows, or mixes them."""
    for name, step in pipeline.steps[:-1]:
        if (culprit := _learner(name, step)) is not None:
            raise ValueError(
                f'threat="{threat}" is refused for this pipeline: {culprit} may learn from all rows, and then rows '
                "that come or go change the features of others; fit it on other data and freeze it with "
                "sklearn.frozen.FrozenEstimator."
            )


def _learner(name: str, step: Any) -> str | None:
    """Name of a transformer, this one or a part of it, that may treat rows in the light of others; None if none may."""
    if step is None or (type(step) is str and step in ("passthrough", "drop")):
        return None
    known = known_name(step)
    if known == "LabelFree":
        return _learner(name, step.transformer)
    if known in _ROW_BY_ROW or (known == "FunctionTransformer" and _is_elementwise(step.func)):
        return None
    chosen_by_function = known == "ColumnTransformer" and any(callable(columns) for *_, columns in step.transformers)
    if known not in _CONTAINERS or chosen_by_function:
        return f"the step {name!r} ({type(step).__name__})"
    return next(filter(None, (_learner(f"{name}__{inner}", part) for inner, part in parts_of(step))), None)


def _is_elementwise(function: Any) -> bool:
    """Whether a function is known to leave each number to itself; what any other does, nobody knows."""
    return function is None or isinstance(function, np.ufunc)
