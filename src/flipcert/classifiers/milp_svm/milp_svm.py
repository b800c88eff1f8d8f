"""Kernel support vector machines with any C, certified by integer programs."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from flipcert.classifiers.certified_by_costs import CertifiedByCosts
from flipcert.classifiers.milp_svm.machine import Machine, rounding_of_sums
from flipcert.classifiers.milp_svm.point import Point
from flipcert.engine.blocks import map_tasks, one_blas_thread
from flipcert.engine.rounding import SAFETY
from flipcert.labels.training_set import TrainingSet
from flipcert.labels.validation import check_number
from flipcert.linear.kernel_rows import is_precomputed, largest_row_sum, ready_kernel, svm_weights
from flipcert.linear.model import Block, LabelLinearModel
from flipcert.linear.product import ProductWeights
from flipcert.results.flip_costs import FlipCosts
from flipcert.results.witness import Witness


class MilpSVM(CertifiedByCosts):
    r"""Soft-margin kernel SVM without bias, one class against the rest, with any C, on small training sets (LabelCert).

    Up to ``C_max_`` the dual variables do not depend on the labels, and this is :class:`flipcert.KernelSVM`: exact and
    fast. Above it, labels and duals change together. The fewest flips are found by a search over labellings, bounded by
    the strong convexity of the machine, and by mixed-integer programs (HiGHS) whose constants shrink with the number of
    flips considered. Near ``C_max_`` a few hundred samples can be solved, far above it a few tens.

    A certificate is exact where ``exact`` says so: proven from below, and an attack that was fitted and works. Where
    time ran out, ``radius`` is the best bound proven until then, ``radius_upper`` the best attack found.

    Parameters
    ----------
    kernel : None, str, kernel object or callable, default=None
        ``None`` is :class:`flipcert.kernels.NTK`; also a name, such as "linear" or "rbf", "precomputed", any
        scikit-learn kernel or callable ``k(X, Z)``.
    C : float, default=1.0
        Largest dual variable, positive.
    time_limit : float, default=60.0
        Seconds for one test point, positive.
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove one of three or more classes by flipping all its labels: certificates end there.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.
    C_max_ : float
        The largest C of the small-C regime, :math:`1 / \max_i \sum_j |Q_{ij}|`; :math:`C / C_{max}` says how hard
        certificates are.

    Notes
    -----
    Machines are solved up to rounding, which the duality gap bounds (about 1e-13 a sample, more for a very large C; a
    fit that does not get there is refused). Decision values closer than that can tell apart count as an attack for the
    radius, and as none for the upper radius. Such points are flagged ``rounding_sensitive`` if it concerns the
    prediction itself.

    See Also
    --------
    KernelSVM : Small C: exact on any number of samples.

    References
    ----------
    Sabanayagam, Gosch, Günnemann and Ghoshdastidar, *Exact Certification of (Graph) Neural Networks Against
    Label Poisoning*, 2025.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = flipcert.MilpSVM("rbf", C=0.2).fit(X[::5], y[::5])
    >>> certificates = model.certify(X[1::30])
    >>> certificates.radius, certificates.exact
    (array([4, 4, 2, 2, 1]), array([ True,  True,  True,  True,  True]))
    """

    _why_rows_must_stay = "the dual variables of all samples change when a row comes or goes"

    def __init__(
        self,
        kernel: Any = None,
        C: float = 1.0,
        time_limit: float = 60.0,
        classes: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.time_limit = time_limit
        self.classes = classes
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        """Tell cross-validation to slice both axes of a precomputed kernel."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags

    _input_types = (np.float64,)

    def _check_parameters(self) -> None:
        check_number(self.C, "C")
        check_number(self.time_limit, "time_limit")

    def _fit(self, training: TrainingSet) -> None:
        inputs = training.inputs
        # The same machine with C small enough: the answer below the threshold, and what it knows of the kernel above.
        self._kernel = ready_kernel(self.kernel, inputs)
        fixed = replace(self._labels, space_is_fixed=True)
        self._small = LabelLinearModel(fixed, svm_weights(self._kernel, inputs), self.n_jobs)
        self._largest_row_sum = largest_row_sum(self._kernel, inputs, self.n_jobs)
        rounding = inputs.shape[0] * float(np.finfo(np.float64).eps)
        self._C = float(self.C)
        self._is_small = self._C * self._largest_row_sum <= 1 + rounding
        self._machines = {} if self._is_small else self._fit_machines(inputs, self._C)

    @property
    def C_max_(self) -> float:
        """The largest C for which the labels cannot change the dual variables."""
        check_is_fitted(self)
        return 1.0 / self._largest_row_sum if self._largest_row_sum > 0 else np.inf

    def _fit_machines(self, X: NDArray[np.float64], C: float) -> dict[int, Machine]:
        """One machine for each class against the rest; of two classes the second is enough."""
        kernel = X if self._kernel is None else self._kernel(X)
        spread = float(np.abs(kernel).max())
        if not np.allclose(kernel, kernel.T, rtol=1e-5, atol=1e-8 * spread):
            raise ValueError("the kernel of the training set must be symmetric.")
        with np.errstate(over="ignore"):
            kernel = (kernel + kernel.T) * (C / 2)
            if not np.isfinite(np.abs(kernel).sum()):
                raise ValueError(
                    f"C={C:g} times the kernel (row sums up to {self._largest_row_sum:.3g}) overflowed; take a "
                    "smaller C or rescale the features."
                )
        values, vectors = np.linalg.eigh(kernel)
        if values[0] < -1e-8 * values[-1]:
            raise ValueError(
                f"the kernel of the training set must be positive semi-definite; got eigenvalues from {values[0]:.3g} "
                f"to {values[-1]:.3g} (times C)."
            )
        kept = values > 1e-10 * values[-1]
        self._inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        # No direction in which the objective is not convex, but for rounding.
        if values[0] < -np.sqrt(values.size) * np.finfo(np.float64).eps * values[-1]:
            kernel[np.diag_indices_from(kernel)] -= values[0]
        machines = {}
        for c in range(self.classes_.size):
            if c > 0 or self.classes_.size > 2:
                with one_blas_thread:  # as when a search fits it again
                    machine = Machine.fit(kernel, np.where(self._labels.codes == c, 1.0, -1.0))
                if not machine.is_solved:
                    raise ValueError(
                        f"the SVM with C={C:g} was not solved (duality gap {machine.gap:.3g}); rescale the features or "
                        "take a smaller C."
                    )
                machines[c] = machine
        return machines

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Decision values of the machines; for two classes that of the second.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.

        Returns
        -------
        ndarray of shape (n_test, n_classes) or (n_test,)

        Examples
        --------
        >>> import flipcert
        >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
        >>> model = flipcert.MilpSVM("linear", C=1.0, classes=[0, 1]).fit(X, y)
        >>> model.decision_function([[0.5]]).round(3)
        array([0.5])
        """
        values = self._decision_values(self._check_test(X))
        return values[:, 1] if self.classes_.size == 2 else values

    def _label_linear(self, X: ArrayLike) -> tuple[LabelLinearModel, NDArray[Any]] | None:
        return (replace(self._small, labels=self._labels), self._check_test(X)) if self._is_small else None

    def _scores(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        rows = self._check_test(X)
        if self._is_small:
            return self._small.scores(rows)
        values = self._decision_values(rows)
        return values, values.argmax(axis=1)

    def _known_costs(self, X: ArrayLike, exact: bool) -> FlipCosts:
        return self._costs(self._check_test(X), exact, cheapest=False)

    def _cheapest_costs(self, X: ArrayLike) -> FlipCosts:
        return self._costs(self._check_test(X), exact=False, cheapest=True)

    # A point may take as long as the time limit.
    _rows_together = 8
    _how_to_close = ", or raise time_limit"

    def _costs(self, rows: NDArray[np.float64], exact: bool, cheapest: bool) -> FlipCosts:
        if self._is_small:
            return self._small.costs(rows, time_limit=self.time_limit if exact else None)
        kernel = self._kernel_rows(rows)
        with one_blas_thread:
            sizes, doubts = self._project(kernel)
            # Another batch of rows may be rounded otherwise.
            doubts += SAFETY * self._unit * self._small.weights.rounding(self._small.weights.features(rows), None)

        facts = list(zip(kernel, sizes.tolist(), doubts.tolist(), strict=True))
        found = map_tasks(partial(self._costs_of_point, exact, cheapest), facts, self.n_jobs)
        attacks: list[dict[int, Witness]] = [own for _, own in found]
        return FlipCosts.joined([costs for costs, _ in found], lambda row, target: attacks[row][target])

    def _costs_of_point(
        self, exact: bool, cheapest: bool, facts: tuple[NDArray[np.float64], float, float]
    ) -> tuple[FlipCosts, dict[int, Witness]]:
        """What is found out about one point, given its row of the kernel, its size and what that leaves unexplained."""
        point = Point(self._machines, self._labels, *facts)
        lower = self._lower_costs(point, exact, cheapest)
        attacks = {target: point.witness(target) for target in point.attacks}
        prediction, sensitive = np.array([point.prediction]), np.array([point.sensitive])
        return FlipCosts(prediction, lower[None], point.upper[None], sensitive), attacks

    def _lower_costs(self, point: Point, exact: bool, cheapest: bool) -> NDArray[np.int64]:
        """Lower bounds on the costs of all classes; attacks are noted in the point.

        A class must beat all others (``exact``); to beat the predicted one is necessary, and for the cheapest class
        sufficient. Where only the ``cheapest`` matters, no bound is raised beyond the best attack.
        """
        labels = self._labels
        others = [c for c in range(labels.n_classes) if c != point.prediction]
        deadline = time.monotonic() + self.time_limit
        lower = np.zeros(labels.n_classes, np.int64)
        if labels.n_movable == 0:
            lower[others] = labels.unreachable
            return lower
        for c in others:
            lower[c] = point.fewest(c, [q for q in range(labels.n_classes) if q != c])
            point.attack_greedily(c, deadline)
        for place, c in enumerate(sorted(others, key=lambda c: (lower[c], point.upper[c]))):
            limit = int(point.upper[others].min() if cheapest else point.upper[c])
            if lower[c] < limit:
                rivals = [q for q in range(labels.n_classes) if q != c] if exact else [point.prediction]
                # An equal share of the time that is left for each class.
                share = (deadline - time.monotonic()) / (len(others) - place)
                proven = point.narrow(c, rivals, int(lower[c]), limit, time.monotonic() + share)
                lower[c] = max(lower[c], proven)
        return np.where(lower > labels.n_movable, labels.unreachable, lower)

    def _runner_up(self, X: ArrayLike, prediction: NDArray[np.int64]) -> NDArray[np.int64]:
        scores = self._decision_values(self._check_test(X))
        np.put_along_axis(scores, prediction[:, None], -np.inf, axis=1)
        return scores.argmax(axis=1)

    def _decision_values(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Decision values of all classes."""
        kernel = self._kernel_rows(rows)
        if self._is_small:
            signs = np.where(self._labels.codes == np.arange(self.classes_.size)[:, None], 1.0, -1.0)
            return kernel @ signs.T
        # Row by row, as certificates see them.
        return np.array([Point(self._machines, self._labels, row, 0.0, 0.0).scores_now for row in kernel])

    def _kernel_rows(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """C times the kernel of each row with all training points."""

        def times_C(block: Block) -> NDArray[np.float64]:
            with np.errstate(over="ignore", invalid="ignore"):
                return block.weights * self._unit

        kernel = np.concatenate(self._small.map_weights(rows, times_C))
        if not np.isfinite(kernel).all():
            raise ValueError(
                f"C={self._C:g} times the kernel of the test points overflowed; take a smaller C or rescale the "
                "features."
            )
        return kernel

    @property
    def _unit(self) -> float:
        """What weights of the small machine are multiplied by: C, and the scale of the kernel if it is left out."""
        weights = self._small.weights
        left_out = weights.unit if isinstance(weights, ProductWeights) else None
        return self._C * (1.0 if left_out is None else left_out)

    def _project(self, kernel: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Squared length of each test point in the span of the training points, and what it leaves unexplained.

        Any combination of training points will do for the first, as long as the second is counted.
        """
        train = next(iter(self._machines.values())).kernel
        combination = kernel @ self._inverse
        image = combination @ train
        weight = np.abs(combination).sum(axis=1)
        rounding = rounding_of_sums(train) * weight
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = np.einsum("ij,ij->i", combination, image) + rounding * weight
            doubts = np.abs(kernel - image).sum(axis=1) + rounding
        if not (np.isfinite(sizes).all() and np.isfinite(doubts).all()):
            raise ValueError("squared norms of the test points overflowed; rescale the features or take a smaller C.")
        return np.maximum(sizes, 0.0), doubts

    def _check_test(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        rows: NDArray[np.float64] = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return rows
