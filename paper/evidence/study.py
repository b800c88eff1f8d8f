"""The study: train networks of several widths, compare them with their kernel machines, flip labels and train again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import flipcert
from flipcert.kernels import NTK, ConvNTK
from paper.evidence.networks import FiniteNetwork, require_torch
from paper.evidence.training import HingeLoss, SquaredLoss, Trained, classes_of, train

NETWORKS: dict[str, NTK | ConvNTK] = {
    "dense, linear": NTK(),
    "dense, ReLU": NTK(activation="relu"),
    "convolution, ReLU": ConvNTK(image_shape=(1, 8, 8)),
}
TASKS: dict[str, Sequence[int]] = {"1 against 7": (1, 7), "ten classes": range(10)}
# Ten classes need more samples than two, or no label is to spare.
_SAMPLES = {"1 against 7": 1, "ten classes": 2}
REG = 1.0
# Share of C_max: below it, all margins stay open however the labels are flipped.
C_SHARE = 0.5
# Units times positions beyond which one network has to do instead of several.
_LARGE = 2**15


@dataclass(frozen=True)
class Plan:
    """Sizes of a study."""

    widths: tuple[int, ...] = (64, 256, 1024, 4096)
    seeds: int = 3
    n_train: int = 100  # for two classes; twice as many for ten
    n_test: int = 100
    n_points: int = 4  # test points whose certificates are replayed; half as many for convolutions


QUICK = Plan(widths=(16, 64), seeds=1, n_train=30, n_test=20, n_points=1)


@dataclass(frozen=True)
class Problem:
    """A task, an architecture and a loss, with its kernel machine certified."""

    task: str
    network: str
    loss: SquaredLoss | HingeLoss
    kernel: NTK | ConvNTK
    X: NDArray[np.float64]
    codes: NDArray[np.int64]
    X_test: NDArray[np.float64]
    n_classes: int
    train_kernel: NDArray[np.float64]
    test_kernel: NDArray[np.float64]
    certificates: flipcert.Certificates
    witnesses: list[flipcert.Witness | None]
    accuracy: float

    def limit(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Outputs of the infinitely wide network trained on these labels."""
        return self.loss.limit(self.test_kernel, self.train_kernel, self.loss.targets(codes, self.n_classes))


@dataclass(frozen=True)
class Flips:
    """One set of flips to replay: where it comes from, and the labels after it."""

    kind: str
    point: int
    n_flips: int
    codes: NDArray[np.int64]


@dataclass
class Replay:
    """What a network did after a set of flips.

    For sets inside a radius, ``checked`` certified points whose prediction may not change, ``changed`` of which did.
    For a witness, the one point that it is for.
    """

    kind: str
    n_flips: int
    checked: int
    changed: int


@dataclass
class Run:
    """One network: how far it is from its limit, and what flips did to it."""

    task: str
    network: str
    loss: str
    width: int
    seed: int
    score_gap: float  # root mean square of the difference of scores, over that of the limit's scores
    agreement: float  # share of test points with the same prediction
    steps: int
    settled: bool
    replays: list[Replay] = field(default_factory=list)


def problems(plan: Plan) -> list[Problem]:
    """All combinations of task, architecture and loss."""
    return [
        _problem(plan, task, name, kind) for task in TASKS for name in NETWORKS for kind in (SquaredLoss, HingeLoss)
    ]


def study(plan: Plan, report: Callable[[Run], None] = lambda run: None, n_jobs: int | None = None) -> list[Run]:
    """Train all networks of a plan; each is reported when it is done."""
    require_torch()
    tasks = [
        (problem, width, seed)
        for problem in problems(plan)
        for width in plan.widths
        for seed in range(_n_seeds(problem.kernel, width, plan.seeds))
    ]
    # The largest first, so that no core is left with one of them at the end.
    order = sorted(range(len(tasks)), key=lambda i: -_size(tasks[i][0].kernel, tasks[i][1]))

    def one(i: int) -> Run:
        problem, width, seed = tasks[i]
        n_points = plan.n_points if isinstance(problem.kernel, NTK) else (plan.n_points + 1) // 2
        with one_torch_thread():
            run = run_network(problem, width, seed, n_points)
        report(run)
        return run

    with threadpool_limits(1, user_api="blas"):
        done = Parallel(n_jobs=n_jobs or -1, backend="threading")(delayed(one)(i) for i in order)
    runs = dict(zip(order, done, strict=True))
    return [runs[i] for i in range(len(tasks))]


