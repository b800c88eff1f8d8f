"""The report: what the page says is what was proven."""

from __future__ import annotations

import base64
import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest

import flipcert
from flipcert.report import notable_points, report_page
from flipcert.report.words import percent
from tests.helpers.pages import Page, png_pixels
from tests.helpers.results import described, made_up, real_result, sweep


@pytest.fixture(scope="module")
def one():
    return real_result(flipcert.KernelRidge(), images=True)


@pytest.fixture(scope="module")
def several():
    return sweep()


def test_the_answer_comes_first_and_is_the_metric(one):
    c, y = one.certificates, one.labels
    median = c.median_certified_robustness(y)
    share = f"{100 * median / c.n_labels:.1f} %"
    said = f"More than half of the correct predictions withstand {median} flipped labels, {share} of the training set."
    page = Page(report_page([one], title="Handwritten digits"))
    assert said in page.text
    assert {"name": "description", "content": said} in page.named("meta")
    assert f"accuracy without an attack{percent(c.correct(y).mean())}" in page.text
    assert "Handwritten digits" in page.text


def test_the_curves_hold_certified_accuracy(one, several):
    for result in (one, several[1], made_up(3000, 50_000)):
        c, correct = result.certificates, result.certificates.correct(result.labels)
        page = Page(report_page([result]))
        (drawn,) = [json.loads(a["data-curves"]) for a in page.named("div") if "data-curves" in a]
        assert drawn["points"] == len(c)
        assert drawn["labels"] == c.n_labels
        radii = [c.radius, c.radius_upper] + ([] if c.blackbox_radius is None else [c.blackbox_radius])
        assert len(drawn["counts"]) == len(radii)
        for counts, radius in zip(drawn["counts"], radii, strict=True):
            flips = drawn["stride"] * np.arange(len(counts))
            assert np.array_equal(np.array(counts) / len(c), flipcert.certified_accuracy(correct, radius, flips))


def test_the_table_holds_certified_accuracy(one):
    c, y = one.certificates, one.labels
    source = report_page([one])
    table = re.search(r"<summary>The same as a table</summary>(.*?)</table>", source, flags=re.DOTALL)[1]
    rows = re.findall(r'<tr><th scope="row">([\d,]+)</th><td>([^<]+)</td><td>([^<]+)</td></tr>', table)
    assert len(rows) > 8
    for flips, proven, attacked in rows:
        number = int(flips.replace(",", ""))
        assert proven == percent(c.certified_accuracy(y, number))
        assert attacked == percent(flipcert.certified_accuracy(c.correct(y), c.radius_upper, number))


def test_bars_add_up(one):
    source = report_page([one])
    bars = re.findall(r"<rect [^>]*><title>([^<]*)</title>", source)
    totals = {bar: re.search(r": (\d+) correct predictions?, (\d+) wrong", bar).groups() for bar in bars}
    assert sum(int(right) for right, _ in totals.values()) == one.certificates.correct(one.labels).sum()
    assert sum(int(wrong) for _, wrong in totals.values()) == (~one.certificates.correct(one.labels)).sum()


def test_classes_are_listed_with_their_medians(one):
    c, y = one.certificates, one.labels
    page = report_page([one])
    rows = re.findall(
        r'<th scope="row" title="(\d)">.*?<td class="number">(\d+) of (\d+)</td>.*?number">(\d+)</td></tr>', page
    )
    assert len(rows) == 10
    for label, right, total, median in rows:
        mine = y == int(label)
        assert (int(right), int(total)) == ((c.correct(y) & mine).sum(), mine.sum())
        assert int(median) == flipcert.median_certified_robustness(c.correct(y) & mine, c.radius)
    assert [int(row[3]) for row in rows] == sorted(int(row[3]) for row in rows)


def test_points_are_shown_with_their_attacks(one):
    c = one.certificates
    page = Page(report_page([one]))
    fragile, robust = notable_points(c, one.labels, preferred=[attack.row for attack in one.attacks])
    attacks = {attack.row: attack for attack in one.attacks}
    for row in [*fragile, *robust]:
        flips = attacks[row].indices.size
        assert flips == c.radius_upper[row] + 1
        verb = "makes" if flips == 1 else "make"
        assert f"Test row {row}: {c.prediction[row]}" in page.text
        assert f"{flips} {verb} it {c.target[row]}." in page.text or flips == 1
        first = attacks[row]
        assert f"row {first.indices[0]} {first.old[0]} → {first.new[0]}" in page.text


