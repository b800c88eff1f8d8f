"""Partition ensembles: one base classifier on each disjoint part of the training set, and a vote."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from flipcert.classifiers.certified import CertifiedClassifier
from flipcert.engine.blocks import map_blocks, map_tasks
from flipcert.engine.cluster.engines import functions_stay
from flipcert.engine.magnitude import told_with
from flipcert.engine.sparse import reason_for
from flipcert.engine.watch import Watcher, counted, current_watcher
from flipcert.ensemble.assembly import Assembly
from flipcert.ensemble.electorate import Electorate
from flipcert.ensemble.gathering import gathered
from flipcert.ensemble.parts import cut, numbers_of_labels
from flipcert.ensemble.ranking import require_scores
from flipcert.ensemble.sharing import assign_buckets, check_copies, users_of_buckets
from flipcert.ensemble.voters import VoterFit, check_base, is_label_linear
from flipcert.ensemble.votes.ballots import Ballots
from flipcert.ensemble.votes.reach import Buckets
from flipcert.ensemble.white_box import WhiteBox
from flipcert.flips.costs import KINDS
from flipcert.labels.steps import final_step, require_classifier, takes_a_kernel_matrix, takes_sparse, transforms
from flipcert.labels.threats import FLIPS, Threat
from flipcert.labels.training_set import TrainingSet, read_test_inputs
from flipcert.labels.validation import check_choice
from flipcert.results.certificates import Certificates
from flipcert.results.witness import Witness

# Why nothing is proven where rows come or go, under each rule but the one that looks at one row at a time.
_WHERE_ROWS_GO = {
    "sorted": 'rows of partition="sorted" move to other partitions when others come or go',
    "random": 'rows of partition="random" move to other partitions when others come or go',
    "source": 'sources of partition="source" move to other partitions when they gain or lose rows',
    "given": "nobody knows which partition a new row would be given",
}


class PartitionEnsemble(CertifiedClassifier):
    """Ensemble over disjoint partitions of the training set; the class with most votes is the prediction.

    A flipped label reaches one base classifier only, unless ``copies`` are asked for. Knowing nothing else, each flip
    may change one vote: the black-box certificate (SS-DPA), for any deterministic base classifier. Knowing how many
    flips each vote takes, the white-box certificate (EnsembleCert) is at least as large.

    Parameters
    ----------
    estimator : estimator
        Base classifier: one of flipcert, any other that has ``flip_costs(X, bound="lower")``, a pipeline of label-free
        transformers that ends in one, or any scikit-learn classifier (black-box certificate only).
    n_partitions : int, default=10
        Number of partitions.
    partition : {"sorted", "hash", "random", "source"} or array-like of int of shape (n_samples,), default="sorted"
        How rows are assigned, never by label: dealt out in lexicographic order of their features, by a hash of their
        features, at random, all labels of a source together, or as given (numbers from 0 to ``n_partitions - 1``).
        "sorted" and "hash" keep identical rows together. "source" needs ``fit(X, y, source=...)``, and is best against
        ``threat="sources"``. "hash" is for threats that add or delete rows; partitions may be empty, which vote for the
        first class.
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove one of three or more classes by flipping all its labels: certificates end there.
    random_state : int, default=0
        Seed of the "random" rule, and of which base classifiers share rows.
    n_jobs : int, optional
        Threads; all cores by default.
    vote : {"majority", "runoff"}, default="majority"
        What makes a winner of votes. "runoff" (Run-Off Election): of the two classes with most votes, the one that more
        base classifiers prefer, by their scores; ties to the class that comes first. It needs ``decision_function`` or
        ``predict_proba`` of the base classifier, and knows no attacks.
    copies : int, default=1
        How many base classifiers each row is given to. Above 1 (Finite Aggregation) the rule of ``partition`` cuts
        ``n_partitions * copies`` buckets, and as many base classifiers are trained on ``copies`` of them each. A flip
        then reaches ``copies`` votes, so their costs do not add up: the certificate is black-box, whatever the base.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.
    partition_ : ndarray of int64
        Partition of each training row, or bucket, with copies; of each annotation, with ``partition="source"``.
    estimators_ : list
        The fitted base classifiers.
    C_max_ : float
        Smallest ``C_max_`` of the base classifiers, where they have one.

    See Also
    --------
    ensemble_radius : The radius of a vote from given votes and costs.
    assign_partitions : The partition of each training row.

    References
    ----------
    Mohgaonkar, Gosch, Sabanayagam, Ghoshdastidar and Günnemann, *Exact Certification of Neural Networks and
    Partition Aggregation Ensembles Against Label Poisoning*, 2026.

    Levine and Feizi, *Deep Partition Aggregation: Provable Defenses against General Poisoning Attacks*, 2021.

    Wang, Levine and Feizi, *Improved Certified Defenses against Data Poisoning with (Deterministic) Finite
    Aggregation*, 2022.

    Rezaei, Banihashem, Chegini and Feizi, *Run-Off Election: Improved Provable Defense against Data Poisoning
    Attacks*, 2023.

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
        vote: str = "majority",
        copies: int = 1,
    ) -> None:
        self.estimator = estimator
        self.n_partitions = n_partitions
        self.partition = partition
        self.classes = classes
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.vote = vote
        self.copies = copies

    def __sklearn_tags__(self) -> Tags:
        """Tell cross-validation whether the base classifier takes a precomputed kernel, or sparse inputs."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self.estimator)
        tags.input_tags.pairwise = takes_a_kernel_matrix(self.estimator)
        return tags

    def _check_parameters(self) -> None:
        require_classifier(self.estimator, "KernelSVM()")
        check_choice(self.vote, "vote", ("majority", "runoff"))
        check_copies(self.copies, self.n_partitions, self.random_state)
        if self.vote == "runoff":
            require_scores(self.estimator)

    def _fit(self, training: TrainingSet) -> None:
        """Partition the training set and fit a base classifier on each part."""
        inputs = training.inputs
        pairwise = takes_a_kernel_matrix(self.estimator)
        if pairwise and inputs.shape[0] != inputs.shape[1]:
            raise ValueError(f'X must be square with kernel="precomputed"; got shape {inputs.shape}.')
        # All labels of a source go together, also where they are about rows that others have labelled too.
        deals_labels = isinstance(self.partition, str) and self.partition == "source"
        dealt = training.annotations.row[:, None] if deals_labels and training.annotations is not None else inputs
        self.partition_ = assign_buckets(
            dealt, self.n_partitions, self.copies, self.partition, self.random_state, training.labels.sources
        )
        users = users_of_buckets(self.n_partitions, self.copies, self.random_state)
        self.dtype_ = inputs.dtype
        self._pairwise = pairwise
        self._rule = self.partition if isinstance(self.partition, str) else "given"
        check_base(self.estimator, self.classes_)
        fitted = counted(users.shape[0], "partitions")
        held = is_label_linear(self.estimator) and not transforms(self.estimator)
        parts = cut(training, self.partition_, users, pairwise, deals_labels, held)
        voters = map_tasks(VoterFit.of(self.estimator, self.classes_), parts, self.n_jobs, done=fitted)
        buckets = Buckets(numbers_of_labels(training, self.partition_, deals_labels), users, self._labels)
        self.electorate_ = gathered(self.estimator, voters, self.classes_, self.vote, buckets, pairwise, self.n_jobs)
        self.estimators_ = [voter.estimator for voter in voters]

    @property
    def C_max_(self) -> float:
        """The smallest threshold of the base classifiers."""
        check_is_fitted(self)
        return min(voter.estimator.C_max_ for voter in self.electorate_.voters if voter.members.size)

    def _scores(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Votes of all classes, and the class that wins: it has most of them, ties to the smaller one."""
        counts = np.concatenate(self.ask(X, lambda voters, block, n_rows: voters.scores(block, n_rows)))
        return counts.astype(np.float64), counts.argmax(axis=1)

    def _refusal(self, threat: Threat) -> str | None:
        if not threat.changes_rows:
            return super()._refusal(threat)
        if self._pairwise:
            return "rows of a precomputed kernel matrix change when others come or go; give the inputs and a kernel"
        if self._rule != "hash":
            return f'{_WHERE_ROWS_GO[self._rule]}; partition="hash" keeps every row in its place'
        return None

    def _refusal_of_annotations(self) -> str | None:
        if is_label_linear(self.estimator):
            return None
        name = type(final_step(self.estimator)).__name__
        return f"{name} is fitted to one label a row, and votes of it prove nothing about means of labels"

    def _certify(self, X: ArrayLike, threat: Threat, exact: bool, time_limit: float) -> list[Certificates]:
        def certify(voters: Electorate, block: NDArray[Any], n_rows: int) -> Certificates:
            return voters.certify(block, n_rows, threat, exact, time_limit)

        return self.ask(X, certify, current_watcher(), threat=threat)

    def _flip_costs(self, X: ArrayLike, threat: Threat, bound: str, time_limit: float) -> NDArray[np.int64]:
        def costs(voters: Electorate, block: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
            return voters.reach_costs(block, n_rows, threat, bound, time_limit)

        return np.concatenate(self.ask(X, costs, threat=threat))

    def _attacks(self, X: ArrayLike, threat: Threat, exact: bool, time_limit: float) -> list[Witness | None]:
        def attacks(voters: Electorate, block: NDArray[Any], n_rows: int) -> list[Witness | None]:
            return voters.attacks(block, n_rows, threat, exact, time_limit)

        watcher = current_watcher().progress("attacks")
        parts = self.ask(X, attacks, watcher, looks_for_attacks=True, threat=threat)
        return [witness for part in parts for witness in part]

    def voter_costs(
        self, X: ArrayLike, bound: str = "lower", method: str = "best"
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Votes of the base classifiers, and the flips that turn each: what :func:`flipcert.ensemble_radius` takes.

        :meth:`certify` needs only few of these costs, and is faster. They are costs in a fixed label space: that an
        attacker may remove a class, where ``classes`` is not given, is known to :meth:`certify` alone.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs. The costs take ``8 * n_test * n_partitions * n_classes`` bytes.
        bound : {"lower", "upper"}, default="lower"
            Proven from below, or reached by an attack.
        method : {"best", "published"}, default="best"
            The tightest bounds at hand, or those of the EnsembleCert paper, as in :func:`flipcert.flip_costs`
            (label-linear base classifiers only).

        Returns
        -------
        votes : ndarray of int64 of shape (n_test, n_partitions)
            Index into ``classes_`` that each base classifier votes for.
        costs : ndarray of int64 of shape (n_test, n_partitions, n_classes)
            Fewest flips among its labels that turn it to each class; above the number of all training labels where
            nothing does, or no attack is known.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> import flipcert
        >>> X, y = load_digits(return_X_y=True)
        >>> model = flipcert.PartitionEnsemble(flipcert.KernelRidge(reg=10.0), n_partitions=10)
        >>> model = model.fit(X[::2], y[::2])
        >>> votes, costs = model.voter_costs(X[1::2], method="published")
        >>> flipcert.ensemble_radius(votes, costs)[:6]
        array([10,  7,  0,  5,  3,  3])
        """
        check_choice(bound, "bound", ("lower", "upper"))
        check_choice(method, "method", ("best", "published"))
        check_is_fitted(self)
        if isinstance(self.electorate_, Assembly):
            raise ValueError(
                "voter_costs are for ensemble_radius, which is about a majority of voters that share no labels; got "
                f"vote={self.vote!r}, copies={self.copies}. Ask certify."
            )
        if method == "published" and not isinstance(self.electorate_, WhiteBox):
            raise ValueError(
                f'method="published" needs a label-linear base classifier, such as KernelRidge; got {self.estimator!r}.'
            )

        def ballots(voters: Electorate, block: NDArray[Any], n_rows: int) -> Ballots:
            if isinstance(voters, WhiteBox):
                return voters.all_costs(block, n_rows, KINDS[bound, method], None)
            return voters.ballots(block, n_rows, FLIPS, False, 0.0)

        parts = self.ask(X, ballots)
        costs = [part.lower if bound == "lower" else part.upper for part in parts]
        return np.concatenate([part.votes for part in parts]), np.concatenate(costs)

    @available_if(lambda self: is_label_linear(self.estimator) and self.vote == "majority")  # type: ignore[untyped-decorator]
    def replay(self, X: ArrayLike, witness: Witness) -> NDArray[np.float64]:
        """Votes for each class at one point while the labels of a witness are changed, one after the other.

        Parameters
        ----------
        X : array-like of shape (1, n_features)
            The point.
        witness : Witness
            Flips to make.

        Returns
        -------
        ndarray of shape (n_flips + 1, n_classes)
            Votes before the first flip and after each.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> import flipcert
        >>> X, y = load_iris(return_X_y=True)
        >>> base = flipcert.WeightedNeighbors(3)
        >>> model = flipcert.PartitionEnsemble(base, 3, classes=[0, 1, 2]).fit(X[::2], y[::2])
        >>> (witness,) = model.worst_flips(X[1:2])
        >>> model.replay(X[1:2], witness)[[0, -1]]
        array([[3., 0., 0.],
               [1., 2., 0.]])
        """
        (votes,) = self._votes(X)
        path = np.repeat(votes[None], witness.indices.size + 1, axis=0)
        rows = read_test_inputs(self, X, [self.dtype_])
        for i, voter in enumerate(self.electorate_.voters):
            mine = np.flatnonzero(np.isin(witness.indices, voter.members))
            if mine.size:
                own = Witness(np.searchsorted(voter.members, witness.indices[mine]), witness.labels[mine])
                inputs = voter.model_inputs(rows[:, voter.rows] if self._pairwise else rows)
                winners = voter.model.replay(inputs, own).argmax(axis=1)
                for step, winner in zip(mine, winners[1:], strict=True):
                    path[step + 1 :, i] = winner
        return self.electorate_.rule.scores(path, self.classes_.size).astype(np.float64)

    def _votes(self, X: ArrayLike) -> NDArray[np.int64]:
        """Class index that each voter votes for, one row a test point."""
        return np.concatenate(self.ask(X, lambda voters, block, n_rows: voters.votes(block, n_rows)))

    def ask(
        self,
        X: ArrayLike,
        question: Callable[[Electorate, NDArray[Any], int], Any],
        watcher: Watcher | None = None,
        looks_for_attacks: bool = False,
        threat: Threat = FLIPS,
    ) -> list[Any]:
        """Put a question to the voters about every block of rows.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        question : callable
            ``question(voters, block, n_rows)`` is called on every block; the first ``n_rows`` rows of it are meant.
        watcher : Watcher, optional
            Who looks on.
        looks_for_attacks : bool, default=False
            Whether attacks are asked for, which stay where they were found.
        threat : Threat
            What the question is about.

        Returns
        -------
        list
            One answer a block.
        """
        check_is_fitted(self)
        rows = read_test_inputs(self, X, [self.dtype_])
        voters = self.electorate_.to_send(threat)
        by_voter = voters.spreads_voters(looks_for_attacks)
        try:
            # Voters are asked about one block after the other.
            with (
                functions_stay() if by_voter else nullcontext(),
                told_with(partial(reason_for, self.electorate_.why, rows)),
            ):
                ask = partial(question, voters)
                return map_blocks(ask, rows, voters.bytes_per_row, 1 if by_voter else self.n_jobs, watcher)
        finally:
            self.electorate_.release()
