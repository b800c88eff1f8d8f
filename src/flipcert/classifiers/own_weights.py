"""The base of label-linear classifiers that users write: how inputs become weights is theirs, the rest is here."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.labels.randomness import chances
from flipcert.linear.own_weights import OwnWeights, most_by_rounding, read_only, relative_difference
from flipcert.linear.weights import Weights

# Training rows that are fitted twice, to see whether the same weights come out.
_REHEARSED = 32
# Parameters that all have.
_GIVEN = ("classes", "n_jobs")
# What a fitted model holds, beside what its class has.
_KEPT = (
    "classes_", "label_linear_", "n_features_in_", "feature_names_in_", "_labels", "_has_annotations", "_description",
    "_learned", "_unlabelled",
)  # fmt: skip


class LabelLinearClassifier(CertifiedByWeights):
    r"""Base of label-linear classifiers of your own: two methods say how inputs become weights.

    Scores are :math:`s_c(t) = \sum_i w_i(t) [y_i = c]`, ties go to the class that comes first. A subclass writes
    ``fit_inputs(X)`` and ``weights(X)``; fitting, predictions, exact certificates, attacks and votes in a
    :class:`flipcert.PartitionEnsemble` follow.

    Labels never reach these methods. They are called on a copy of the estimator that holds its parameters (without
    ``classes``) and what ``fit_inputs`` sets, and nothing else; that is also found on the fitted estimator. What is
    left to the author is in ``docs/smoothers.md``: parameters, features and whatever else the methods use must not
    have been chosen from the labels under attack.

    Parameters
    ----------
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove one of three or more classes by flipping all its labels: certificates end there.
    n_jobs : int, optional
        Threads; all cores by default. ``weights`` is called from all of them.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.
    n_samples_fit_ : int
        Number of training rows; ``fit_inputs`` and ``weights`` may use it.

    Notes
    -----
    An ``__init__`` of your own stores its parameters, as in scikit-learn. Name ``classes`` and ``n_jobs`` among them,
    or the label space is always read from ``y``, and all cores are used.

    ``fit`` calls ``fit_inputs`` again on a few rows, and ``weights`` for a few training rows, together and alone. It
    refuses weights that change from call to call, from fit to fit, or with the other rows of X.

    See Also
    --------
    flip_costs : The same for weights in an array.
    FixedBudget : A classifier that is not linear in its labels, with a verifier.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import cdist
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> class CauchySmoother(flipcert.LabelLinearClassifier):
    ...     def fit_inputs(self, X):
    ...         self.X_ = X
    ...     def weights(self, X):
    ...         return 1 / (1 + cdist(X, self.X_, "sqeuclidean"))
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CauchySmoother(classes=[0, 1, 2]).fit(X[::2], y[::2])
    >>> model.certify(X[1::2]).radius[:5]
    array([8, 8, 8, 9, 8])
    """

    classes: ArrayLike | None = None
    n_jobs: int | None = None
    n_samples_fit_: int
    # Attributes that are there because fit_inputs set them; and, during fit, a copy that was made before it saw labels.
    _learned: tuple[str, ...]
    _unlabelled: LabelLinearClassifier

    # Parameters are told by their names: a "kernel" here is none of flipcert's.
    parameters_are_its_own = True

    _why_rows_must_stay = "weights of one's own may change when a row comes or goes"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _PRIVATE:
            if getattr(cls, name) is not getattr(LabelLinearClassifier, name):
                raise TypeError(
                    f"{cls.__name__} has a {name} of its own, a name that LabelLinearClassifier keeps for itself; "
                    "choose another."
                )

    def __init__(self, classes: ArrayLike | None = None, n_jobs: int | None = None) -> None:
        self.classes = classes
        self.n_jobs = n_jobs

    def fit_inputs(self, X: NDArray[Any]) -> Any:
        """Keep of the training inputs what weights need: to be written by a subclass.

        Parameters
        ----------
        X : ndarray of shape (n_train, n_features)
            Training inputs, of type float64 or float32, read-only. It must be repeatable: random numbers come from a
            seed that is a parameter.

        Returns
        -------
        object
            Ignored.
        """
        raise NotImplementedError(_write_them(self))

    def weights(self, X: NDArray[Any]) -> Any:
        """Weigh all training rows for each row of X: to be written by a subclass.

        Parameters
        ----------
        X : ndarray of shape (n_test, n_features)
            Some rows, of the type of the training inputs, read-only. Other blocks may hold the same rows among others,
            and several threads may ask at once: weights of a row depend on the training inputs and that row alone.

        Returns
        -------
        array-like or sparse matrix of shape (n_test, n_train)
            Finite numbers of any sign. They are kept in the precision of X.
        """
        if _is_written("weight_tile", type(self)):
            return self.weight_tile(X, 0, self.n_samples_fit_)
        raise NotImplementedError(_write_them(self))

    def weight_tile(self, X: NDArray[Any], start: int, stop: int) -> Any:
        """Weigh some training rows: to be written where rows of weights are too long to be held.

        If a subclass has it, weights are formed in such tiles, and ``weights`` need not be written.

        Parameters
        ----------
        X : ndarray of shape (n_test, n_features)
            As in :meth:`weights`.
        start, stop : int
            The training rows that are asked about.

        Returns
        -------
        array-like or sparse matrix of shape (n_test, stop - start)
            These columns of ``weights(X)``.
        """
        raise NotImplementedError(f"{type(self).__name__} weighs all training rows at once.")

    def weight_rounding(self, X: NDArray[Any]) -> ArrayLike | None:
        """Tell by how much rounding could move each row of weights: may be written by a subclass.

        A product may round a row differently when it comes with other rows. Points for which that could matter are
        flagged ``rounding_sensitive``; the certificate itself does not depend on this.

        Parameters
        ----------
        X : ndarray of shape (n_test, n_features)
            As in :meth:`weights`.

        Returns
        -------
        array-like of shape (n_test,) or None
            Estimated root of the sum of squared errors of each row, 0 where a row is the same to the bit whatever comes
            with it. None: estimated from the size of the weights, and from how far some were seen to move in ``fit``.
        """
        return None

    def _check_parameters(self) -> None:
        """Forget an earlier fit, and make a copy before a label is seen: only that copy is asked for weights."""
        kind = type(self)
        for name in kind._get_param_names():
            if name.startswith("_") or name in _KEPT or (hasattr(LabelLinearClassifier, name) and name not in _GIVEN):
                raise TypeError(
                    f"{kind.__name__} has a parameter {name}, a name that LabelLinearClassifier keeps for itself; "
                    "choose another."
                )
            if hasattr(getattr(kind, name, None), "__set__"):
                raise TypeError(
                    f"{kind.__name__} has a property {name} in place of a parameter, which may hold anything; store "
                    "parameters as they are."
                )
        for name in (*self.__dict__.get("_learned", ()), *_KEPT):
            self.__dict__.pop(name, None)
        self._unlabelled = clone(self)

    def _make_weights(self, X: NDArray[Any]) -> Weights:
        weights, learned = self._fitted_to(X)
        weights.require_steady(X)
        self._require_repeatable(X, weights)
        del self._unlabelled
        self.__dict__.update(learned)
        self._learned = tuple(learned)
        return weights

    def _fitted_to(self, X: NDArray[Any]) -> tuple[OwnWeights, dict[str, Any]]:
        """Weights of a copy of the estimator that never saw a label, fitted to inputs, and what it has learned."""
        smoother = clone(self._unlabelled)
        if "classes" in smoother.get_params(deep=False):
            # An ensemble may have read them from the labels.
            smoother.set_params(classes=None)
        given, kind = dict(vars(smoother)), type(self).__name__
        smoother.n_samples_fit_ = X.shape[0]
        for chance in chances(smoother):
            raise ValueError(
                f"{chance.parameter} of {kind} is {chance.value}, so every fit would lead to other weights and void "
                f"the certificate; {chance.remedy}."
            )
        smoother.fit_inputs(read_only(X))
        for name, value in given.items():
            if vars(smoother).get(name, self) is not value:
                raise ValueError(f"fit_inputs of {kind} changes its parameter {name}; keep what it learns elsewhere.")
        learned = {name: value for name, value in vars(smoother).items() if name not in given}
        for name in learned:
            is_other = name == "n_samples_fit_" and smoother.n_samples_fit_ != X.shape[0]
            if name in _KEPT or hasattr(LabelLinearClassifier, name) or is_other:
                raise ValueError(
                    f"fit_inputs of {kind} sets {name}, a name that LabelLinearClassifier keeps for itself; choose "
                    "another."
                )
        for name, chance in ((name, chance) for name, value in learned.items() for chance in chances(value)):
            place = f"{name}.{chance.parameter}".rstrip(".").replace(".[", "[")
            raise ValueError(
                f"fit_inputs of {kind} sets {place} to {chance.value}, so weights could change from fit to fit, or "
                "from call to call, and void the certificate; seed what is random by a whole number that is a "
                "parameter, and keep only what was drawn."
            )
        return OwnWeights(smoother, X, _is_written("weight_tile", type(self))), learned

    def _require_repeatable(self, X: NDArray[Any], weights: OwnWeights) -> None:
        """Raise ValueError if the same few rows, fitted twice, are weighed differently: no proof, but a sign."""
        few = X[:_REHEARSED]
        try:
            first = weights if len(few) == len(X) else self._fitted_to(few)[0]
            second = self._fitted_to(few)[0]
            moved = relative_difference(first.formed_rows(few), second.formed_rows(few))
        except Exception:
            # It may need more rows than these, and the fit itself went well.
            return
        if moved > most_by_rounding(X.dtype):
            raise ValueError(
                f"fit_inputs of {type(self).__name__} led to other weights when the same {len(few)} rows were fitted "
                "again, so nothing is proven about another fit; seed what is random by a parameter."
            )


def _is_written(method: str, kind: type[LabelLinearClassifier]) -> bool:
    return getattr(kind, method) is not getattr(LabelLinearClassifier, method)


def _write_them(model: LabelLinearClassifier) -> str:
    return (
        f"{type(model).__name__} does not say how inputs become weights; write fit_inputs(self, X) and "
        "weights(self, X) in a class that derives from flipcert.LabelLinearClassifier."
    )


# What a subclass must not replace, by accident or not: names of flipcert's own, and what could copy labels.
_PRIVATE = sorted(
    {"__sklearn_clone__", "__setattr__", "get_params", "set_params"}
    | {
        name
        for kind in LabelLinearClassifier.__mro__
        if kind.__module__.startswith("flipcert.")
        for name in vars(kind)
        if name.startswith("_") and not name.startswith("__")
    }
)
