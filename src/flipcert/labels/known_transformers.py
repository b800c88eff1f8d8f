"""Which pipelines never show a label to their transformers: those of transformers that are known to ignore y."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import joblib
from sklearn.pipeline import Pipeline

from flipcert.labels.label_free import LabelFree

# Transformers of scikit-learn whose fit takes y only to ignore it, and those that only hand it on to their parts.
_HOMES = {
    "sklearn.cluster": ("Birch", "BisectingKMeans", "FeatureAgglomeration", "KMeans", "MiniBatchKMeans"),
    "sklearn.compose": ("ColumnTransformer",),
    "sklearn.decomposition": (
        "DictionaryLearning",
        "FactorAnalysis",
        "FastICA",
        "IncrementalPCA",
        "KernelPCA",
        "LatentDirichletAllocation",
        "MiniBatchDictionaryLearning",
        "MiniBatchNMF",
        "MiniBatchSparsePCA",
        "NMF",
        "PCA",
        "SparseCoder",
        "SparsePCA",
        "TruncatedSVD",
    ),
    "sklearn.ensemble": ("RandomTreesEmbedding",),
    "sklearn.feature_extraction": ("DictVectorizer", "FeatureHasher"),
    "sklearn.feature_extraction.image": ("PatchExtractor",),
    "sklearn.feature_extraction.text": ("CountVectorizer", "HashingVectorizer", "TfidfTransformer", "TfidfVectorizer"),
    "sklearn.feature_selection": ("VarianceThreshold",),
    "sklearn.frozen": ("FrozenEstimator",),
    "sklearn.impute": ("IterativeImputer", "KNNImputer", "MissingIndicator", "SimpleImputer"),
    "sklearn.kernel_approximation": (
        "AdditiveChi2Sampler",
        "Nystroem",
        "PolynomialCountSketch",
        "RBFSampler",
        "SkewedChi2Sampler",
    ),
    "sklearn.manifold": ("Isomap", "LocallyLinearEmbedding"),
    "sklearn.neighbors": ("KNeighborsTransformer", "RadiusNeighborsTransformer"),
    "sklearn.neural_network": ("BernoulliRBM",),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "Binarizer",
        "FunctionTransformer",
        "KBinsDiscretizer",
        "KernelCenterer",
        "MaxAbsScaler",
        "MinMaxScaler",
        "Normalizer",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PolynomialFeatures",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "SplineTransformer",
        "StandardScaler",
    ),
    "sklearn.random_projection": ("GaussianRandomProjection", "SparseRandomProjection"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_FITTING = {"fit", "fit_transform", "partial_fit", "transform"}


def known_name(transformer: Any) -> str | None:
    """Name of the transformer if its class is one of scikit-learn's above, or LabelFree; subclasses have none."""
    kind = type(transformer)
    if kind is LabelFree:
        return "LabelFree"
    if kind.__name__ not in _HOME_OF or not kind.__module__.startswith("sklearn."):
        return None
    # Names can be borrowed, so the class itself is compared.
    own = vars(import_module(_HOME_OF[kind.__name__])).get(kind.__name__)
    return kind.__name__ if own is kind else None


def require_label_free(pipeline: Pipeline) -> None:
    """Raise ValueError unless every step before the last is known never to use a label."""
    if known_name(pipeline) != "Pipeline":
        raise ValueError(
            f"{type(pipeline).__name__} is a pipeline of its own kind, whose fit may show labels to its transformers; "
            "use sklearn.pipeline.Pipeline."
        )
    _require_untouched("the pipeline", pipeline)
    for name, step in pipeline.steps[:-1]:
        _require_label_free(name, step)


def is_label_free(pipeline: Pipeline) -> bool:
    """Whether every step before the last is known never to use a label."""
    try:
        require_label_free(pipeline)
    except ValueError:
        return False
    return True


def _require_label_free(name: str, step: Any) -> None:
    if step is None or (type(step) is str and step in ("passthrough", "drop")):
        return
    kind = type(step).__name__
    if known_name(step) is None:
        raise ValueError(
            f"the step {name!r} ({kind}) may use y, and then flipped labels would change the features and void the "
            f"certificate; if it needs no labels, fit it without them: flipcert.LabelFree({kind}(...))."
        )
    _require_untouched(f"the step {name!r} ({kind})", step)
    for inner, part in parts_of(step):
        _require_label_free(f"{name}__{inner}", part)


def _require_untouched(what: str, step: Any) -> None:
    """Raise ValueError if something that is handed labels was put into an object of a known class."""
    own = [name for name in vars(step) if name in _FITTING or callable(getattr(type(step), name, None))]
    if own:
        raise ValueError(f"{what} has a method {own[0]} of its own, which may use y; put it into a class of yours.")
    # From scikit-learn 1.9 on. They are given y and the estimator, and may change the one by the other.
    for callback in vars(step).get("_skl_callbacks", ()):
        raise ValueError(f"{what} has the callback {type(callback).__name__}, which is given y; fit without callbacks.")
    memory = vars(step).get("memory") if known_name(step) == "Pipeline" else None
    if memory is not None and (type(memory) not in (str, joblib.Memory) or "cache" in getattr(memory, "__dict__", {})):
        raise ValueError(f"{what} has memory={memory!r}, which is given y; use a folder or a joblib.Memory.")


def parts_of(step: Any) -> Iterator[tuple[str, Any]]:
    """Name and transformer of all parts that a known transformer hands labels on to."""
    match known_name(step):
        case "Pipeline":
            yield from step.steps
        case "FeatureUnion":
            yield from step.transformer_list
        case "ColumnTransformer":
            # Those that were fitted transform, and those that were given would be fitted again.
            for name, part, _ in [*step.transformers, *getattr(step, "transformers_", ())]:
                yield name, part
            yield "remainder", step.remainder