def run_network(problem: Problem, width: int, seed: int, n_points: int) -> Run:
    """Train one network on the labels as they are, then on every set of flips."""
    network = FiniteNetwork(problem.kernel, problem.X.shape[1], width, _n_outputs(problem), seed)
    largest = float(np.linalg.eigvalsh(problem.train_kernel)[-1])

    def trained(codes: NDArray[np.int64]) -> Trained:
        targets = problem.loss.targets(codes, problem.n_classes)
        return train(network, problem.loss, problem.X, targets, problem.X_test, largest)

    clean = trained(problem.codes)
    limit = problem.limit(problem.codes)
    before = classes_of(clean.outputs)
    run = Run(
        problem.task, problem.network, problem.loss.name, width, seed,
        score_gap=score_gap(clean.outputs, limit),
        agreement=float(np.mean(before == classes_of(limit))),
        steps=clean.steps,
        settled=clean.settled,
    )  # fmt: skip
    for flips in flips_to_replay(problem, n_points):
        after = trained(flips.codes)
        changed = classes_of(after.outputs) != before
        run.settled &= after.settled
        if flips.kind == "witness":
            run.replays.append(Replay(flips.kind, flips.n_flips, 1, int(changed[flips.point])))
        else:
            # Whatever the set was made for, no point with a radius this large may change.
            certified = (problem.certificates.radius >= flips.n_flips) & (before == classes_of(limit))
            run.replays.append(
                Replay(flips.kind, flips.n_flips, int(certified.sum()), int((changed & certified).sum()))
            )
    return run


def score_gap(outputs: NDArray[np.float64], limit: NDArray[np.float64]) -> float:
    """Distance of outputs over the size of the limit's, without what is common to all classes and decides nothing."""
    ours, theirs = (
        scores - scores.mean(axis=1, keepdims=True) if scores.shape[1] > 1 else scores for scores in (outputs, limit)
    )
    return float(np.sqrt(np.mean((ours - theirs) ** 2) / np.mean(theirs**2)))


def flips_to_replay(problem: Problem, n_points: int) -> Iterator[Flips]:
    """Sets of flips for test points from the easiest to the hardest to attack.

    The witness, one flip beyond the radius; its first flips, as many as the radius allows (the greedy attack inside)
    and half as many; and as many at random.
    """
    radius = problem.certificates.radius
    # Inside a radius of zero there are no flips.
    candidates = [t for t in np.argsort(radius, kind="stable") if radius[t] > 0 and problem.witnesses[t] is not None]
    if not candidates:
        return
    places = np.linspace(0, len(candidates) - 1, n_points + 2)[1:-1].round().astype(int)
    rng = np.random.default_rng(0)
    for t in [int(candidates[place]) for place in places]:
        witness, inside = problem.witnesses[t], int(radius[t])
        assert witness is not None
        for kind, size in (("witness", inside + 1), ("greedy", inside), ("half", inside // 2)):
            if size > 0:
                first = flipcert.Witness(witness.indices[:size], witness.labels[:size])
                yield Flips(kind, t, size, first.apply(problem.codes))
        chosen = rng.choice(problem.codes.size, inside, replace=False)
        shifts = rng.integers(1, problem.n_classes, inside)
        anything = flipcert.Witness(chosen, (problem.codes[chosen] + shifts) % problem.n_classes)
        yield Flips("random", t, inside, anything.apply(problem.codes))


def _problem(plan: Plan, task: str, name: str, kind: type[SquaredLoss] | type[HingeLoss]) -> Problem:
    X, codes, X_test, truth = digits(TASKS[task], plan.n_train * _SAMPLES[task], plan.n_test)
    kernel = NETWORKS[name]
    train_kernel = kernel(X)
    model: Any
    loss: SquaredLoss | HingeLoss
    if kind is SquaredLoss:
        loss, model = SquaredLoss(REG), flipcert.KernelRidge(kernel, reg=REG, classes=range(len(TASKS[task])))
    else:
        model = flipcert.KernelSVM(kernel, classes=range(len(TASKS[task])))
        loss = HingeLoss(C_SHARE * model.fit(X, codes).C_max_)
    certificates = model.fit(X, codes).certify(X_test)
    return Problem(
        task, name, loss, kernel, X, codes, X_test, len(TASKS[task]), train_kernel, kernel(X_test, X), certificates,
        model.worst_flips(X_test), float(np.mean(certificates.prediction == truth)),
    )  # fmt: skip


def digits(classes: Sequence[int], n_train: int, n_test: int) -> tuple[NDArray[Any], ...]:
    """Handwritten digits of some classes, as many of each as possible: inputs and class indices, twice."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    # One of each class, then the second of each, and so on.
    shuffled = rng.permutation(y.size)
    rank = np.empty(y.size, int)
    for digit in range(10):
        members = shuffled[y[shuffled] == digit]
        rank[members] = np.arange(members.size)
    order = [i for i in np.lexsort((y, rank)) if y[i] in classes]
    parts = np.array(order[:n_train]), np.array(order[n_train : n_train + n_test])
    first, second = ((X[part] / 16 - 0.5, np.searchsorted(classes, y[part])) for part in parts)
    return *first, *second


def _n_outputs(problem: Problem) -> int:
    return 1 if problem.n_classes == 2 else problem.n_classes


def _size(kernel: NTK | ConvNTK, width: int) -> int:
    positions = kernel.image_shape[1] * kernel.image_shape[2] if isinstance(kernel, ConvNTK) else 1
    return int(positions) * width


def _n_seeds(kernel: NTK | ConvNTK, width: int, seeds: int) -> int:
    return seeds if _size(kernel, width) <= _LARGE else 1


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Networks run in parallel, so each keeps to one thread."""
    torch = require_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
