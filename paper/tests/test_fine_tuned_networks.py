"""Networks that are fine-tuned: copies, learning without labels, the study around them, and the rules that judge it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from flipcert.kernels import Tangent
from paper.evidence.study import TASKS, Replay, digits
from paper.evidence.training import HingeLoss, SquaredLoss, classes_of, train
from paper.tangent import page, study
from paper.tangent.command import main
from paper.tangent.networks import LIMIT, Copies, Layers, learn_rotations
from paper.tangent.rules import RULES, groups

PAPER = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def one_thread():
    """Tests run side by side, and the networks are small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_networks_have_the_kernel_of_their_limit_on_average():
    X = np.random.default_rng(0).normal(size=(4, 6))
    kernels = np.array([Tangent(Layers(6, 200, seed))(X) for seed in range(20)])
    error = kernels.std(axis=0, ddof=1) / np.sqrt(20)
    assert (np.abs(kernels.mean(axis=0) - LIMIT(X)) < 5 * error + 0.02 * LIMIT(X).max()).all()


def test_copies_begin_alike_and_move_by_themselves():
    network, X = Layers(6, 8, 0), torch.randn(5, 6)
    copies = Copies(network, 3)
    outputs = copies.outputs(copies.parameters, X)
    assert outputs.shape == (5, 3)
    assert torch.allclose(outputs, network(X).expand(5, 3), atol=1e-6)
    moved = [own.clone() for own in copies.parameters]
    moved[0][1] += 1.0
    after = copies.outputs(moved, X)
    assert torch.equal(after[:, [0, 2]], outputs[:, [0, 2]])
    assert not torch.allclose(after[:, 1], outputs[:, 1])


def test_wide_networks_are_fine_tuned_to_the_machine_of_their_kernel():
    rng = np.random.default_rng(2)
    X, X_test, codes = rng.normal(size=(20, 6)), rng.normal(size=(10, 6)), rng.integers(0, 3, 20)
    gaps = []
    for width in (8, 512):
        network, loss = Layers(6, width, 0), SquaredLoss(1.0)
        kernel, targets = Tangent(network), loss.targets(codes, 3)
        largest = np.linalg.eigvalsh(kernel(X))[-1]
        outputs = train(Copies(network, 3), loss, X, targets, X_test, largest).outputs
        gaps.append(study.score_gap(outputs, loss.limit(kernel(X_test, X), kernel(X), targets)))
    assert gaps[1] < 0.2
    assert gaps[1] < 0.5 * gaps[0]


def test_turns_are_learned_without_labels_and_the_read_out_stays():
    images = study.unlabelled(study.QUICK)
    network, untouched = Layers(64, 32, 0), Layers(64, 32, 0)
    right = learn_rotations(network, images, 0, 60)
    assert right > 0.6  # a quarter by chance
    assert torch.equal(network.layers[4], untouched.layers[4])
    assert not torch.equal(network.layers[0], untouched.layers[0])
    again = Layers(64, 32, 0)
    assert learn_rotations(again, images, 0, 60) == right


def test_no_test_point_is_learned_from():
    images = {row.tobytes() for row in study.unlabelled(study.Plan())}
    assert len(images) > 1500
    for task, factor in (("1 against 7", 1), ("ten classes", 2)):
        assert not images & {row.tobytes() for row in digits(TASKS[task], 100 * factor, 100)[2]}


@pytest.mark.parametrize("kind", [SquaredLoss, HingeLoss])
def test_the_machine_is_the_certified_one(kind):
    data = digits(TASKS["1 against 7"], 30, 20)
    kernel = Tangent(Layers(64, 16, 0))
    matrices = kernel(data[0]), kernel(data[2], data[0])
    problem = study.certified("1 against 7", study.RANDOM, kind, kernel, data, matrices)
    assert np.array_equal(classes_of(problem.limit(problem.codes)), problem.certificates.prediction)


def perfect_runs():
    """What would make every rule hold."""
    replays = [
        Replay("random", 3, 50, 0),
        Replay("half", 1, 50, 0),
        Replay("greedy", 3, 50, 0),
        Replay("witness", 4, 1, 1),
    ]
    return [
        study.TangentRun(
            task, start, "squared", width, 0, 1.0 / width, 1.0, 9, True, list(replays),
            limit_gap=2.0 / width if start == study.RANDOM else None,
        )
        for task in TASKS for start in study.STARTS for width in (8, 32)
    ]  # fmt: skip


def test_rules_hold_for_networks_that_are_their_machines():
    runs = perfect_runs()
    assert len(groups(runs)) == 4
    assert all(rule.judge(runs)[0] for rule in RULES)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (0, {"score_gap": 0.1}),
        (1, {"agreement": 0.9}),
        (2, {"replays": [Replay("random", 3, 50, 2)]}),
        (3, {"replays": [Replay("half", 3, 50, 2)]}),
        (4, {"replays": [Replay("greedy", 3, 50, 6)]}),
        (5, {"replays": [Replay("witness", 3, 1, 0)]}),
        (6, {"limit_gap": 0.001}),
    ],
)
def test_every_rule_can_be_broken(place, wrong):
    runs = [replace(run, **wrong) if run.width == 32 or place in (5, 6) else run for run in perfect_runs()]
    if place == 6:
        runs = [run if run.network == study.RANDOM else replace(run, limit_gap=None) for run in runs]
    assert not RULES[place].judge(runs)[0]


def test_one_command_writes_page_plot_and_results(tmp_path, paper):
    assert "Page: " in paper("tangent", "--quick", "--jobs", 1, "--out", tmp_path).err.replace("\n", "")
    plan, runs = page.load(tmp_path / "tangent.json")
    assert plan == study.QUICK
    assert {(run.task, run.network, run.width) for run in runs} == {
        (task, start, width) for task in TASKS for start in study.STARTS for width in plan.widths
    }
    assert (tmp_path / "tangent.md").read_text() == page.render(plan, runs)
    assert (tmp_path / "tangent.svg").read_text().startswith("<?xml")


def test_the_page_is_what_its_results_say():
    plan, runs = page.load(PAPER / "tangent.json")
    assert plan == study.Plan()
    assert (PAPER / "tangent.md").read_text() == page.render(plan, runs)


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'Install with: pip install "flipcert\[torch\]"'):
        main()
