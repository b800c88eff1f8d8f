"""Multinomial logistic regression, and how many flips its predictions provably withstand."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property, partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from flipcert.classifiers.certified_by_costs import CertifiedByCosts
from flipcert.classifiers.logistic.attack import Attacker
from flipcert.classifiers.logistic.bound import Bound
from flipcert.classifiers.logistic.minimiser import minimise
from flipcert.classifiers.logistic.objective import Objective, softmax
from flipcert.classifiers.logistic.preparation import Fit, Preparation, prepare
from flipcert.classifiers.logistic.removal import with_removals
from flipcert.engine.blocks import map_rows, map_threads, one_blas_thread
from flipcert.engine.memory import available_memory, gigabytes
from flipcert.labels.annotations import Annotations
from flipcert.labels.threats import FLIPS, Threat
from flipcert.labels.training_set import TrainingSet
from flipcert.labels.validation import check_flag, check_number
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness

# Matrices of all parameters that are held at once: the Hessian, its eigenvectors and what a solver takes.
_MATRICES = 6
# Values of mu that are tried, in units of the penalty, where all pairs of samples are looked at; and where that would
# take more than so many operations.
_MUS = (4.0, 16.0)
_UNPAIRED_MUS = (1.0, 4.0, 8.0, 16.0, 32.0)
_MOST_OPERATIONS = 1e12
# Rivals whose attacks are looked for where only the cheapest matters.
_NEAREST = 2


class LogisticRegression(CertifiedByCosts):
    r"""Softmax regression with an L2 penalty at its minimiser, with a proven lower bound on the flips it withstands.

    Minimises :math:`\sum_i -\log p_{y_i}(x_i) + \frac{1}{2C} \|W\|^2`, the objective of scikit-learn's
    ``LogisticRegression``. ``radius`` is proven: the effect of flips to first order is bounded exactly, that of second
    and higher order by a penalty that grows with their leverage (docs/logistic.md has the theorem). ``radius_upper``
    is the best attack that was found and refitted. The two meet where C is very small, and part as it grows: where
    single labels move the fit much, nothing can be proven, and ``max_certifiable_`` says from how many flips on.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the penalty, positive. The smaller, the more flips a prediction withstands.
    fit_intercept : bool, default=True
        Add a constant feature. Its weights are penalised like all others, unlike scikit-learn's intercept: without
        that, a class without labels would have no minimiser.
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove one of three or more classes by flipping all its labels: certificates end there.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights, a row for each class; with two classes too.
    intercept_ : ndarray of shape (n_classes,)
        Weights of the constant feature, 0 without one.
    max_certifiable_ : int
        The most flips that the bound can say anything about with this training set, computed when first asked for.

    Notes
    -----
    A fit is accepted if its gradient is shorter than a goal that does not depend on the labels, and refused otherwise.
    Strong convexity says how far an accepted fit can be from the minimiser; a prediction counts as certified only if no
    accepted fit can disagree. All rounding is part of the bound. Predictions are those of scikit-learn's
    ``LogisticRegression(C=C, fit_intercept=False)`` on inputs with a constant column; with two classes, where
    scikit-learn has one row of weights instead of two, of that with ``2 * C``.

    See Also
    --------
    KernelRidge : Exact, and faster.

    References
    ----------
    Koh and Liang, *Understanding Black-box Predictions via Influence Functions*, 2017: the first-order term.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = flipcert.LogisticRegression(C=0.1).fit(X[::2], y[::2])
    >>> certificates = model.certify(X[1::2])
    >>> bool((certificates.radius <= certificates.radius_upper).all())
    True
    """

    _why_rows_must_stay = "the bound is about other labels of the same rows"

    def __init__(
        self, C: float = 1.0, fit_intercept: bool = True, classes: ArrayLike | None = None, n_jobs: int | None = None
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.n_jobs = n_jobs

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | Annotations,
        trusted: ArrayLike | None = None,
        source: ArrayLike | None = None,
        **unknown: object,
    ) -> Self:
        """Fit the model: find the minimiser.

        Parameters
        ----------
        X, y, trusted, source
            As in all estimators of flipcert: training inputs and their labels, which of these an attacker cannot flip,
            and who gave them.
        **unknown
            Nothing: ``sample_weight`` and the like are refused in a sentence.

        Returns
        -------
        self

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
        >>> model = flipcert.LogisticRegression(classes=[0, 1]).fit(X, y)
        >>> model.predict([[0.5]])
        array([1])
        """
        for name in unknown:
            raise TypeError(
                f"fit of LogisticRegression got {name}, which it does not take: the bound is about samples that count "
                "alike; leave it out."
            )
        return super().fit(X, y, trusted, source)

    _input_types = (np.float64,)
    # The training set is looked at again for certificates.
    _copies_inputs = True

    def _check_parameters(self) -> None:
        check_number(self.C, "C")
        check_flag(self.fit_intercept, "fit_intercept")

    def _fit(self, training: TrainingSet) -> None:
        for name in ("_preparation", "_bound", "_attacker"):
            self.__dict__.pop(name, None)
        self._has_intercept = bool(self.fit_intercept)
        X = self._with_constant(training.inputs)
        with np.errstate(over="ignore"):
            penalty = 1.0 / float(self.C)
            largest = np.abs(X).max()
            if not np.isfinite(largest**2 * X.size * max(1.0, float(self.C))) or not 1e-100 < penalty < 1e100:
                raise ValueError(
                    f"C={self.C:g} with features up to {largest:.3g} overflows; rescale the features or take another C."
                )
        objective = Objective(X, penalty, self.classes_.size)
        needed, available = 8 * _MATRICES * objective.n_parameters**2, available_memory()
        if needed > available:
            raise ValueError(
                f"{self.classes_.size} classes times {X.shape[1]} features make {objective.n_parameters:,} weights, "
                f"whose Hessian takes {gigabytes(needed)} of memory to decompose, but {gigabytes(available)} are "
                "available; use fewer features."
            )
        with one_blas_thread:
            state = minimise(objective, training.labels.codes)
            residual = objective.residual(state.W, state.P, training.labels.codes)
        if not residual <= objective.goal:
            raise ValueError(
                f"logistic regression with C={self.C:g} did not converge (its gradient is {residual:.3g}, not at "
                f"most {objective.goal:.3g}), so nothing is proven; rescale the features or take a smaller C."
            )
        self._model = Fit(objective, training.labels, state.W, state.P, residual)
        self.coef_ = state.W[:, : training.inputs.shape[1]].copy()
        self.intercept_ = state.W[:, -1].copy() if self._has_intercept else np.zeros(self.classes_.size)

    def _with_constant(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ascontiguousarray(np.c_[X, np.ones(X.shape[0])] if self._has_intercept else X)

    @property
    def max_certifiable_(self) -> int:
        """The most flips that the bound can say anything about."""
        check_is_fitted(self)
        return self._preparation.limit

    @cached_property
    def _preparation(self) -> Preparation:
        if self._looks_at_pairs:
            return prepare(self._model, _MUS, True, self.n_jobs)
        return prepare(self._model, _UNPAIRED_MUS, False, self.n_jobs)

    @property
    def _looks_at_pairs(self) -> bool:
        objective = self._model.objective
        pairs = float(objective.n_classes * objective.norms.size) ** 2
        return pairs * (4 * objective.X.shape[1] + 20) <= _MOST_OPERATIONS

    @cached_property
    def _bound(self) -> Bound:
        if self._looks_at_pairs:
            return Bound(self._model, self._preparation)
        return Bound(self._model, self._preparation, Bound.fits_single(self._model))

    @cached_property
    def _attacker(self) -> Attacker:
        return Attacker(self._model, self._preparation.spectrum)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of all classes; certificates are about the predicted class, not about these.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.

        Returns
        -------
        ndarray of shape (n_test, n_classes)

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
        >>> model = flipcert.LogisticRegression(classes=[0, 1]).fit(X, y)
        >>> model.predict_proba([[0.5]]).round(3)
        array([[0.338, 0.662]])
        """
        return softmax(self._scores(X)[0])

    def _check_test(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        rows: NDArray[np.float64] = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return rows

    def _scores(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return self._scores_of(self._with_constant(self._check_test(X)))

    def _scores_of(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = rows @ self._model.W.T
            sizes = np.square(rows).sum(axis=1)
        if not (np.isfinite(scores).all() and np.isfinite(sizes).all()):
            raise ValueError("squared norms or scores of the test points overflowed; rescale the features.")
        return scores, scores.argmax(axis=1)

    def _runner_up(self, X: ArrayLike, prediction: NDArray[np.int64]) -> NDArray[np.int64]:
        scores, _ = self._scores(X)
        np.put_along_axis(scores, prediction[:, None], -np.inf, axis=1)
        return scores.argmax(axis=1)

    # Rows that are certified, and kept, at a time.
    _rows_together = 256

    def _flip_costs(self, X: ArrayLike, threat: Threat, bound: str, time_limit: float) -> NDArray[np.int64]:
        if bound != "lower":
            return super()._flip_costs(X, threat, bound, time_limit)
        costs = self._against(threat, self._costs(self._check_test(X), cheapest=False, attack=False))
        return costs.in_label_space(self._labels, threat).lower

    def _in_label_space(self, X: ArrayLike, costs: FlipCosts, threat: Threat) -> FlipCosts:
        costs = super()._in_label_space(X, costs, threat)
        if self._labels.space_is_fixed or threat is not FLIPS:
            return costs

        def refit(codes: NDArray[np.int64], some: NDArray[np.int64]) -> NDArray[np.int64] | None:
            # Inputs have their constant already; classes are named by their indices.
            model = LogisticRegression(self.C, fit_intercept=False, n_jobs=self.n_jobs)
            with suppress(ValueError):
                model.fit(self._model.objective.X, codes)
                return np.asarray(model.predict(self._with_constant(self._check_test(X))[some]), np.int64)
            return None

        return with_removals(costs, self._labels, refit)

    def _known_costs(self, X: ArrayLike, exact: bool) -> FlipCosts:
        return self._costs(self._check_test(X), cheapest=False, rivals=None if exact else _NEAREST)

    def _cheapest_costs(self, X: ArrayLike) -> FlipCosts:
        return self._costs(self._check_test(X), cheapest=True, rivals=_NEAREST)

    def _costs(
        self, inputs: NDArray[np.float64], cheapest: bool, attack: bool = True, rivals: int | None = None
    ) -> FlipCosts:
        """Costs of all classes, or of the cheapest only; with attacks for so many rivals (None: all), if any."""
        rows, labels = self._with_constant(inputs), self._labels
        scores, prediction = self._scores_of(rows)
        # Flips that are proven not to lead to a class; none yet, not even zero.
        floor = np.full(scores.shape, -1, np.int64)
        if self._preparation.limit > 0:
            function = partial(self._raise_floor, rows, scores, prediction, floor, cheapest)
            map_rows(function, rows.shape[0], self._bound.bytes_per_row(), self.n_jobs)
        else:
            self._bound.settle_nothing(rows, scores, prediction, floor)
        np.put_along_axis(floor, prediction[:, None], labels.n_labels, axis=1)
        sensitive = floor.min(axis=1) < 0
        unreachable = (floor >= labels.n_movable) | (labels.n_movable == 0)
        lower = np.where(unreachable, labels.unreachable, np.maximum(floor, 0) + 1)
        np.put_along_axis(lower, prediction[:, None], 0, axis=1)
        costs = FlipCosts.proven(prediction, lower, labels.n_labels)
        costs.sensitive = sensitive
        if attack and labels.n_movable > 0 and labels.n_classes > 1:
            self._add_attacks(costs, rows, rivals or labels.n_classes)
        return costs

    def _raise_floor(
        self,
        rows: NDArray[np.float64],
        scores: NDArray[np.float64],
        prediction: NDArray[np.int64],
        floor: NDArray[np.int64],
        cheapest: bool,
        some: slice,
    ) -> None:
        self._bound.raise_floor(rows[some], scores[some], prediction[some], floor[some], cheapest)

    def _add_attacks(self, costs: FlipCosts, rows: NDArray[np.float64], rivals: int) -> None:
        """Look for attacks on all rows and note their costs."""
        attacker = self._attacker

        def attack(t: int) -> dict[int, Witness]:
            return attacker.attack(rows[t], int(costs.prediction[t]), rivals)

        found = map_threads(attack, range(rows.shape[0]), self.n_jobs)
        for t, witnesses in enumerate(found):
            for c, witness in witnesses.items():
                costs.upper[t, c] = len(witness)
        costs.attack = lambda row, target: found[row][target]
