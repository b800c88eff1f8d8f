"""The report: what the page says is what was proven, whatever the data are."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import struct
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import flipcert
from flipcert.evaluation.report import notable_points, report_page, write_report
from flipcert.evaluation.report.labels import place_labels
from flipcert.evaluation.report.pictures import Album, png, thumbnail
from flipcert.evaluation.report.points import most_attacked
from flipcert.evaluation.report.words import headline, percent, shorten
from flipcert.evaluation.result import Attack, Result
from results import NASTY, made_up, real_result, sweep

VOID = {"meta", "link", "input", "br"}


class Page(HTMLParser):
    """Elements, text and attributes of a page; refuses what is not closed."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.pieces, self.values = [], [], [], []
        self.feed(source)
        self.close()
        assert not self.open
        self.text = re.sub(r"\s+", " ", "".join(self.pieces))

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.values += [value for _, value in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["script"], ["style"]):
            self.pieces.append(data)

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def one():
    return real_result(flipcert.KernelRidge(), settings={"reg": 1.0, "kernel": "NTK()"}, images=True, name="ridge")


@pytest.fixture(scope="module")
def several():
    return sweep()


def test_the_answer_comes_first_and_is_the_metric(one):
    c, y = one.certificates, one.labels
    median = c.median_certified_robustness(y)
    share = f"{100 * median / c.n_labels:.1f} %"
    said = f"Half of the correct predictions withstand {median} flipped labels, {share} of the training set."
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


def test_the_audit_counts_attacks(one):
    labels = np.array([0, 0, 0])
    attacks = [
        Attack(0, np.array([5, 3, 9]), labels, labels + 1),
        Attack(1, np.array([3, 8]), labels[:2], labels[:2] + 1),
        Attack(2, np.array([7, 3, 9]), labels, labels + 1),
        Attack(3, np.array([1]), labels[:1] + 4, labels[:1]),
    ]
    found = [(s.index, s.label, s.n_attacks, s.smallest) for s in most_attacked(attacks, 4)]
    assert found == [(3, 0, 3, 2), (9, 0, 2, 3), (1, 4, 1, 1), (8, 0, 1, 2)]
    assert most_attacked([]) == []
    page = Page(report_page([one]))
    top = most_attacked(one.attacks)[0]
    assert "Where to spend an audit" in page.text
    assert f"{top.index}{top.label} {top.n_attacks}{top.smallest} flip" in page.text
    assert "Where to spend an audit" not in Page(report_page([replace(one, attacks=())])).text


def test_without_true_labels_there_is_no_accuracy(one):
    page = Page(report_page([replace(one, labels=None)]))
    c = one.certificates
    median = flipcert.median_certified_robustness(np.ones(len(c), bool), c.radius)
    assert f"Half of the predictions withstand {median} flipped labels" in page.text
    assert "accuracy without an attack" not in page.text
    assert "correct" not in page.text.split("What is promised")[0].replace("correctly", "")
    assert "what stays the same, not what is right" in page.text


def test_several_results_are_compared(several):
    source = report_page(several)
    page = Page(source)
    assert len([a for a in page.named("button") if a.get("role") == "tab"]) == len(several)
    assert [a["aria-selected"] for a in page.named("button") if a.get("role") == "tab"].count("true") == 1
    assert "Robustness against the number of partitions" in page.text
    medians = [result.certificates.median_certified_robustness(result.labels) for result in several]
    best = several[medians.index(max(medians))]
    rank = (
        "the most robust"
        if medians.count(max(medians)) == 1
        else f"one of the {medians.count(max(medians))} most robust"
    )
    assert f"This is {best.name}, {rank} of the 6 results" in page.text
    for result in several:
        c = result.certificates
        correct = c.correct(result.labels)
        said = f"{result.n_partitions} partition{'s' * (result.n_partitions > 1)}: half of the correct predictions "
        said += f"withstand {flipcert.median_certified_robustness(correct, c.radius)} flips"
        said += f", at most {flipcert.median_certified_robustness(correct, c.radius_upper)}"
        if c.blackbox_radius is not None:
            said += f"; by the votes alone {flipcert.median_certified_robustness(correct, c.blackbox_radius)}"
        assert f"<title>reg {result.settings['reg']}, {said}</title>" in source
    assert "That also holds for a choice among the results" in page.text


def test_results_without_a_sweep_have_a_table_only(one):
    page = Page(report_page([one, replace(one, name="again", n_partitions=7, model="svm")]))
    assert "All results beside each other" in page.text
    assert "Robustness against" not in page.text


def test_one_line_of_a_sweep_names_its_parts(several):
    def names(results):
        return re.findall(r'class="label aside[^>]*>([^<]*)<', report_page(results))

    assert names(several) == ["reg 0.1", "reg 1.0"] or names(several) == ["reg 1.0", "reg 0.1"]
    assert set(names([made_up(seed=i, n_partitions=n) for i, n in enumerate((1, 10))])) >= {"proven", "votes alone"}


