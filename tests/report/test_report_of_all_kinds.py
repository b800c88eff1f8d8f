"""The report of hostile, degenerate and large results: whole, small, offline, and never promising too much."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import numpy as np
import pytest

import flipcert
from flipcert.report import report_page, write_report
from flipcert.report.result import Attack, Result
from flipcert.report.words import percent
from tests.helpers.pages import Page
from tests.helpers.results import NASTY, described, made_up, real_result


@pytest.fixture(scope="module")
def one():
    return real_result(flipcert.KernelRidge(), images=True)


def test_names_cannot_break_the_page():
    nasty = made_up(classes=NASTY, name=NASTY[0], model={"model": NASTY[1], NASTY[2]: NASTY[3]})
    source = report_page([nasty, described(replace(nasty, name=NASTY[1]), partitions=2)], title=NASTY[0])
    page = Page(source)
    assert [name for name, _ in page.tags].count("script") == 1
    assert [name for name, _ in page.tags].count("style") == 1
    assert [name for name, _ in page.tags].count("title") >= 1
    assert "img" not in [name for name, _ in page.tags]
    assert not [value for _, attributes in page.tags for value in attributes if value.startswith("on")]
    assert "{{ 7 * 7 }}" in page.text
    assert "&amp; &lt;b&gt;" in page.text
    assert NASTY[0] in page.text


@pytest.mark.parametrize(
    "result",
    [
        made_up(),
        made_up(votes=False),
        made_up(exact=0.0),
        made_up(beyond=0.3),
        made_up(5, 40, beyond=1.0),
        made_up(1, 30, 2),
        made_up(2, 3, 2),
        made_up(12_000, 50_000, [f"class {i}" for i in range(1000)]),
        replace(made_up(), attacks=()),
        made_up(classes=[True, False]),
        made_up(classes=[0.5, 1.5, 2.5]),
        made_up(classes=np.array(["a", "b"], object)),
    ],
    ids=lambda result: f"{len(result.certificates)} of {result.certificates.n_labels}",
)
def test_pages_of_all_kinds_are_whole_small_and_offline(result):
    for labels in (result.labels, None):
        source = report_page([replace(result, labels=labels)])
        page = Page(source)
        assert len(source) < 150_000
        assert "nan" not in source.lower().replace("nano", "")
        assert "inf%" not in source
        for _, attributes in page.tags:
            for key in ("src", "href", "xlink:href", "action", "srcset", "data"):
                assert attributes.get(key, "#").startswith(("#", "data:")), attributes
        assert not re.search(r"url\(|@import|https?:", source)
        for attributes in page.named("svg"):
            hidden = attributes.get("class") == "album" or "viewbox" in attributes
            assert hidden or attributes.get("aria-label") or attributes.get("role") is None
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(ids) == len(set(ids))


def test_nobody_is_correct():
    result = made_up(20)
    wrong = replace(result, labels=np.where(result.certificates.prediction == 0, 1, 0))
    page = Page(report_page([wrong]))
    assert "No prediction is correct, so there is no robustness to measure." in page.text


def test_no_attack_is_known():
    c = made_up().certificates
    bare = replace(c, radius_upper=np.full(len(c), c.n_labels), target=np.ma.masked_all(len(c), int))
    page = Page(report_page([Result("", bare, None)]))
    assert "No attack is known" in page.text
    assert "no attack is known." in page.text
    assert "known attacks" not in page.text.split("What is promised")[0]
    assert "A lower bound" in page.text


def test_promises_count():
    result = made_up(exact=0.5)
    c = result.certificates
    page = Page(report_page([result])).text
    assert f"{c.exact.sum()} of 200 radii ({percent(c.exact.mean())}) are exact" in page
    assert f"{c.rounding_sensitive.sum()} of 200 certificates" in page
    assert "Labels only" in page
    assert "Nothing tuned on these labels" in page
    assert "Wide networks" not in page
    assert "Wide networks" in Page(report_page([described(result, kernel="ntk")])).text
    calm = replace(c, rounding_sensitive=np.zeros(200, bool), radius_upper=c.radius)
    page = Page(report_page([replace(result, certificates=calm)])).text
    assert "All 200 radii are exact" in page
    assert "No certificate here is so close" in page


def test_a_curve_is_called_exact_only_if_every_point_is():
    result = made_up(20_000, 50_000, exact=1.0)
    assert "so the curve is exact" in Page(report_page([result])).text
    # One open point, too far out to be seen in the plot.
    upper = result.certificates.radius_upper.copy()
    right = result.certificates.correct(result.labels)
    upper[np.argmax(np.where(right, upper, -1))] += 1
    certificates = replace(result.certificates, radius_upper=upper)
    page = Page(report_page([replace(result, certificates=certificates, attacks=())])).text
    assert "so the curve is exact" not in page
    assert "over 99.9 %" in page


def test_a_large_sweep_stays_small():
    class Photos(dict):
        def get(self, row, default=None):
            return np.random.default_rng(row).integers(0, 255, (48, 48, 3), dtype=np.uint8)

    photos = Photos()
    results = [
        made_up(10_000, 50_000, 1000, seed=i % 12, name=f"svm {i}",
                model={"partitions": 10 * (i % 8) + 1, "reg": i // 8}, test_images=photos, train_images=photos)
        for i in range(48)
    ]  # fmt: skip
    page = report_page(results)
    assert len(page.encode()) < 1_700_000
    assert "left out to keep the page small" in page
    more = [replace(result, name=f"again {i}", test_images={}, train_images={}) for i, result in enumerate(results)]
    page = Page(report_page(results[::2] + more))
    assert "Details of 48 of the 72 results, the best by the same rule." in page.text
    assert len([a for a in page.named("button") if a.get("role") == "tab"]) == 48
    assert len(page.named("a")) == 48
    assert "again 47" in page.text


def test_the_same_results_give_the_same_page(one, tmp_path):
    write_report([one], tmp_path / "a.html", title="digits")
    write_report([one], tmp_path / "b.html", title="digits")
    first = (tmp_path / "a.html").read_bytes()
    assert first == (tmp_path / "b.html").read_bytes()
    assert first.decode() == report_page([one], title="digits")
    assert first.startswith(b"<!doctype html>")


def test_certificates_report_themselves(one, tmp_path):
    path = tmp_path / "report.html"
    one.certificates.report(path, one.labels.tolist())
    assert "More than half of the correct predictions" in path.read_text(encoding="utf-8")
    one.certificates.report(path)
    assert "More than half of the predictions" in path.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"y has shape \(1,\), but there are 80 certificates"):
        one.certificates.report(path, [1])
    assert os.listdir(tmp_path) == ["report.html"]


def test_bad_results_are_refused(one):
    with pytest.raises(ValueError, match="results is empty"):
        report_page([])
    with pytest.raises(ValueError, match=r"results\[1\].labels do not fit: y has shape \(2,\)"):
        report_page([one, replace(one, labels=one.labels[:2])])
    attack = replace(one.attacks[0], row=80)
    with pytest.raises(ValueError, match=r"results\[0\] has an attack on row 80, but 80 test points"):
        report_page([replace(one, attacks=(attack,))])
    certified = int(one.certificates.radius.argmax())
    attack = Attack(certified, np.array([3]), np.array([0]), np.array([1]))
    with pytest.raises(ValueError, match=rf"attack of 1 flips on row {certified}, which is certified to withstand"):
        report_page([replace(one, attacks=(attack,))])
    with pytest.raises(ValueError, match=r"uint8 of shape .*; got shape \(8, 8\) of float64"):
        report_page([replace(one, test_images={i: np.ones((8, 8)) for i in range(80)})])
    empty = flipcert.Certificates(
        *[np.array([], int)] * 3, None, *[np.ma.array([], dtype=int)] * 2, np.array([], bool), 5
    )
    with pytest.raises(ValueError, match=r"results\[0\] has no test points"):
        report_page([Result("", empty)])
