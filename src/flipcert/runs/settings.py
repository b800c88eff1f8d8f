"""Which model is certified: a name and its options, as plain values that can be written down and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from flipcert import kernels
from flipcert.classifiers import (
    BoundedNetwork,
    KernelRidge,
    KernelSVM,
    LabelSpreading,
    LogisticRegression,
    MilpSVM,
    SmoothedLinear,
    WeightedNeighbors,
)
from flipcert.classifiers.description import describe
from flipcert.ensemble import PartitionEnsemble
from flipcert.ensemble.partition import RULES


@dataclass(frozen=True)
class _Choice:
    """Something that can be chosen by name, and the options it takes, with their defaults.

    A seeded model is given the seed, a limited one the time limit.
    """

    make: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = False
    limited: bool = False


KERNELS = {
    "ntk": _Choice(kernels.NTK, {"depth": 1, "activation": "linear", "weight_std": 1.0, "bias_std": 0.0}),
    "conv-ntk": _Choice(
        kernels.ConvNTK,
        {
            "image_shape": None,
            "filter_size": 3,
            "depth": 1,
            "activation": "relu",
            "pooling": None,
            "weight_std": 1.0,
            "bias_std": 0.0,
        },
    ),
    "linear": _Choice(kernels.Linear),
    "rbf": _Choice(kernels.RBF, {"gamma": None}),
}
MODELS = {
    "svm": _Choice(KernelSVM, {"kernel": "ntk", "C": "auto", "max_norm": None}),
    "ridge": _Choice(KernelRidge, {"kernel": "ntk", "reg": 1.0}),
    "neighbors": _Choice(WeightedNeighbors, {"n_neighbors": 5, "weights": "uniform"}),
    "spreading": _Choice(LabelSpreading, {"n_neighbors": 10, "alpha": 0.9}),
    "logistic": _Choice(LogisticRegression, {"C": 1.0}),
    "smoothed": _Choice(SmoothedLinear, {"flip_probability": 0.01, "reg": 1.0, "method": "white-box"}),
    "network": _Choice(
        BoundedNetwork,
        {
            "hidden": (),
            "loss": "cross-entropy",
            "epochs": 2,
            "batch_size": None,
            "learning_rate": 5.0,
            "decay": 1.0,
            "clip": None,
            "method": "auto",
            "max_flips": None,
        },
        seeded=True,
    ),
    "milp-svm": _Choice(MilpSVM, {"kernel": "ntk", "C": 1.0}, limited=True),
}
VOTES = ("majority", "runoff")
# A scale that is chosen when the features are known: see scaling.py.
AUTO = "auto"
SCALES: Mapping[str, Callable[[], Any]] = {
    "none": FunctionTransformer,
    "centre": partial(StandardScaler, with_std=False),
    "standard": StandardScaler,
    "unit": Normalizer,
}


@dataclass(frozen=True)
class Settings:
    """A model and how it is fitted.

    Attributes
    ----------
    model : str
        Name of the model, one of ``MODELS``.
    options : mapping of str to Any
        Options of the model and its kernel; what is left out has its default.
    partitions : int
        Number of partitions; 1 fits one model on everything.
    partition_rule : str
        How rows are assigned to partitions.
    seed : int
        Seed of the "random" rule, and of networks.
    scale : str
        How features are scaled, without looking at labels: one of ``SCALES``, or ``AUTO`` until it is chosen.
    classes : tuple or None
        The label space, if it is larger than what the labels show.
    time_limit : float
        Seconds for a test point, for models that can be limited.
    vote : str
        What makes a winner of the votes of partitions: one of ``VOTES``.
    copies : int
        How many voters each row is given to.
    """

    model: str = "svm"
    options: Mapping[str, Any] = field(default_factory=dict)
    partitions: int = 1
    partition_rule: str = "sorted"
    seed: int = 0
    scale: str = "none"
    classes: tuple[Any, ...] | None = None
    time_limit: float = 60.0
    vote: str = "majority"
    copies: int = 1

    def __post_init__(self) -> None:
        chosen = (("model", self.model, MODELS), ("scale", self.scale, (AUTO, *SCALES)), ("vote", self.vote, VOTES))
        for name, value, known in (*chosen, ("partition-rule", self.partition_rule, RULES)):
            if value not in known:
                raise ValueError(f"--{name} must be one of {', '.join(known)}; got {value!r}.")
        if self.partitions < 1:
            raise ValueError(f"--partitions must be at least 1; got {self.partitions}.")
        if self.copies < 1:
            raise ValueError(f"--copies must be at least 1; got {self.copies}.")
        complete = dict(MODELS[self.model].options)
        if "kernel" in complete:
            kernel = self.options.get("kernel", complete["kernel"])
            if kernel not in KERNELS:
                raise ValueError(f"--kernel must be one of {', '.join(KERNELS)}; got {kernel!r}.")
            complete |= KERNELS[kernel].options
            if kernel == "conv-ntk" and self.options.get("image_shape") is None:
                raise ValueError("--kernel conv-ntk needs --image-shape, such as 1,28,28.")
        for name in self.options:
            if name not in complete:
                raise ValueError(f"--{_dashed(name)} does not apply to {self._described()}; leave it out.")
        object.__setattr__(self, "options", complete | dict(self.options))

    def estimator(self, n_jobs: int | None = None) -> BaseEstimator:
        """The model, ready to be fitted on scaled features."""
        options = dict(self.options)
        if "kernel" in options:
            kernel = KERNELS[options["kernel"]]
            options["kernel"] = kernel.make(**{name: options.pop(name) for name in kernel.options})
        choice = MODELS[self.model]
        if choice.seeded:
            options["random_state"] = self.seed
        if choice.limited:
            options["time_limit"] = self.time_limit
        base = choice.make(**options, classes=self.classes, n_jobs=n_jobs)
        if self.partitions == 1:
            return base
        return PartitionEnsemble(
            base,
            n_partitions=self.partitions,
            partition=self.partition_rule,
            classes=self.classes,
            random_state=self.seed,
            n_jobs=n_jobs,
            vote=self.vote,
            copies=self.copies,
        )

    def scaler(self) -> Any:
        """What scales the features; it never sees a label."""
        return SCALES[self.scale]()

    def description(self) -> dict[str, Any]:
        """The model for readers, as one that is made in Python describes itself."""
        return describe(self.estimator() if self.scale == "none" else make_pipeline(self.scaler(), self.estimator()))

    def identity(self) -> dict[str, Any]:
        """All that decides the results, as plain values."""
        identity = {"model": self.model, **self.options, "scale": self.scale, "partitions": self.partitions}
        if self.classes is not None:
            identity["classes"] = list(self.classes)
        if self.partitions > 1:
            identity["partition_rule"] = self.partition_rule
            # Said only where it is not as it always was, so that runs of before are still the same runs.
            if self.vote != "majority":
                identity["vote"] = self.vote
            if self.copies > 1:
                identity["copies"] = self.copies
        by_seed = self.partitions > 1 and (self.partition_rule == "random" or self.copies > 1)
        if MODELS[self.model].seeded or by_seed:
            identity["seed"] = self.seed
        if MODELS[self.model].limited:
            identity["time_limit"] = self.time_limit
        return identity

    @classmethod
    def from_identity(cls, identity: Mapping[str, Any]) -> Settings:
        """The settings with this identity, which may have been written as JSON and read again."""
        whole = {field.name for field in fields(cls)} - {"options"}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in identity.items()
        }
        return cls(
            options={name: value for name, value in values.items() if name not in whole},
            **{name: value for name, value in values.items() if name in whole},
        )

    def kernel_identity(self) -> str:
        """What two models must have in common to share a kernel; a model without one shares it with none."""
        if "kernel" not in self.options:
            return f"none of {id(self)}"
        names = ["kernel", *KERNELS[self.options["kernel"]].options]
        return repr([self.scale, *(self.options[name] for name in names)])

    @property
    def name(self) -> str:
        """What to call the model in a line."""
        options = self.options
        parts = [self.model]
        if "reg" in options:
            parts.append(f"reg {options['reg']:g}")
        if self.partitions == 1:
            parts.append("one model")
        elif self.copies == 1:
            parts.append(f"{self.partitions} partitions")
        else:
            parts.append(f"{self.partitions * self.copies} buckets, {self.copies} copies")
        if self.partitions > 1 and self.vote == "runoff":
            parts.append("run-off")
        return ", ".join(parts)

    def _described(self) -> str:
        kernel = self.options.get("kernel") if "kernel" in MODELS[self.model].options else None
        return f"--model {self.model}" + (f" with --kernel {kernel}" if kernel else "")


def _dashed(name: str) -> str:
    return {"n_neighbors": "neighbors", "weights": "neighbor-weights"}.get(name, name.replace("_", "-"))
