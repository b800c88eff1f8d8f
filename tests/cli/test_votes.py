"""Run-offs and copies from the shell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from flipcert import KernelRidge, PartitionEnsemble
from flipcert.ensemble.votes.election import MostVotes, RunOff
from flipcert.ensemble.votes.reach import Reach
from flipcert.kernels import RBF
from flipcert.runs.plain_elections import opinion_on_election, ranked
from tests.helpers.command_line import MODEL, X_TEST, X_TRAIN, Y_TRAIN, refused, run, summary_of

FILES = ("train.npz", "test.npz")


pytestmark = pytest.mark.usefixtures("data")


@pytest.mark.parametrize(("vote", "copies"), [("runoff", 1), ("majority", 2), ("runoff", 2)])
def test_a_run_is_what_python_says_and_is_verified(vote, copies):
    options = ("--vote", vote, "--copies", copies)
    summary = summary_of("certify", *FILES, *MODEL, *options, "--out", "run")
    lines = pd.read_parquet("run/certificates.parquet")
    model = PartitionEnsemble(KernelRidge(RBF(), reg=0.5), 3, vote=vote, copies=copies).fit(X_TRAIN, Y_TRAIN)
    certificates = model.certify(X_TEST)
    np.testing.assert_array_equal(lines["radius"], certificates.radius)
    np.testing.assert_array_equal(lines["prediction"], certificates.prediction)
    told = summary["settings"]
    assert told.get("vote", "majority") == vote
    assert told.get("copies", 1) == copies
    verified = run("verify", "run", *FILES, "--points", 40)
    assert verified.exit_code == 0, verified.output
    assert "radii by votes" in verified.output
    # A run with another vote is another run.
    assert run("certify", *FILES, *MODEL, "--out", "run").exit_code != 0


@pytest.mark.parametrize(
    ("options", "looked"),
    [((), True), (("--attacks", 0), False), (("--vote", "runoff"), False), (("--copies", 2), False)],
)
def test_attacks_are_looked_for_only_where_there_are_some(options, looked):
    said = run("certify", *FILES, *MODEL, *options).stderr
    assert "Certifying" in said
    assert ("Looking for attacks" in said) == looked


def test_copies_are_told_in_buckets():
    said = run("sweep", *FILES, "--model", "ridge", "--partitions", "2,3", "--copies", 2, "--out", "sweep").stderr
    assert "4 buckets, 2 copies: fitting" in said
    assert "6 buckets, 2 copies: fitting" in said
    page = Path("sweep/report.html").read_text()
    assert "cut into as many times more buckets, each of which is given to that many voters" in page


def test_a_wrong_radius_by_votes_is_found():
    assert run("certify", *FILES, *MODEL, "--vote", "runoff", "--out", "run").exit_code == 0
    lines = pd.read_parquet("run/certificates.parquet")
    lines["blackbox_radius"] -= 1
    lines.to_parquet("run/certificates.parquet")
    assert run("verify", "run", *FILES, "--points", 20).exit_code != 0


def test_options_about_votes_need_voters():
    said = refused("certify", *FILES, "--model", "ridge", "--vote", "runoff")
    assert "--vote runoff is about partitions that vote, but --partitions is 1" in said
    assert "--copies 3" in refused("sweep", *FILES, "--model", "ridge", "--partitions", "1", "--copies", "3")
    assert "--vote must be one of majority, runoff" in refused("certify", *FILES, *MODEL, "--vote", "ranked")
    assert "--partitions 3 and --copies 50 cut rows into 150 buckets" in refused(
        "certify", *FILES, *MODEL, "--copies", "50"
    )


def test_plain_loops_count_elections_alike():
    rng = np.random.default_rng(0)
    for _ in range(40):
        n_classes, n_voters = int(rng.integers(2, 6)), int(rng.integers(1, 9))
        rankings = [rng.permutation(n_classes).tolist() for _ in range(n_voters)]
        units = [sorted(set(rng.integers(0, n_voters, 2).tolist())) for _ in range(n_voters)]
        reach, table = Reach.of([np.array(unit) for unit in units]), np.array([rankings])
        for election, votes in ((RunOff(), table), (MostVotes(), table[:, :, 0])):
            standings = election.standings(votes, n_classes, reach, 51)
            opinion = opinion_on_election(rankings, units, election.ranks, 50, 10**9)
            assert opinion.prediction == standings.winner[0]
            assert opinion.by_votes == standings.cheapest[0] - 1
    assert ranked([1.0, 0.5, 0.5], [2, 0, 1], 4) == [2, 0, 1, 3]
