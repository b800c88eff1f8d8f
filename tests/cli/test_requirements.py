"""What a pipeline demands of a run: read, decided exactly, told, and written for build servers."""

from __future__ import annotations

from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flipcert.cli.requirements import Requirement
from flipcert.report.result import Result
from tests.helpers.command_line import refused, run
from tests.report.test_card import made


def check(text, radius, labels=None, **more):
    certificates = made(radius, **more)
    return Requirement.of(text).check(Result(name="", certificates=certificates, labels=labels))


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=30),
    st.integers(0, 13),
    st.fractions(0, 1, max_denominator=40),
    st.sampled_from([">=", "<=", ">", "<"]),
)
def test_shares_are_compared_as_fractions(radii, flips, bound, relation):
    text = f"{float(bound):.17g}"
    if "e" in text:
        return
    outcome = check(f"certified-share@{flips}{relation}{text}", radii)
    share = Fraction(sum(radius >= flips for radius in radii), len(radii))
    wanted = {
        ">=": share >= Fraction(text), "<=": share <= Fraction(text), ">": share > Fraction(text),
        "<": share < Fraction(text),
    }  # fmt: skip
    assert outcome.met == wanted[relation]


def test_a_share_that_doubles_round_is_met_to_the_letter():
    assert check("certified-share@1>=0.3", [1, 1, 1] + [0] * 7).met
    assert not check("certified-share@1>0.3", [1, 1, 1] + [0] * 7).met
    assert not check("certified-share@1>=0.30000000000000001", [1, 1, 1] + [0] * 7).met


def test_every_metric_is_what_it_says():
    radius, upper, prediction = [0, 2, 4, 50], [1, 2, 4, 50], [0, 0, 1, 1]
    own = {"upper": upper, "prediction": prediction, "labels": np.array([0, 1, 1, 1])}
    assert check("accuracy>=0.75", radius, **own).value == "0.75, 3 of 4"
    assert check("certified-accuracy@3>=0.5", radius, **own).value == "0.5, 2 of 4"
    assert check("certified-share@2>=0.75", radius, **own).value == "0.75, 3 of 4"
    assert check("certified-share@1,000,000>=0.25", radius, **own).met  # whatever an attacker does
    assert check("median-radius>=4", radius, **own).value == "4"
    assert check("exact-share>=0.75", radius, **own).value == "0.75, 3 of 4"


def test_a_share_that_is_missed_by_little_is_told_as_a_count():
    missed = check("certified-share@1>=0.9", [1] * 89_999 + [0] * 10_001)
    assert str(missed) == "NOT met: certified-share@1>=0.9 (certified-share@1 is 0.9, 89,999 of 100,000)"


@pytest.mark.parametrize("text", ["accuracy>=80", "certified-accuracy@20 <= 80", "exact-share>1.5"])
def test_shares_are_not_compared_with_percents(data, text):
    assert "but it is a share, from 0 to 1; 80 % is 0.8." in refused(
        "certify", "train.npz", "missing.npz", "--require", text
    )


@pytest.mark.parametrize(
    "text",
    ["", "accuracy", "accuracy>=", "accuracy@3>=1", "certified-accuracy>=.5", "certified-accuracy@x>=.5",
     "certified-accuracy@-1>=.5", "robustness>=1", "accuracy==1", "accuracy>=1.2.3", "accuracy>=.", "accuracy>=-1"],
)  # fmt: skip
def test_what_cannot_be_read_is_one_sentence_before_anything_is_certified(data, text):
    assert "--require must be a metric (accuracy, certified-accuracy@FLIPS" in refused(
        "certify", "train.npz", "missing.npz", "--require", text
    )


def test_what_is_not_asked_for_is_told_before_anything_is_certified(data):
    for asked in ((), ("--collective", "4,6")):
        assert "--require collective-share@5>=.5 needs --collective 5, which is not asked for" in refused(
            "certify", "train.npz", "missing.npz", "--require", "collective-share@5>=.5", *asked
        )


def test_what_cannot_be_told_is_one_sentence():
    with pytest.raises(ValueError, match="needs labels of the test points, and there are none"):
        check("accuracy>=0.5", [1])
    with pytest.raises(ValueError, match="needs --collective 5, which is not asked for"):
        check("collective-share@5>=0.5", [1])
    with pytest.raises(ValueError, match="radii of the published formula are not"):
        check("median-radius>=1", [1], model={"model": "smoothed", "method": "published"})


def test_a_gate_in_the_shell(data):
    wanted = ["--require", "certified-accuracy@1>=0.3", "--require", "median-radius >= 1000", "--junit", "gate.xml"]
    result = run("certify", "train.npz", "test.npz", "--quiet", *wanted)
    assert result.exit_code == 1
    said = [line for line in result.stderr.splitlines() if "met:" in line]
    assert said[0].startswith("met: certified-accuracy@1>=0.3 (certified-accuracy@1 is 0.")
    assert said[1].startswith("NOT met: median-radius >= 1000 (median-radius is ")
    (suite,) = ElementTree.parse("gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.find("failure") is None for case in suite] == [True, False]
    assert run("certify", "train.npz", "test.npz", "--quiet", *wanted[:2]).exit_code == 0
    assert "--junit must lie in a folder that exists" in refused(
        "certify", "train.npz", "test.npz", "--junit", "no/where.xml"
    )


def test_one_attack_on_all_points_can_be_demanded(data):
    asked = (
        "certify",
        "train.npz",
        "test.npz",
        "--quiet",
        "--model",
        "ridge",
        "--collective",
        "2",
        "--time-limit",
        "2",
    )
    result = run(*asked, "--require", "collective-accuracy@2>=0.1")
    assert result.exit_code == 0, result.output
    assert "met: collective-accuracy@2>=0.1" in result.stderr
    assert "is about all predictions" in refused(*asked, "--require", "collective-share@2>=0.1")
