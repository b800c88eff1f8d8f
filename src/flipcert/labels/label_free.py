"""A transformer that is fitted without labels, whatever it is handed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


def _transformer_has(method: str) -> Callable[[LabelFree], bool]:
    return lambda model: hasattr(getattr(model, "transformer_", model.transformer), method)


_WAY_OUT = "fit it on other, trusted data and freeze it with sklearn.frozen.FrozenEstimator"


class LabelFree(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[misc,call-arg]
    """Fit a transformer without labels, so that a pipeline with it can be certified.

    A pipeline hands the labels to each of its steps. For some transformers of scikit-learn it is known that they leave
    them alone; any other, a subclass or one of your own, is wrapped: ``LabelFree(MyTransformer())``. Its ``fit`` is
    called with ``X`` alone, so flipped labels cannot change the features.

    Parameters
    ----------
    transformer : transformer
        Any transformer whose ``fit`` can do without y. It must be deterministic.

    Attributes
    ----------
    transformer_ : transformer
        The fitted copy.
    n_features_in_ : int
        Number of features seen in ``fit``, if the transformer tells.
    feature_names_in_ : ndarray of str
        Names of these features, if the transformer tells.

    See Also
    --------
    certify : Certifies pipelines whose steps never see a label.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import flipcert
    >>> class Doubled(StandardScaler):
    ...     def transform(self, X):
    ...         return 2 * super().transform(X)
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(flipcert.LabelFree(Doubled()), flipcert.KernelRidge())
    >>> model = model.fit(X[::2], y[::2])
    >>> flipcert.certify(model, X[1::2]).radius[:5]
    array([ 5,  6, 10, 14,  7])
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def __sklearn_tags__(self) -> Tags:
        """Take the inputs that the transformer takes."""
        tags = super().__sklearn_tags__()
        if hasattr(self.transformer, "__sklearn_tags__") and not isinstance(self.transformer, type):
            inner = get_tags(self.transformer)
            tags.input_tags = inner.input_tags
            tags.transformer_tags = inner.transformer_tags
            tags.no_validation = inner.no_validation
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a copy of the transformer.

        There are no other arguments, as weights or groups could carry labels too.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training inputs.
        y : object
            Ignored.

        Returns
        -------
        self
        """
        transformer = self._copy()
        self._without_labels(transformer.fit, X)
        self.transformer_ = transformer
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit a copy of the transformer, and transform its training inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training inputs.
        y : object
            Ignored.

        Returns
        -------
        array-like of shape (n_samples, n_features_out)
        """
        transformer = self._copy()
        if not hasattr(transformer, "fit_transform"):
            return self.fit(X).transform(X)
        features = self._without_labels(transformer.fit_transform, X)
        self.transformer_ = transformer
        return features

    def transform(self, X: Any) -> Any:
        """Transform inputs.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Inputs.

        Returns
        -------
        array-like of shape (n_rows, n_features_out)
        """
        check_is_fitted(self)
        return self.transformer_.transform(X)

    @available_if(_transformer_has("get_feature_names_out"))  # type: ignore[untyped-decorator]
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features that come out.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of those that go in.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    @available_if(_transformer_has("set_output"))  # type: ignore[untyped-decorator]
    def set_output(self, *, transform: str | None = None) -> LabelFree:
        """Choose the container that comes out, as scikit-learn's ``set_output`` does.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            The container; None leaves it as it is.

        Returns
        -------
        self
        """
        self.transformer.set_output(transform=transform)
        if "transformer_" in vars(self):
            self.transformer_.set_output(transform=transform)
        return self

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in ``fit``."""
        return int(self._fitted("n_features_in_").n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of features seen in ``fit``."""
        return self._fitted("feature_names_in_").feature_names_in_

    def _fitted(self, wanted: str) -> Any:
        if "transformer_" not in vars(self):
            raise AttributeError(f"LabelFree has {wanted} once it is fitted.")
        return self.transformer_

    def _copy(self) -> Any:
        """A copy of the transformer, to be fitted."""
        transformer = self.transformer
        if isinstance(transformer, type) or not all(hasattr(transformer, method) for method in ("fit", "transform")):
            raise ValueError(
                f"transformer must be a transformer object, such as StandardScaler(); got {transformer!r}."
            )
        if hasattr(transformer, "__sklearn_tags__") and get_tags(transformer).target_tags.required:
            name = type(transformer).__name__
            raise ValueError(f"LabelFree fits {name} without labels, but {name} needs them; {_WAY_OUT}.")
        return clone(transformer)

    def _without_labels(self, method: Callable[..., Any], X: Any) -> Any:
        """Call a method that fits; if its signature insists on labels, they are None."""
        parameters = list(inspect.signature(method).parameters.values())
        asked = len(parameters) > 1 and parameters[1].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        try:
            return method(X, None) if asked and parameters[1].default is inspect.Parameter.empty else method(X)
        except Exception as error:
            # Why it failed is not known here.
            error.add_note(
                f"LabelFree fits {type(self.transformer).__name__} without labels; if it needs them, {_WAY_OUT}."
            )
            raise
