"""What would make each fit of an estimator another one: random numbers without a seed, however deep inside."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from flipcert.labels.known_transformers import known_name

_SOURCES = (np.random.RandomState, np.random.Generator, np.random.BitGenerator, random.Random)
_ATOMS = (bytes, int, float, complex, np.generic, type, ModuleType, type(None))


class Chance(NamedTuple):
    """A parameter that leaves something to chance, its value in words, and what to do about it."""

    parameter: str
    value: str
    remedy: str


def chances(thing: Any, name: str = "") -> Iterator[Chance]:
    """All that is left to chance in an estimator, and in whatever its parameters hold.

    Functions that draw random numbers from nowhere are not found out.
    """
    for place, value in contents(thing, name):
        if isinstance(value, _SOURCES):
            yield Chance(place, f"a {type(value).__name__}", "give a whole number")
        else:
            for parameter, seen, remedy in _own_chances(value, dict(_parts(value))):
                yield Chance(_joined(place, parameter), seen, f"give {type(value).__name__}(..., {remedy})")


def contents(thing: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Name and value of a thing and of all that it holds, as far as fits may draw from it.

    Lists of estimators, splitters, kernels and functions are looked into: ``get_params`` does not reach them.
    """
    stack = [(name, thing)]
    seen: set[int] = set()
    while stack:
        place, value = stack.pop()
        if isinstance(value, _ATOMS) or id(value) in seen or _is_settled(value):
            continue
        seen.add(id(value))
        yield place, value
        # What comes first is looked at first.
        stack += [(_joined(place, key), part) for key, part in reversed(list(_parts(value)))]


def _is_estimator(value: Any) -> bool:
    return callable(getattr(type(value), "get_params", None))


def _is_settled(value: Any) -> bool:
    """Whether fits draw nothing from it: it is not fitted again, or drawn from with the seed of a search."""
    return known_name(value) == "FrozenEstimator" or hasattr(type(value), "rvs")


def _own_chances(value: Any, parts: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Parameters of one object that leave something to chance, their values, and better ones."""
    name = known_name(value)
    if "random_state" in parts and parts["random_state"] is None:
        # A splitter that does not shuffle draws nothing; an estimator may have other uses for random numbers.
        is_idle = _SEED_IS_IDLE.get(name, lambda _: not _is_estimator(value) and parts.get("shuffle") is False)
        if not is_idle(value):
            yield "random_state", "None", "random_state=0"
    if isinstance(value, Mapping):
        # A search sets what its grid names.
        for key, tried in value.items():
            if str(key).split("__")[-1] == "random_state" and (tried is None or _tries_none(tried)):
                yield f"[{key!r}]", "None", f"{key}=0"
    for parameter, is_good, better in _UNSEEDED.get(name, ()):
        if not is_good(value):
            yield parameter, repr(parts[parameter]), better


def _tries_none(tried: Any) -> bool:
    return isinstance(tried, (list, tuple, np.ndarray)) and any(one is None for one in tried)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """All that a value holds, by the names that scikit-learn gives to parameters of parameters."""
    if _is_estimator(value):
        for name, parameter in _parameters(value).items():
            steps = parameter if isinstance(parameter, list) else []
            if steps and all(isinstance(step, tuple) and len(step) > 1 and isinstance(step[0], str) for step in steps):
                for step in steps:
                    yield step[0], step[1]
                    yield f"{step[0]}[2]", step[2:]
            else:
                yield name, parameter
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{i}]", part) for i, part in enumerate(value))
    elif isinstance(value, np.ndarray):
        yield from ((f"[{i}]", part) for i, part in enumerate(value.flat if value.dtype == object else ()))
    elif isinstance(value, partial):
        yield from (("func", value.func), ("args", value.args), ("keywords", value.keywords))
    elif isinstance(value, (MethodType, BuiltinMethodType)):
        yield "self", value.__self__
    elif isinstance(value, FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from ((name, cell.cell_contents) for name, cell in cells if _is_set(cell))
        yield from (("defaults", value.__defaults__), ("keywords", value.__kwdefaults__))
    else:
        yield from getattr(value, "__dict__", {}).items()


def _parameters(estimator: Any) -> dict[str, Any]:
    """Parameters of an estimator, fitted parts in place of those to fit: they know whether a seed mattered."""
    parameters: dict[str, Any] = estimator.get_params(deep=False)
    # A verifier proves; it has no part in a fit.
    parameters.pop("is_robust", None)
    name, fitted = known_name(estimator), vars(estimator)
    if name == "ColumnTransformer" and "transformers_" in fitted:
        # Columns may have been chosen by a function, of which the fitted parts know nothing any more.
        columns = [columns for _, _, columns in parameters["transformers"]]
        parameters |= {"transformers": fitted["transformers_"], "remainder": None, "columns": columns}
    elif name == "LabelFree" and "transformer_" in fitted:
        parameters["transformer"] = fitted["transformer_"]
    return parameters


def _joined(place: str, key: str) -> str:
    return f"{place}{key}" if key.startswith("[") or not place else f"{place}__{key}"


def _is_set(cell: Any) -> bool:
    """Whether a variable of an enclosing function has a value."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _solves_densely(model: Any) -> bool:
    """Whether a kernel's eigenvectors do not come from an iteration with a random start."""
    many = model.n_components is None or model.n_components >= 10
    return model.eigen_solver == "dense" or (model.eigen_solver == "auto" and many)


def _decomposes_fully(pca: Any) -> bool:
    """Whether the solver draws nothing. The same inputs lead to the same solver, so what was used will be used."""
    solver = getattr(pca, "_fit_svd_solver", "auto") if pca.svd_solver == "auto" else pca.svd_solver
    return solver in ("full", "covariance_eigh")


# Where scikit-learn's transformers with a seed do without it.
_SEED_IS_IDLE: dict[str | None, Callable[[Any], bool]] = {
    "IterativeImputer": lambda _: True,  # what it draws is refused below: each fit goes on where the last one ended
    "KBinsDiscretizer": lambda model: model.subsample is None,
    "KernelPCA": _solves_densely,
    "LocallyLinearEmbedding": lambda model: model.eigen_solver == "dense",
    "PCA": _decomposes_fully,
    "QuantileTransformer": lambda model: model.subsample is None,
}
# Where they draw random numbers that no seed settles: the parameter, whether it avoids that, and a value that does.
_UNSEEDED: dict[str | None, tuple[tuple[str, Callable[[Any], bool], str], ...]] = {
    "Isomap": (("eigen_solver", _solves_densely, "eigen_solver='dense'"),),
    "IterativeImputer": (
        ("sample_posterior", lambda model: not model.sample_posterior, "sample_posterior=False"),
        ("imputation_order", lambda model: model.imputation_order != "random", "imputation_order='ascending'"),
        ("n_nearest_features", lambda model: model.n_nearest_features is None, "n_nearest_features=None"),
    ),
}
