"""Networks trained by gradient descent, certified by bounding what flipped labels do to the training."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from flipcert.classifiers.certified_by_costs import CertifiedByCosts
from flipcert.classifiers.network import function_space
from flipcert.classifiers.network.boxes import Boxes
from flipcert.classifiers.network.function_space import FunctionSpace
from flipcert.classifiers.network.plan import Plan, layer_shapes, load_torch, schedule
from flipcert.classifiers.network.squared import TrainedWeights
from flipcert.classifiers.network.stability import ConvexRun, Stability
from flipcert.classifiers.network.training import Samples, forward, train
from flipcert.engine.blocks import map_blocks
from flipcert.engine.extras import one_torch_thread
from flipcert.engine.memory import available_memory, gigabytes
from flipcert.labels.labels import Labels
from flipcert.labels.training_set import TrainingSet
from flipcert.labels.validation import check_choice, check_integers, check_number
from flipcert.linear.model import LabelLinearModel
from flipcert.results.flip_costs import FlipCosts

# Seconds for one integer program that closes the bounds on a cost.
_TIME_LIMIT = 60.0

# At the very least: parameters and their gradient; a step and its batch.
_BYTES_PER_PARAMETER, _BYTES_PER_STEP = 16, 100


class BoundedNetwork(CertifiedByCosts):
    r"""Fully connected ReLU network, or linear model, trained by gradient descent with a label-independent schedule.

    What flipped labels can do to the parameters is bounded step by step, in double precision with all rounding
    accounted for: a prediction that is certified stays the same if :meth:`fit` is repeated on any labels with that
    many flips. No attack is known in general, so ``radius_upper`` is the number of labels; only a linear model under
    squared loss, which is linear in the labels, has exact radii and witnesses.

    Needs PyTorch: ``pip install "flipcert[torch]"``.

    Parameters
    ----------
    hidden : sequence of int, default=()
        Units of the hidden layers; none for a linear model.
    loss : {"cross-entropy", "squared"}, default="cross-entropy"
        Loss of a sample; "squared" is the sum of squared differences from the one-hot label.
    epochs : int, default=2
        Passes over the training set.
    batch_size : int, optional
        Samples in a step; all of them by default. The last samples of an epoch are left out if they are fewer.
    learning_rate : float, default=5.0
        Step s = 0, 1, ... is ``max(learning_rate / (1 + decay * s), min_learning_rate)`` times the mean gradient.
    decay : float, default=1.0
        See above.
    min_learning_rate : float, default=1e-3
        See above.
    l2 : float, default=0.0
        This times the parameters is added to the mean gradient.
    clip : float, optional
        Every coordinate of a single sample's gradient is clamped to between ``-clip`` and ``clip``. Large radii need
        it, or few steps; but only intervals apply then.
    method : {"auto", "intervals", "published"}, default="auto"
        "auto" takes the best of every bound that applies: exact weights of labels (linear, squared loss), convex
        stability and intervals of scores (linear, cross-entropy; the latter on full batches of up to 4,096 samples
        and up to 20 steps), intervals of parameters. "intervals" is the last alone: abstract gradient training.
        "published" is that with one cost for all classes, the smallest, as in the EnsembleCert paper.
    max_flips : int, optional
        Costs beyond this number of flips are not searched for: it caps radii, and the time they take.
    random_state : int, default=0
        Seed of the initial parameters and of the order of batches. A certificate is for this seed.
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove one of three or more classes by flipping all its labels: certificates end there.
    n_jobs : int, optional
        Threads that test points are spread over; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.
    coefs_ : list of ndarray of shape (n_inputs, n_units)
        Weights of each layer.
    intercepts_ : list of ndarray of shape (n_units,)
        Biases of each layer.

    Notes
    -----
    Initial weights are those of ``torch.nn.Linear``. Features should be centred and of moderate size: the default
    learning rate suits few steps on features of norm about one or a few.

    See Also
    --------
    kernels.Tangent : Fine-tuning of a network in the linear regime, exact.

    References
    ----------
    Sosnin, Müller, Baader, Tsay and Wicker, *Certified Robustness to Data Poisoning in Gradient-Based
    Training*, 2024.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / 2
    >>> model = flipcert.BoundedNetwork().fit(X[::2], y[::2])
    >>> model.certify(X[1::2]).radius[:5]
    array([4, 4, 4, 4, 4])
    """

    _why_rows_must_stay = "every step of the training changes when a row comes or goes"

    def __init__(
        self,
        hidden: Any = (),
        loss: str = "cross-entropy",
        epochs: int = 2,
        batch_size: int | None = None,
        learning_rate: float = 5.0,
        decay: float = 1.0,
        min_learning_rate: float = 1e-3,
        l2: float = 0.0,
        clip: float | None = None,
        method: str = "auto",
        max_flips: int | None = None,
        random_state: int = 0,
        classes: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.hidden = hidden
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.decay = decay
        self.min_learning_rate = min_learning_rate
        self.l2 = l2
        self.clip = clip
        self.method = method
        self.max_flips = max_flips
        self.random_state = random_state
        self.classes = classes
        self.n_jobs = n_jobs

    _input_types = (np.float64,)
    # The training set is looked at again for certificates.
    _copies_inputs = True

    def _check_parameters(self) -> None:
        load_torch()

    def _fit(self, training: TrainingSet) -> None:
        inputs, labels = training.inputs, training.labels
        self._limit = labels.n_movable
        if self.max_flips is not None:
            most = check_integers(self.max_flips, "max_flips", minimum=0, ndim=0)
            if most > labels.n_labels:
                raise ValueError(f"max_flips must be at most {labels.n_labels}, the number of labels; got {most}.")
            self._limit = min(self._limit, int(most))
        self._plan = plan = self._make_plan(inputs)
        samples = Samples.of(inputs, labels.codes, labels.coded.movable)
        with one_torch_thread:
            for layers in train(plan, samples):
                self._layers = layers
        self.coefs_ = [layer[:, :-1].T.numpy() for layer in self._layers]
        self.intercepts_ = [layer[:, -1].numpy() for layer in self._layers]
        self._choose_bounds(plan, samples, labels)

    def _make_plan(self, X: NDArray[np.float64]) -> Plan:
        """Check everything that decides the training."""
        hidden = check_integers(self.hidden, "hidden", minimum=1, ndim=1)
        epochs = int(check_integers(self.epochs, "epochs", minimum=1, ndim=0))
        batch_size = None
        if self.batch_size is not None:
            batch_size = int(check_integers(self.batch_size, "batch_size", minimum=1, ndim=0))
            if batch_size > X.shape[0]:
                raise ValueError(
                    f"batch_size must be at most {X.shape[0]}, the number of samples, or None for all of them; "
                    f"got {batch_size}."
                )
        check_choice(self.method, "method", ("auto", "intervals", "published"))
        if self.random_state is None:
            raise ValueError("random_state must be a whole number, for training that can be repeated; got None.")
        seed = int(check_integers(self.random_state, "random_state", minimum=0, maximum=2**32 - 1, ndim=0))
        rates = (
            check_number(self.learning_rate, "learning_rate"),
            check_number(self.decay, "decay", zero=True),
            check_number(self.min_learning_rate, "min_learning_rate", zero=True),
        )
        widths = (X.shape[1], *hidden.tolist(), self.classes_.size)
        self._check_room(widths, epochs, batch_size or X.shape[0], X.shape[0])
        return Plan(
            widths=widths,
            loss=check_choice(self.loss, "loss", ("cross-entropy", "squared")),
            steps=schedule(X.shape[0], epochs, batch_size, *rates, seed),
            l2=check_number(self.l2, "l2", zero=True),
            clip=None if self.clip is None else check_number(self.clip, "clip, if not None,"),
            seed=seed,
        )

    def _check_room(self, widths: tuple[int, ...], epochs: int, batch_size: int, n_samples: int) -> None:
        """Refuse parameters, outputs of hidden units for a batch, and steps that do not fit the memory."""
        available = available_memory()
        n_parameters = sum(units * (inputs + 1) for units, inputs in layer_shapes(widths))
        needed = n_parameters * _BYTES_PER_PARAMETER + 8 * batch_size * sum(widths[1:-1])
        if needed > available:
            raise ValueError(
                f"hidden={list(widths[1:-1])} makes {n_parameters:,} parameters, which take at least "
                f"{gigabytes(needed)} of memory with batches of {batch_size:,}, but {gigabytes(available)} are "
                "available; use fewer units."
            )
        n_steps = epochs * (n_samples // batch_size)
        if n_steps * _BYTES_PER_STEP > available:
            raise ValueError(
                f"epochs={epochs} makes {n_steps:,} steps, more than the memory can hold; use fewer epochs."
            )

    def _choose_bounds(self, plan: Plan, samples: Samples, labels: Labels) -> None:
        """All bounds that apply, the cheapest first: what one has proven saves trials of the next."""
        self._exact: LabelLinearModel | None = None
        self._bounds: list[Any] = []
        if self.method == "auto" and plan.linear and plan.clip is None:
            if plan.loss == "squared":
                self._exact = LabelLinearModel(labels, TrainedWeights(plan, samples.inputs.numpy()), self.n_jobs)
                return
            run = ConvexRun(plan, samples)
            self._bounds.append(Stability(run, self.n_jobs))
            if function_space.applies(plan, labels.n_labels):
                self._bounds.append(FunctionSpace(run, self.n_jobs))
        self._bounds.append(Boxes(plan, samples, self.n_jobs, smallest=self.method == "published"))

    def _check_test(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        return np.require(validate_data(self, X, reset=False, dtype=np.float64, order="C"), requirements="W")

    def _label_linear(self, X: ArrayLike) -> tuple[LabelLinearModel, NDArray[Any]] | None:
        # In a label space that is read from the labels, the initial parameters depend on them.
        if self._exact is None or not self._labels.space_is_fixed:
            return None
        return self._exact, self._check_test(X)

    def _scores(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Class scores and predictions."""
        rows = self._check_test(X)
        with one_torch_thread:
            return self._scores_of(rows)

    def _scores_of(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        if self._exact is not None:
            return self._exact.scores(rows)
        widest = max(max(layer.shape) for layer in self._layers)
        scores = np.concatenate(map_blocks(partial(_forward, self._layers), rows, 32 * widest, self.n_jobs))
        return scores, scores.argmax(axis=1)

    def _known_costs(self, X: ArrayLike, exact: bool) -> FlipCosts:
        rows = self._check_test(X)
        if self._exact is not None:
            costs = self._exact.costs(rows, time_limit=_TIME_LIMIT if exact else None)
            if self._limit < self._labels.n_movable and not exact:
                np.minimum(costs.lower, self._limit + 1, out=costs.lower)
            return costs

        with one_torch_thread:
            scores, prediction = self._scores_of(rows)
            # Numbers of flips that are proven not to lead to a class; none yet, not even zero.
            floor = np.full(scores.shape, -1, np.int64)
            own = prediction[:, None]
            np.put_along_axis(floor, own, self._limit, axis=1)
            for bound in self._bounds:
                bound.raise_floor(rows, scores, prediction, floor, self._limit)
        sensitive = floor.min(axis=1) < 0
        if self.method == "published":
            floor[:] = floor.min(axis=1, keepdims=True)
        n_movable = self._labels.n_movable
        unreachable = (floor >= n_movable) | (n_movable == 0)
        lower = np.where(unreachable, self._labels.unreachable, np.maximum(floor, 0) + 1)
        np.put_along_axis(lower, own, 0, axis=1)
        costs = FlipCosts.proven(prediction, lower, self._labels.n_labels)
        costs.sensitive = sensitive
        return costs

    def _runner_up(self, X: ArrayLike, prediction: NDArray[np.int64]) -> NDArray[np.int64]:
        scores, _ = self._scores(X)
        np.put_along_axis(scores, prediction[:, None], -np.inf, axis=1)
        return scores.argmax(axis=1)


def _forward(layers: list[Any], block: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
    """Scores of a block of rows."""
    torch = load_torch()
    with one_torch_thread:
        scores: NDArray[np.float64] = forward(layers, torch.from_numpy(np.require(block, requirements="W"))).numpy()
    return scores[:n_rows]
