"""Which preprocessing keeps a certificate valid: transformers that never use a label."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from typing import Any

from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

# Modules of scikit-learn whose transformers accept y only to ignore it (those that need it say so in their tags).
_LABEL_FREE_MODULES = (
    "sklearn.base",
    "sklearn.cluster",
    "sklearn.decomposition",
    "sklearn.feature_extraction",
    "sklearn.impute",
    "sklearn.kernel_approximation",
    "sklearn.manifold",
    "sklearn.preprocessing",
    "sklearn.random_projection",
)


def require_label_free(pipeline: Pipeline) -> None:
    """Raise ValueError if a transformer of the pipeline, its last step left out, may use labels."""
    for transformer in _transformers(pipeline.steps[:-1]):
        if uses_labels(transformer):
            raise ValueError(
                f"the transformer {type(transformer).__name__} uses y, so flipped labels would change the features "
                "and void the certificate; use a label-free transformer, or fit it on other, trusted data first."
            )


def uses_labels(transformer: Any) -> bool:
    """Whether fitting the transformer may look at y: its tags say so, or its code reads the argument."""
    if get_tags(transformer).target_tags.required:
        return True
    return any(_reads_labels(type(transformer), name) for name in ("fit", "fit_transform", "partial_fit"))


def _transformers(steps: Any) -> Iterator[Any]:
    """All transformers of a list of (name, transformer, ...) steps, those inside of others included."""
    from sklearn.compose import ColumnTransformer  # takes a tenth of the whole import

    for _, step, *_ in steps:
        if step is None or isinstance(step, str):
            continue
        if isinstance(step, Pipeline):
            yield from _transformers(step.steps)
        elif isinstance(step, FeatureUnion):
            yield from _transformers(step.transformer_list)
        elif isinstance(step, ColumnTransformer):
            yield from _transformers(getattr(step, "transformers_", step.transformers))
        else:
            yield step


def _reads_labels(owner: type, method: str) -> bool:
    """Whether the code of a fitting method reads its second argument, which is where a pipeline passes y."""
    definer = next((base for base in owner.__mro__ if method in vars(base)), None)
    if definer is None or f"{definer.__module__}.".startswith(tuple(f"{m}." for m in _LABEL_FREE_MODULES)):
        return False
    code = getattr(inspect.unwrap(vars(definer)[method]), "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS:
        return True
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    labels = {*names[2:3], "y"} & set(names)
    # Some instructions read two variables at once and name both.
    return any(
        name in labels
        for instruction in dis.get_instructions(code)
        for name in (instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,))
        if isinstance(name, str)
    )
