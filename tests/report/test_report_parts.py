"""The parts of a report: words, pictures, labels of curves."""

from __future__ import annotations

import numpy as np
import pytest

from flipcert.report.curve_names import place_labels
from flipcert.report.pictures import Album, png, thumbnail
from flipcert.report.words import percent, setting, shorten
from tests.helpers.pages import png_pixels


@pytest.mark.parametrize(
    ("share", "said"),
    [(0, "0 %"), (1, "100 %"), (0.5, "50.0 %"), (0.99999, "over 99.9 %"), (0.9994, "99.9 %"), (0.00438, "0.4 %"),
     (0.00001, "0.001 %"), (0.00096, "0.1 %")],
)  # fmt: skip
def test_percent(share, said):
    assert percent(share) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (10.0, "10"),
        (0.1, "0.1"),
        (1e-7, "1e-07"),
        (3, "3"),
        ("2.0", "2.0"),
        (True, "True"),
        ([64, 32], "64, 32"),
        ([], "none"),
    ],
)
def test_settings(value, said):
    assert setting(value) == said


def test_long_names_keep_both_ends():
    assert shorten("class number 1234", 12) == "class … 1234"
    assert len(shorten("x" * 99, 12)) == 12
    assert shorten("short", 12) == "short"


@pytest.mark.parametrize("shape", [(8, 8), (1, 1), (48, 20), (5, 7, 3), (3, 3)])
def test_pictures_survive_the_encoding(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    assert np.array_equal(png_pixels(png(pixels)), pixels)
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


@pytest.mark.parametrize("rule", np.linspace(0, 1, 21))
def test_labels_of_curves_do_not_cross_the_rule(rule):
    x = np.linspace(0, 1, 101)
    (spot,) = place_labels(x, [0.9 * np.exp(-3 * x)], [(0, "proven", None)], rule)
    width, length = 680, 7.6 * len("proven")
    left = width * spot.x + spot.dx - (length if spot.style.startswith("end") else 0)
    assert not left < width * rule < left + length