def test_no_list_of_labels_to_check(one):
    """Labels in many attacks are those of robust predictions; checking them changes nothing."""
    assert "labels to check" not in Page(report_page([one])).text


def test_notable_points_are_the_extremes():
    result = made_up(300)
    c, correct = result.certificates, result.certificates.correct(result.labels)
    fragile, robust = notable_points(c, result.labels, count=7)
    assert correct[fragile].all()
    assert correct[robust].all()
    assert c.radius[fragile].tolist() == sorted(c.radius[correct])[:7]
    assert c.radius[robust].tolist() == sorted(c.radius[correct], reverse=True)[:7]
    few, none = notable_points(made_up(1, 50, 2, seed=3).certificates)
    assert few.tolist() == [0]
    assert none.size == 0
    tied = replace(c, radius=np.full(300, 4), radius_upper=np.full(300, 4))
    assert notable_points(tied, count=3, preferred=[250, 17])[0].tolist() == [17, 250, 0]


def test_without_true_labels_there_is_no_accuracy(one):
    page = Page(report_page([replace(one, labels=None)]))
    c = one.certificates
    median = flipcert.median_certified_robustness(np.ones(len(c), bool), c.radius)
    assert f"More than half of the predictions withstand {median} flipped labels" in page.text
    assert "accuracy without an attack" not in page.text
    assert "correct" not in page.text.split("What is promised")[0].replace("correctly", "")
    assert "what stays the same, not what is right" in page.text


def test_several_results_are_compared(several):
    source = report_page(several)
    page = Page(source)
    assert len([a for a in page.named("button") if a.get("role") == "tab"]) == len(several)
    assert [a["aria-selected"] for a in page.named("button") if a.get("role") == "tab"].count("true") == 1
    assert "Robustness against the number of partitions" in page.text
    averages = [result.certificates.certified_accuracy(result.labels, range(4)).mean() for result in several]
    best = several[averages.index(max(averages))]
    said = (
        f"This is {best.name}, of the 6 results on this page the one to choose: on average over attacks of 0 to 3 flips"
    )
    assert (
        f"{said} (1.0 % of the labels), {percent(max(averages))} of its predictions are proven to stay right"
        in page.text
    )
    assert source.index(f"{best.name}</a> <i") < source.index("to choose</i>")
    for result in several:
        c = result.certificates
        correct = c.correct(result.labels)
        said = f"{result.n_partitions} partition{'s' * (result.n_partitions > 1)}: at least half of the correct "
        said += f"predictions withstand {flipcert.median_certified_robustness(correct, c.radius)} flips"
        said += f", at most {flipcert.median_certified_robustness(correct, c.radius_upper)}"
        if c.blackbox_radius is not None:
            said += f"; by the votes alone {flipcert.median_certified_robustness(correct, c.blackbox_radius)}"
        assert f"<title>reg {result.settings['reg']:g}, {said}</title>" in source
    assert "That also holds for a choice among the results" in page.text


def test_results_without_a_sweep_have_a_table_only(one):
    page = Page(report_page([one, described(replace(one, name="again"), partitions=7, model="svm")]))
    assert "All results beside each other" in page.text
    assert "Robustness against" not in page.text


def test_one_line_of_a_sweep_names_its_parts(several):
    def names(results):
        return re.findall(r'class="label aside[^>]*>([^<]*)<', report_page(results))

    assert sorted(names(several)) == ["reg 0.1", "reg 1"]
    assert set(names([made_up(seed=i, model={"partitions": n}) for i, n in enumerate((1, 10))])) >= {
        "proven",
        "votes alone",
    }


def test_pictures_are_in_the_page(one):
    source = report_page([one])
    (row, *_), _ = notable_points(one.certificates, one.labels, preferred=[attack.row for attack in one.attacks])
    name = re.search(rf'aria-label="test row {row}"><use href="#([^"]*)"', source)[1]
    data = re.search(rf'<symbol id="{name}"[^>]*><image [^>]*base64,([^"]*)"', source)[1]
    assert np.array_equal(png_pixels(base64.b64decode(html.unescape(data))), one.test_images[row])