def test_names_cannot_break_the_page():
    nasty = made_up(classes=NASTY, name=NASTY[0], model=NASTY[1], settings={NASTY[2]: NASTY[3]})
    source = report_page([nasty, replace(nasty, name=NASTY[1], n_partitions=2)], title=NASTY[0])
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
    assert "Wide networks" in Page(report_page([replace(result, settings={"kernel": "NTK()"})])).text
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
        made_up(10_000, 50_000, 1000, seed=i % 12, name=f"svm {i}", n_partitions=10 * (i % 8) + 1,
                settings={"reg": i // 8}, test_images=photos, train_images=photos)
        for i in range(48)
    ]  # fmt: skip
    page = report_page(results)
    assert len(page.encode()) < 1_700_000
    assert "left out to keep the page small" in page
    more = [replace(result, name=f"again {i}", test_images={}, train_images={}) for i, result in enumerate(results)]
    page = Page(report_page(results[::2] + more))
    assert "Details of the 48 most robust of the 72 results." in page.text
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
    assert "Half of the correct predictions" in path.read_text(encoding="utf-8")
    one.certificates.report(path)
    assert "Half of the predictions" in path.read_text(encoding="utf-8")
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


@pytest.mark.parametrize(
    ("median", "counting", "points", "labelled", "said"),
    [
        (
            219,
            900,
            1000,
            True,
            "Half of the correct predictions withstand 219 flipped labels, 0.4 % of the training set",
        ),
        (1, 900, 1000, False, "Half of the predictions withstand 1 flipped label, 0.002 % of the training set"),
        (0, 9, 10, True, "Fewer than half of the correct predictions are proven to withstand a single flipped label"),
        (50_000, 9, 10, True, "Half of the correct predictions withstand any flips of the 50,000 training labels"),
        (0, 0, 10, True, "No prediction is correct, so there is no robustness to measure"),
        (7, 1, 10, True, "The only correct prediction withstands 7 flipped labels, 0.01 % of the training set"),
        (7, 1, 1, True, "The prediction withstands 7 flipped labels, 0.01 % of the training set"),
        (0, 1, 1, False, "The prediction is not proven to withstand a single flipped label"),
    ],
)
def test_headlines(median, counting, points, labelled, said):
    assert str(headline(median, counting, points, 50_000, labelled=labelled)) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [(0, "0 %"), (1, "100 %"), (0.5, "50.0 %"), (0.99999, "over 99.9 %"), (0.9994, "99.9 %"), (0.00438, "0.4 %"),
     (0.00001, "0.001 %"), (0.00096, "0.1 %")],
)  # fmt: skip
def test_percent(share, said):
    assert percent(share) == said


def test_long_names_keep_both_ends():
    assert shorten("class number 1234", 12) == "class … 1234"
    assert len(shorten("x" * 99, 12)) == 12
    assert shorten("short", 12) == "short"


def decode(data):
    """Read a PNG back, by the book."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        name, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + size]
        assert struct.unpack(">I", data[place + 8 + size : place + 12 + size]) == (zlib.crc32(name + body),)
        chunks[name] = body
        place += 12 + size
    width, height, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert depth == 8
    channels = {0: 1, 2: 3}[kind]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape((height, width) if channels == 1 else (height, width, 3))


@pytest.mark.parametrize("shape", [(8, 8), (1, 1), (48, 20), (5, 7, 3), (3, 3)])
def test_pictures_survive_the_encoding(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    assert np.array_equal(decode(png(pixels)), pixels)
    assert np.array_equal(thumbnail(pixels), pixels)


def test_large_pictures_become_means():
    pixels = np.random.default_rng(0).integers(0, 256, (96, 144, 3), dtype=np.uint8)
    small = thumbnail(pixels)
    assert small.shape == (32, 48, 3)
    assert np.abs(small[3, 5] - pixels[9:12, 15:18].mean(axis=(0, 1))).max() <= 0.5
    assert thumbnail(np.zeros((1000, 10), np.uint8)).shape == (48, 1)


def test_an_album_keeps_each_picture_once_and_within_its_budget():
    album = Album(budget=3000)
    pictures = np.random.default_rng(0).integers(0, 256, (3, 32, 32), dtype=np.uint8)
    shown = [album.show(picture, "x") for picture in pictures[[0, 1, 0, 2]]]
    assert shown[0] == shown[2] != shown[1]
    assert shown[3] == ""
    assert len(album.definitions) == 2
    assert album.left_out == 1
    assert album.show(None, "x") == ""
    assert "&lt;b&gt;" in album.show(pictures[0], "<b>")


def test_pictures_are_in_the_page(one):
    source = report_page([one])
    (row, *_), _ = notable_points(one.certificates, one.labels, preferred=[attack.row for attack in one.attacks])
    name = re.search(rf'aria-label="test row {row}"><use href="#([^"]*)"', source)[1]
    data = re.search(rf'<symbol id="{name}"[^>]*><image [^>]*base64,([^"]*)"', source)[1]
    assert np.array_equal(decode(base64.b64decode(html.unescape(data))), one.test_images[row])


def test_labels_of_curves_cover_nothing():
    x = np.linspace(0, 1, 101)
    upper, lower = 0.9 * np.exp(-2 * x), 0.9 * np.exp(-12 * x)
    spots = place_labels(
        x, [upper, upper, lower], [(0, "half", 0.45), (0, "proven", None), (1, "same", None), (2, "votes", None)]
    )
    assert spots[2] is None
    half, proven, votes = spots[0], spots[1], spots[3]
    assert half.y == pytest.approx(0.45, abs=0.02)
    assert proven != half
    # The name of the lower curve lies under the upper one.
    assert votes.y < np.interp(votes.x, x, upper)
    level = np.ones(101)
    assert place_labels(x, [level], [(0, "high", None)])[0].dy > 0
