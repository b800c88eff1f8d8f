"""What a model is, in plain values: its kind and its parameters, as reports show them and files keep them."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from flipcert.kernels import NAMED
from flipcert.kernels.base import Kernel, as_kernel
from flipcert.kernels.stored import StoredKernel
from flipcert.kernels.tangent import Tangent

# The command line's names; other models and kernels go by their class.
_MODELS = {
    "KernelSVM": "svm",
    "KernelRidge": "ridge",
    "WeightedNeighbors": "neighbors",
    "LabelSpreading": "spreading",
    "SmoothedLinear": "smoothed",
    "BoundedNetwork": "network",
    "MilpSVM": "milp-svm",
    "LogisticRegression": "logistic",
    "FixedBudget": "fixed-budget",
}
_KERNELS = {kind: name for name, kind in NAMED.items()}
# What changes no result.
_WITHOUT_EFFECT = ("n_jobs", "verbose")
# What is told only where somebody gave it.
_IF_GIVEN = ("max_norm",)
# What is told of every model, so that parameters of users' classes have to be called otherwise.
_TAKEN = ("model", "partitions", "partition_rule", "seed", "vote", "copies", "preprocessing")
_MOST_VALUES = 20
_LONGEST_NAME = 120


def describe(model: Any) -> dict[str, Any]:
    """Kind and parameters of a model: numbers, strings, booleans, None, and lists of these.

    ``model`` is its kind; those of a kernel, of the base classifier of an ensemble and of a classifier behind
    transformers are told in the same mapping. Objects and functions are told by a readable name.
    """
    if isinstance(model, Pipeline):
        classifier = model
        while isinstance(classifier, Pipeline):
            classifier = classifier.steps[-1][1]
        return behind(model, describe(classifier))
    if not any(kind.__module__.startswith("flipcert.") for kind in type(model).__mro__):
        return {"model": _named(model)}
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in _WITHOUT_EFFECT}
    classes = given.pop("classes", None)
    for name in _IF_GIVEN:
        if name in given and given[name] is None:
            del given[name]
    own = getattr(type(model), "parameters_are_its_own", False)
    if "n_partitions" in given and not own:
        told = describe(given["estimator"]) | {"partitions": _plain(given["n_partitions"])}
        told["partition_rule"] = given["partition"] if isinstance(given["partition"], str) else "given"
        if given["vote"] != "majority":
            told["vote"] = _plain(given["vote"])
        if given["copies"] != 1:
            told["copies"] = _plain(given["copies"])
        if told["partition_rule"] == "random" or given["copies"] != 1:
            told["seed"] = _plain(given["random_state"])
    else:
        told = {"model": _MODELS.get(type(model).__name__, type(model).__name__)}
        if "kernel" in given and not own:
            told |= _describe_kernel(given.pop("kernel"))
        told |= {f"{name}_" if own and name in _TAKEN else name: _plain(value) for name, value in given.items()}
    if classes is not None:
        told["classes"] = _plain(np.unique(np.asarray(classes)))  # a label space is a set
    return told


def behind(pipeline: Any, told: Mapping[str, Any]) -> dict[str, Any]:
    """Description of the last step of a pipeline, with the steps before it; as it is, if there is no pipeline."""
    if not isinstance(pipeline, Pipeline):
        return dict(told)
    told = behind(pipeline.steps[-1][1], told)
    steps = [_named(step) for _, step in pipeline.steps[:-1] if step is not None and step != "passthrough"]
    names = [*steps, *([told["preprocessing"]] if "preprocessing" in told else [])]
    return {**told, "preprocessing": ", ".join(names)} if names else told


def _describe_kernel(kernel: Any) -> dict[str, Any]:
    """Name and parameters of ``kernel=``."""
    if isinstance(kernel, StoredKernel):
        kernel = kernel.kernel
    if kernel is None or (isinstance(kernel, str) and kernel != "precomputed"):
        kernel = as_kernel(kernel)
    if not isinstance(kernel, Kernel):
        return {"kernel": _plain(kernel)}
    name = _KERNELS.get(type(kernel), type(kernel).__name__)
    given = kernel.get_params(deep=False)
    if name in ("ntk", "conv-ntk"):
        name = name.replace("ntk", given.pop("kind"))
        if given["activation"] != "leaky_relu":
            del given["negative_slope"]
    elif isinstance(kernel, Tangent):
        given["module"] = kernel.network_name
        if given["projection"] is None:
            del given["projection_seed"]
    return {"kernel": name, **{parameter: _plain(value) for parameter, value in given.items()}}


def _plain(value: Any) -> Any:
    """A parameter as a value that can be written down."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if not isinstance(value, (list, tuple)):
        return _named(value)
    return [_plain(part) for part in value] if len(value) <= _MOST_VALUES else f"{len(value):,} values"


def _named(thing: Any) -> str:
    """A readable name, the same in every process."""
    if isinstance(thing, functools.partial):
        thing = thing.func
    own = getattr(thing, "__name__", None)
    if isinstance(own, str):
        return "a lambda function" if own == "<lambda>" else own
    if isinstance(thing, BaseEstimator):
        changed = ", ".join(f"{name}={_in_brackets(value)}" for name, value in _changed(thing))
        text = f"{type(thing).__name__}({changed})" if changed else type(thing).__name__
    elif "__repr__" not in {name for kind in type(thing).__mro__[:-1] for name in vars(kind)}:
        text = type(thing).__name__
    else:
        # Addresses in memory tell a reader nothing, and differ from process to process.
        text = re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(repr(thing).split()))
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _changed(estimator: BaseEstimator) -> Iterable[tuple[str, Any]]:
    """Parameters that are not the default ones."""
    defaults = {name: p.default for name, p in inspect.signature(type(estimator)).parameters.items()}
    for name, value in estimator.get_params(deep=False).items():
        # Written down, even a nan equals itself.
        if name not in _WITHOUT_EFFECT and repr(_plain(value)) != repr(_plain(defaults.get(name))):
            yield name, value


def _in_brackets(value: Any) -> str:
    plain = _plain(value)
    return repr(plain) if isinstance(value, str) else str(plain)
