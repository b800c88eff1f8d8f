"""Names from outside leave the text around them as it is, and labels that cannot be predicted are told."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import flipcert
from flipcert.report import report_page
from flipcert.report.result import Result
from flipcert.report.words import outside, shorten
from flipcert.report.worth import unmatched
from tests.helpers.command_line import X_TEST, X_TRAIN, Y_TEST, Y_TRAIN, run
from tests.helpers.pages import Page
from tests.helpers.results import described, made_up, real_result

# All that Unicode has to turn text round: embeddings, overrides, isolates, and their ends.
TURNING = [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))]
HEBREW = "\u05d0\u05d1\u05d2"


@pytest.mark.parametrize("control", TURNING)
def test_controls_are_shown_by_their_number(control):
    assert outside(f"a{control}b") == f"a[U+{ord(control):04X}]b"
    assert outside(f"{control}{HEBREW}") == f"\u2068[U+{ord(control):04X}]{HEBREW}\u2069"


def test_text_from_right_to_left_is_set_apart_and_other_text_is_as_it_was():
    assert outside(HEBREW) == f"\u2068{HEBREW}\u2069"
    assert shorten(HEBREW * 20, 9) == f"\u2068{(HEBREW * 2)[:4]}…{(HEBREW * 2)[-4:]}\u2069"
    for text in ("cat", "ünïcødé → 漢字 🙂", "1,000 %", 7, True):
        assert outside(text) == str(text)


def turned(text):
    """Whether a piece of text turns what comes after it round: something that is opened in it is not closed in it."""
    rest = re.sub("\u2068[^\u2068\u2069]*\u2069", "", text)
    return any(control in rest for control in TURNING) or any(
        control in text for control in set(TURNING) - {*"\u2068\u2069"}
    )


@pytest.mark.parametrize("labelled", [True, False])
def test_nothing_on_a_page_is_turned_round(labelled):
    names = np.array([f"{control}name {i} {HEBREW}" for i, control in enumerate(TURNING)] + ["\u202eplain"])
    one = real_result(flipcert.KernelRidge(reg=1.0), names=names, labelled=labelled)
    one = described(replace(one, name="\u202emodel", certificates=one.certificates), kernel="\u2067odd")
    constant = replace(one, name="c\u2066", certificates=replace(
        one.certificates, prediction=np.full(80, names[3]), model={**one.certificates.model, "partitions": 3}
    ), attacks=())  # fmt: skip
    if labelled:
        strange = one.labels.astype(object)
        strange[0] = "\u202dnowhere"
        one = replace(one, labels=strange.astype(str))
        constant = replace(constant, labels=strange.astype(str))
    for results in ([one], [constant], [one, constant], [one, made_up(name="\u202cother")]):
        page = Page(report_page(results, title="\u202etitle"))
        for text in [*page.pieces, *(value for value in page.values if value)]:
            assert not turned(text), text
        assert "[U+202E]" in page.text


def test_the_terminal_is_not_turned_round(data):
    names = {"setosa": "\u202eone", "versicolor": f"two{HEBREW}", "virginica": "three"}
    np.savez("odd.npz", X=X_TRAIN, y=np.array([names[label] for label in Y_TRAIN]))
    np.savez("odd-test.npz", X=X_TEST, y=np.array([names[label] for label in Y_TEST]))
    said = ""
    for row in (0, 40):
        result = run("attack", "odd.npz", "odd-test.npz", "--model", "ridge", "--row", row, "--quiet")
        assert result.exit_code == 0
        assert not turned(result.stdout)
        said += result.stdout
    assert "predicted as [U+202E]one" in said


def renamed(labels, n):
    """Labels of which the first n are ones that no training point has."""
    return np.array(["Rose"] * n + labels[n:].tolist())


@pytest.mark.parametrize(("n", "said"), [(1, "1 of 75 test points has"), (4, "4 of 75 test points have"), (0, None)])
def test_labels_that_do_not_match_are_told_on_the_page(n, said, tmp_path):
    certificates = flipcert.KernelRidge().fit(X_TRAIN, Y_TRAIN).certify(X_TEST)
    labels = renamed(Y_TEST, n)
    certificates.save(tmp_path / "saved.npz")
    for own in (certificates, flipcert.Certificates.load(tmp_path / "saved.npz")):
        assert own.classes.tolist() == ["setosa", "versicolor", "virginica"]
        own.report(tmp_path / "page.html", labels)
        page = Page((tmp_path / "page.html").read_text()).text
        assert ("outside of the label space" in page) == (said is not None)
        if said:
            verb = "is" if n == 1 else "are"
            told = f"{said} a label outside of the label space, such as 'Rose', and {verb} never predicted right."
            assert page.index(told) < page.index("accuracy without an attack")
    several = Page(report_page([Result("a", certificates, labels), Result("b", certificates, labels)]))
    assert several.text.count("outside of the label space, such as") == (3 if said else 0)  # at the top, and in each
    assert unmatched(Result("", replace(certificates, classes=None), labels)) is None
    assert unmatched(Result("", certificates, None)) is None


def test_a_label_space_that_is_given_matches(tmp_path):
    model = flipcert.KernelRidge(classes=["Rose", "setosa", "versicolor", "virginica"]).fit(X_TRAIN, Y_TRAIN)
    assert unmatched(Result("", model.certify(X_TEST), renamed(Y_TEST, 4))) is None


def test_they_are_told_on_pages_of_runs_too(data):
    np.savez("odd.npz", X=X_TEST, y=renamed(Y_TEST, 4))
    assert run("certify", "train.npz", "odd.npz", "--model", "ridge", "--quiet", "--out", "run").exit_code == 0
    assert run("report", "run", "--out", "again.html").exit_code == 0
    for page in ("run/report.html", "again.html"):
        text = Page((data / page).read_text()).text
        assert "4 of 75 test points have a label outside of the label space, such as 'Rose', and are never" in text
    assert (data / "run/report.html").read_text() == (data / "again.html").read_text()


def test_labels_none_of_which_can_be_predicted_are_refused(tmp_path):
    certificates = flipcert.KernelRidge().fit(X_TRAIN, Y_TRAIN).certify(X_TEST[:1])
    certificates.report(tmp_path / "page.html", ["virginica"])
    with pytest.raises(ValueError, match=r"such as 'Rose'\) is one of the classes \(such as 'setosa', 'versicolor'\)"):
        certificates.report(tmp_path / "page.html", ["Rose"])
