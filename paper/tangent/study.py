"""The study: certify the tangent kernel of a network, fine-tune the network itself, flip labels and fine-tune again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

import flipcert
from flipcert.kernels import Tangent
from paper.evidence.study import C_SHARE, REG, TASKS, Replay, Run, digits, flips_to_replay, one_torch_thread, score_gap
from paper.evidence.study import Problem as CertifiedProblem
from paper.evidence.training import HingeLoss, SquaredLoss, classes_of, train
from paper.tangent.networks import LIMIT, Copies, Layers, learn_rotations

RANDOM, LEARNED = "random weights", "learned without labels"
STARTS = (RANDOM, LEARNED)
# One class against the rest, most of every output is common to all classes: ten of them say little on the hinge loss.
LOSSES: dict[str, tuple[type[SquaredLoss] | type[HingeLoss], ...]] = {
    "1 against 7": (SquaredLoss, HingeLoss),
    "ten classes": (SquaredLoss,),
}


@dataclass(frozen=True)
class Plan:
    """Sizes of a study."""

    widths: tuple[int, ...] = (16, 64, 256)
    seeds: int = 2
    n_train: int = 100  # for two classes; twice as many for ten
    n_test: int = 100
    n_points: int = 3  # test points whose certificates are replayed
    steps: int = 300  # of learning without labels


QUICK = Plan(widths=(8, 32), seeds=1, n_train=30, n_test=20, n_points=1, steps=20)


@dataclass
class TangentRun(Run):
    """One network that was fine-tuned: how far it is from its tangent kernel, and what flips did to it.

    ``network`` tells what it began with. ``agreement``, ``score_gap`` and replays are beside the machine of its own
    tangent kernel; ``limit_gap`` is the distance from that of an infinitely wide network, for random weights.
    """

    limit_gap: float | None = None
    accuracy: float = 0.0  # of the machine of its tangent kernel
    network_accuracy: float = 0.0
    rotations: float | None = None  # share of turns that a network got right that learned them


def study(
    plan: Plan, report: Callable[[TangentRun], None] = lambda run: None, n_jobs: int | None = None
) -> list[TangentRun]:
    """Fine-tune all networks of a plan; each is reported when it is done."""
    tasks = [
        (task, start, width, seed)
        for task in TASKS
        for start in STARTS
        for width in plan.widths
        for seed in range(plan.seeds)
    ]
    order = sorted(range(len(tasks)), key=lambda i: -tasks[i][2] * len(TASKS[tasks[i][0]]))

    def one(i: int) -> list[TangentRun]:
        with one_torch_thread():
            runs = run_network(plan, *tasks[i])
        for run in runs:
            report(run)
        return runs

    with threadpool_limits(1, user_api="blas"):
        done = Parallel(n_jobs=n_jobs or -1, backend="threading")(delayed(one)(i) for i in order)
    found = dict(zip(order, done, strict=True))
    return [run for i in range(len(tasks)) for run in found[i]]


def run_network(plan: Plan, task: str, start: str, width: int, seed: int) -> list[TangentRun]:
    """Certify one network, and fine-tune it on the labels as they are, then on every set of flips; for each loss."""
    classes = TASKS[task]
    n_train = plan.n_train * (1 if len(classes) == 2 else 2)
    X, codes, X_test, truth = digits(classes, n_train, plan.n_test)
    network = Layers(X.shape[1], width, seed)
    rotations = None
    if start == LEARNED:
        rotations = learn_rotations(network, unlabelled(plan), seed, plan.steps)
    kernel = Tangent(network)
    matrices = kernel(X), kernel(X_test, X)
    runs = []
    for kind in LOSSES[task]:
        problem = certified(task, start, kind, kernel, (X, codes, X_test, truth), matrices)
        run = fine_tuned(problem, width, seed, plan.n_points, network, truth)
        run.rotations = rotations
        runs.append(run)
    return runs


def certified(
    task: str,
    start: str,
    kind: Any,
    kernel: Any,
    data: tuple[NDArray[Any], ...],
    matrices: tuple[NDArray[Any], NDArray[Any]],
) -> CertifiedProblem:
    """The machine of a tangent kernel, with certificates and attacks."""
    X, codes, X_test, truth = data
    n_classes = len(TASKS[task])
    model: Any
    loss: SquaredLoss | HingeLoss
    if kind is SquaredLoss:
        loss, model = SquaredLoss(REG), flipcert.KernelRidge(kernel, reg=REG, classes=range(n_classes), n_jobs=1)
        model.fit(X, codes)
    else:
        model = flipcert.KernelSVM(kernel, classes=range(n_classes), n_jobs=1).fit(X, codes)
        loss = HingeLoss(C_SHARE * model.C_max_)
    certificates = model.certify(X_test)
    return CertifiedProblem(
        task, start, loss, kernel, X, codes, X_test, n_classes, matrices[0], matrices[1], certificates,
        model.worst_flips(X_test), float(np.mean(certificates.prediction == truth)),
    )  # fmt: skip


def fine_tuned(
    problem: CertifiedProblem, width: int, seed: int, n_points: int, network: Layers, truth: NDArray[Any]
) -> TangentRun:
    """What became of the network itself, from its weights, on the labels as they are and on flipped ones."""
    n_copies = 1 if problem.n_classes == 2 else problem.n_classes
    copies, largest = Copies(network, n_copies), float(np.linalg.eigvalsh(problem.train_kernel)[-1])

    def trained(codes: NDArray[np.int64]) -> Any:
        return train(
            copies, problem.loss, problem.X, problem.loss.targets(codes, problem.n_classes), problem.X_test, largest
        )

    clean, machine = trained(problem.codes), problem.limit(problem.codes)
    before, same = classes_of(clean.outputs), classes_of(clean.outputs) == classes_of(machine)
    run = TangentRun(
        problem.task, problem.network, problem.loss.name, width, seed,
        score_gap=score_gap(clean.outputs, machine), agreement=float(same.mean()), steps=clean.steps,
        settled=clean.settled, accuracy=problem.accuracy, network_accuracy=float(np.mean(before == truth)),
    )  # fmt: skip
    if problem.network == RANDOM:
        targets = problem.loss.targets(problem.codes, problem.n_classes)
        limit = problem.loss.limit(LIMIT(problem.X_test, problem.X), LIMIT(problem.X), targets)
        run.limit_gap = score_gap(clean.outputs, limit)
    for flips in flips_to_replay(problem, n_points):
        after = trained(flips.codes)
        changed = classes_of(after.outputs) != before
        run.settled &= after.settled
        checked = same & (problem.certificates.radius >= flips.n_flips)
        if flips.kind == "witness":
            # Only what was predicted alike can be changed alike.
            checked = same & (np.arange(len(same)) == flips.point)
        run.replays.append(Replay(flips.kind, flips.n_flips, int(checked.sum()), int((changed & checked).sum())))
    return run


def unlabelled(plan: Plan) -> NDArray[np.float64]:
    """All images of digits that are no test points of either task; their labels stay behind."""
    images = load_digits().data / 16 - 0.5
    tested = {
        row.tobytes()
        for task, factor in zip(TASKS, (1, 2), strict=True)
        for row in digits(TASKS[task], plan.n_train * factor, plan.n_test)[2]
    }
    return np.array([row for row in images if row.tobytes() not in tested])
