"""Plots show the metrics, for all kinds of certificates."""

from __future__ import annotations

import builtins
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipcert
from flipcert import plots
from flipcert.report.series import Bins, Curves, Medians, class_spreads
from tests.helpers.results import made_up

KINDS = {
    "ensemble": made_up(),
    "one model": made_up(votes=False, exact=1.0),
    "beyond": made_up(beyond=0.2),
    "all beyond": made_up(8, 50, beyond=1.0),
    "one point": made_up(1, 30, 2),
    "many classes": made_up(3000, 50_000, 500),
    "names": made_up(classes=["$x^2$", "a $ b", r"\frac{", "<b>", "", "_"]),
}


def drawn(figure):
    """Render, since much only fails then."""
    figure.savefig(io.BytesIO(), format="png")
    return figure.axes[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labelled", [True, False])
def test_all_plots_draw(kind, labelled):
    result = KINDS[kind]
    c, y = result.certificates, result.labels if labelled else None
    for plot in (plots.plot_certified_accuracy, plots.plot_radii, plots.plot_radius_by_class):
        axes = drawn(plot(c, y))
        assert axes.get_xlabel()
        assert axes.get_title()
    axes = drawn(plots.plot_median_robustness({1: c, 10: c}, y))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "10"]


def test_curves_are_the_metrics():
    result = KINDS["ensemble"]
    c, y = result.certificates, result.labels
    lines = drawn(plots.plot_certified_accuracy({"a": c, "b": c}, y)).get_lines()
    assert [line.get_label() for line in lines] == ["a", "a, votes only", "b", "b, votes only"]
    flips, shares = lines[0].get_data()
    assert np.array_equal(shares, c.certified_accuracy(y, flips.astype(int)))
    _, votes = lines[1].get_data()
    assert np.array_equal(votes, flipcert.certified_accuracy(c.correct(y), c.blackbox_radius, flips.astype(int)))


def test_medians_by_setting():
    c, y = KINDS["ensemble"].certificates, KINDS["ensemble"].labels
    lines = drawn(plots.plot_median_robustness({"weak": {50: c, 1: c}, "strong": {10: c}}, y)).get_lines()
    assert lines[0].get_xdata().tolist() == [1, 50]
    assert lines[0].get_ydata().tolist() == [c.median_certified_robustness(y)] * 2
    assert {line.get_label() for line in lines} >= {"weak", "weak, votes only", "strong"}


def test_bars_count_all_points():
    result = KINDS["beyond"]
    axes = drawn(plots.plot_radii(result.certificates, result.labels))
    assert sum(bar.get_height() for bar in axes.patches) == len(result.certificates)


def test_nothing_to_plot_is_an_error():
    for plot in (plots.plot_certified_accuracy, plots.plot_median_robustness):
        with pytest.raises(ValueError, match="certificates is empty; give at least one"):
            plot({})
    with pytest.raises(ValueError, match="y has shape"):
        plots.plot_radii(KINDS["ensemble"].certificates, [1, 2])


def test_without_matplotlib(monkeypatch):
    real_import = builtins.__import__

    def no_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(ImportError, match=r"pip install \"flipcert\[plot\]\""):
        plots.plot_radii(KINDS["ensemble"].certificates)


points = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5), st.booleans(), st.integers(0, 2)), min_size=1, max_size=30
)


def certificates_of(rows, n_labels):
    radius = np.array([row[0] for row in rows])
    upper = np.minimum(radius + [row[1] for row in rows], n_labels)
    radius = np.minimum(radius, upper)
    nobody = np.zeros(len(rows), dtype=np.int64)
    target = np.ma.masked_array(nobody, mask=upper == n_labels)
    c = flipcert.Certificates(nobody, radius, upper, radius // 2, nobody, target, nobody > 0, n_labels)
    return c, np.array([row[2] for row in rows]), np.array([row[3] for row in rows])


@given(points, st.sampled_from([5, 12, 1000]))
def test_series_are_what_a_count_gives(rows, n_labels):
    c, counts, classes = certificates_of(rows, n_labels)
    curves = Curves.of(c, counts)
    assert curves.flips[0] == 0
    assert curves.flips.size >= 2
    assert curves.flips[-1] <= n_labels
    for flips, share in zip(curves.flips, curves.proven, strict=True):
        assert share == sum(k and r >= flips for k, r in zip(counts, c.radius, strict=True)) / len(rows)
    bins = Bins.of(c, counts)
    assert bins.counting.sum() + bins.others.sum() + sum(bins.beyond) == len(rows)
    assert bins.counting.sum() + bins.beyond[0] == counts.sum()
    medians = Medians.of(c, counts)
    assert medians.attacked is None or medians.proven <= medians.attacked
    for spread in class_spreads(c, counts, classes):
        mine = (classes == spread.label) & counts
        assert spread.n_counting == mine.sum()
        assert spread.n_points == (classes == spread.label).sum()
        if mine.any():
            # Each quantile is the largest r that the share above it withstands, as the median is.
            for percent, value in zip((10, 25, 50, 75, 90), spread.quantiles, strict=True):
                assert 100 * np.sum(c.radius[mine] >= value) >= (100 - percent) * mine.sum()
                assert 100 * np.sum(c.radius[mine] > value) < (100 - percent) * mine.sum()
            assert spread.quantiles[2] == flipcert.median_certified_robustness(mine, c.radius)


def test_long_curves_are_thinned_but_exact():
    result = KINDS["many classes"]
    c = result.certificates
    counts = c.correct(result.labels)
    curves = Curves.of(c, counts, last=20_000)
    assert curves.flips.size < 300
    assert np.array_equal(curves.proven, flipcert.certified_accuracy(counts, c.radius, curves.flips))
