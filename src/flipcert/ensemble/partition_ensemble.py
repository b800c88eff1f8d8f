"""Partition ensembles: one base classifier on each disjoint part of the training set, and a vote."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from flipcert.certificates import Certificates
from flipcert.classifiers.targets import encode_labels, in_user_labels
from flipcert.engine.blocks import block_rows, join, map_blocks, map_tasks
from flipcert.ensemble.ballots import Ballots, Gap, Outcome
from flipcert.ensemble.partition import assign_partitions
from flipcert.ensemble.voters import Voter, fit_voter
from flipcert.ensemble.votes import count_votes
from flipcert.flips.witness import Witness
from flipcert.validation import check_choice, check_mask, check_n_jobs, check_number


class PartitionEnsemble(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Ensemble over disjoint partitions of the training set; the class with most votes is the prediction.

    A flipped label reaches one base classifier only. Knowing nothing else, each flip may change one vote: the
    black-box certificate (SS-DPA), for any deterministic base classifier. Knowing how many flips each vote takes, the
    white-box certificate (EnsembleCert) is at least as large.

    Parameters
    ----------
    estimator : estimator
        Base classifier: one of flipcert, a pipeline of label-free transformers that ends in one, or any scikit-learn
        classifier (black-box certificate only).
    n_partitions : int, default=10
        Number of partitions.
    partition : {"sorted", "hash", "random"} or array-like of int of shape (n_samples,), default="sorted"
        How rows are assigned, never by label: dealt out in lexicographic order of their features, by a hash of their
        features, at random, or as given (numbers from 0 to ``n_partitions - 1``). "sorted" and "hash" keep identical
        rows together.
    classes : array-like, optional
        The whole label space, if it has classes that ``y`` may lack. It is a set: order is ignored.
    random_state : int, default=0
        Seed of the "random" rule.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.
    partition_ : ndarray of int64
        Partition of each training row.
    estimators_ : list
        The fitted base classifiers.
    C_max_ : float
        Smallest ``C_max_`` of the base classifiers, where they have one.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import flipcert
    >>> X, y = load_digits(return_X_y=True)
    >>> base = flipcert.KernelRidge(reg=10.0)
    >>> model = flipcert.PartitionEnsemble(base, n_partitions=10).fit(X[::2], y[::2])
    >>> certificates = model.certify(X[1::2])
    >>> certificates.radius[:6], certificates.blackbox_radius[:6]
    (array([10,  7,  0,  5,  3,  3]), array([4, 4, 0, 4, 3, 3]))
    """

    def __init__(
        self,
        estimator: Any,
        n_partitions: int = 10,
        partition: Any = "sorted",
        classes: ArrayLike | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_partitions = n_partitions
        self.partition = partition
        self.classes = classes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        """Tell cross-validation whether the base classifier takes a precomputed kernel."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = hasattr(self.estimator, "fit") and get_tags(self.estimator).input_tags.pairwise
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, trusted: ArrayLike | None = None) -> PartitionEnsemble:
        """Partition the training set and fit a base classifier on each part.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training inputs, trusted. They, their preprocessing and every hyper-parameter must have been chosen
            without the labels under attack, or the certificate is void.
        y : array-like of shape (n_samples,)
            Training labels of any type.
        trusted : array-like of bool of shape (n_samples,), optional
            Labels that an attacker cannot flip.

        Returns
        -------
        self
        """
        check_n_jobs(self.n_jobs)
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit") or not is_classifier(self.estimator):
            raise ValueError(f"estimator must be a classifier object, such as KernelSVM(); got {self.estimator!r}.")
        inputs, targets = validate_data(self, X, y, dtype=[np.float64, np.float32], order="C")
        self.classes_, _ = encode_labels(targets, self.classes)
        mask = check_mask(trusted, targets.size)
        self._pairwise = bool(get_tags(self.estimator).input_tags.pairwise)
        if self._pairwise and inputs.shape[0] != inputs.shape[1]:
            raise ValueError(f'X must be square with kernel="precomputed"; got shape {inputs.shape}.')
        self.partition_ = assign_partitions(inputs, self.n_partitions, self.partition, self.random_state)
        self._dtype = inputs.dtype
        self._n_labels = targets.size

        def fit_one(number: int) -> Voter:
            members = np.flatnonzero(self.partition_ == number)
            own = inputs[np.ix_(members, members)] if self._pairwise else inputs[members]
            own_mask = None if mask is None else mask[members]
            return fit_voter(
                self.estimator, number, own, targets[members], self.classes_, members, own_mask, self._n_labels
            )

        self._voters = map_tasks(fit_one, range(self.n_partitions), self.n_jobs)
        self.estimators_ = [voter.estimator for voter in self._voters]
        return self

    @property
    def C_max_(self) -> float:
        """The smallest threshold of the base classifiers."""
        check_is_fitted(self)
        return min(estimator.C_max_ for estimator in self.estimators_)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class with most votes, ties to the smaller class.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.

        Returns
        -------
        ndarray of shape (n_test,)
        """
        winners = self._counts(X).argmax(axis=1)
        return self.classes_[winners]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Votes of each class; for two classes the second minus the first.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.

        Returns
        -------
        ndarray of shape (n_test, n_classes) or (n_test,)
        """
        counts = self._counts(X).astype(np.float64)
        return counts[:, 1] - counts[:, 0] if self.classes_.size == 2 else counts

    def certify(self, X: ArrayLike, exact: bool = False, time_limit: float = 60.0) -> Certificates:
        """Certify each prediction: how many label flips it withstands.

        Costs of base classifiers are exact where their weights are not negative, and the best bounds elsewhere.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        exact : bool, default=False
            Solve integer programs for the costs that still leave a radius open.
        time_limit : float, default=60.0
            Seconds for one integer program; a cost that is not solved in time stays a bound.

        Returns
        -------
        Certificates
        """
        check_number(time_limit, "time_limit")

        def block(rows: NDArray[Any], n_rows: int) -> Outcome:
            return self._ballots(rows, n_rows, exact, time_limit).outcome()

        outcome: Outcome = join(self._map(block, X))
        return Certificates(
            prediction=self.classes_[outcome.prediction],
            radius=outcome.radius,
            radius_upper=outcome.radius_upper,
            blackbox_radius=outcome.blackbox_radius,
            runner_up=self.classes_[outcome.runner_up],
            target=np.ma.masked_array(self.classes_[np.maximum(outcome.target, 0)], mask=outcome.target < 0),
            rounding_sensitive=outcome.rounding_sensitive,
            n_labels=self._n_labels,
        )

    def flip_costs(self, X: ArrayLike, bound: str = "lower", time_limit: float = 60.0) -> NDArray[np.int64]:
        """Fewest label flips after which each class wins the vote.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        bound : {"lower", "upper", "exact"}, default="lower"
            Proven from below, reached by an attack, or both (by integer programs).
        time_limit : float, default=60.0
            Seconds for one integer program (``bound="exact"`` only).

        Returns
        -------
        ndarray of int64 of shape (n_test, n_classes)
        """
        check_choice(bound, "bound", ("lower", "upper", "exact"))
        check_number(time_limit, "time_limit")

        def block(rows: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
            ballots = self._cast(rows, n_rows)
            if bound == "exact":
                self._solve(ballots, rows, ballots.all_gaps(), time_limit)
            return ballots.reach_costs(bound, time_limit)

        return np.concatenate(self._map(block, X))

    def worst_flips(self, X: ArrayLike, exact: bool = False, time_limit: float = 60.0) -> list[Witness | None]:
        """Label flips that change each prediction: the smallest known attack, ``radius_upper + 1`` flips.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        exact : bool, default=False
            As in :meth:`certify`.
        time_limit : float, default=60.0
            As in :meth:`certify`.

        Returns
        -------
        list of Witness or None
            ``witness.indices`` into the whole training set and ``witness.labels`` to put there. None where no attack
            is known.
        """
        check_number(time_limit, "time_limit")

        def block(rows: NDArray[Any], n_rows: int) -> list[Witness | None]:
            ballots = self._ballots(rows, n_rows, exact, time_limit)
            return self._attacks(ballots, rows, time_limit if exact else None)

        return [in_user_labels(witness, self.classes_) for part in self._map(block, X) for witness in part]

    def _ballots(self, rows: NDArray[Any], n_rows: int, exact: bool, time_limit: float) -> Ballots:
        """Ballots on the first rows of a block, with the costs that decide solved if ``exact``."""
        ballots = self._cast(rows, n_rows)
        unsolved: set[tuple[int, int, int]] = set()
        while exact and (gaps := ballots.deciding_gaps(skip=unsolved)):
            unsolved |= self._solve(ballots, rows, gaps, time_limit)
        return ballots

    def _cast(self, rows: NDArray[Any], n_rows: int) -> Ballots:
        """Ballots of all voters on the first rows of a block."""
        cast = [voter.cast(self._inputs(rows, voter), n_rows) for voter in self._voters]
        columns = {name: np.stack([getattr(ballot, name) for ballot in cast], axis=1) for name in vars(cast[0])}
        movable = np.array([voter.movable for voter in self._voters])
        return Ballots(**columns, movable=movable, n_labels=self._n_labels)

    def _solve(
        self, ballots: Ballots, rows: NDArray[Any], gaps: dict[int, list[Gap]], time_limit: float
    ) -> set[tuple[int, int, int]]:
        """Replace bounds by exact costs; return the (row, voter, class) that were not solved in time."""
        unsolved = set()
        for i, entries in gaps.items():
            costs = self._voters[i].exact_costs(self._inputs(rows, self._voters[i]), entries, time_limit)
            for (t, c, _, _), cost in zip(entries, costs, strict=True):
                if cost is None:
                    unsolved.add((t, i, c))
                else:
                    ballots.lower[t, i, c] = ballots.upper[t, i, c] = cost
        return unsolved

    def _attacks(self, ballots: Ballots, rows: NDArray[Any], time_limit: float | None) -> list[Witness | None]:
        """For each row the flips of all partitions that the cheapest known attack takes."""
        wanted: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for t, plan in ballots.plans(ballots.upper).items():
            for i in np.flatnonzero(plan != ballots.votes[t]).tolist():
                wanted[i].append((t, int(plan[i])))
        flips: dict[int, list[Witness]] = defaultdict(list)
        for i, entries in wanted.items():
            witnesses = self._voters[i].witnesses(self._inputs(rows, self._voters[i]), entries, time_limit)
            for (t, _), witness in zip(entries, witnesses, strict=True):
                flips[t].append(witness)
        return [Witness.union(flips[t]) if t in flips else None for t in range(ballots.votes.shape[0])]

    def _counts(self, X: ArrayLike) -> NDArray[np.int64]:
        """Votes of each class for each row."""

        def block(rows: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
            votes = np.stack([voter.vote(self._inputs(rows, voter), n_rows) for voter in self._voters], axis=1)
            return count_votes(votes, self.classes_.size)

        return np.concatenate(self._map(block, X))

    def _map(self, function: Callable[[NDArray[Any], int], Any], X: ArrayLike) -> list[Any]:
        """Call ``function`` on blocks of rows."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=[self._dtype], order="C")
        largest = max(voter.members.size for voter in self._voters)
        n_costs = len(self._voters) * self.classes_.size
        return map_blocks(function, rows, block_rows(8 * max(largest, 4 * n_costs)), self.n_jobs)

    def _inputs(self, rows: NDArray[Any], voter: Voter) -> NDArray[Any]:
        """Rows as a base classifier takes them: all features, or the kernel with its own samples."""
        return np.ascontiguousarray(rows[:, voter.members]) if self._pairwise else rows
