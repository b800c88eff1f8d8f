"""Plots of certificates as matplotlib figures (``pip install "flipcert[plot]"``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from flipcert.labels.threats import FLIPS
from flipcert.report.series import Bins, Curves, Medians, class_spreads, counted, nearly_all
from flipcert.report.units import Unit, unit_of
from flipcert.report.words import Exposure, capital
from flipcert.results.certificates import Certificates
from flipcert.results.collective_certificate import CollectiveCertificate

# Dark enough on white, and apart for colour-blind readers (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "os^DvP*"
_MOST_CLASSES = 40


def plot_certified_accuracy(certificates: Certificates | Mapping[str, Certificates], y: ArrayLike | None = None) -> Any:
    """Certified accuracy against the number of flipped labels, or of what else radii count, one curve a model.

    Solid is certified, dashed what the votes of an ensemble alone would certify (black-box); the area up to the
    accuracy that known attacks leave is shaded where the two bounds differ.

    Parameters
    ----------
    certificates : Certificates or dict of str to Certificates
        Certified test sets, by name of the model.
    y : array-like of shape (n_test,), default=None
        True labels. Without them all predictions count, not only those that are right.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    plot_radii : The radii themselves.

    Examples
    --------
    >>> import flipcert
    >>> X, y = [[0.0, 1.0], [0.2, 1.0], [1.0, 0.0], [1.0, 0.3]], [0, 0, 1, 1]
    >>> certificates = flipcert.KernelSVM().fit(X, y).certify(X)
    >>> figure = flipcert.plots.plot_certified_accuracy(certificates, y)
    >>> figure.axes[0].get_xlabel()
    'flipped training labels'
    """
    named = {"": certificates} if isinstance(certificates, Certificates) else dict(certificates)
    _refuse_none(named)
    unit = _one_unit(named.values())
    figure, axes = new_figure()
    points = {name: counted(c, y) for name, c in named.items()}
    last = max(max(nearly_all(c, points[name]) for name, c in named.items()), 1)
    for i, (name, c) in enumerate(named.items()):
        colour = COLOURS[i % len(COLOURS)]
        curves = Curves.of(c, points[name], last)
        axes.step(curves.flips, curves.proven, where="post", color=colour, label=name or "proven", linewidth=2)
        if curves.attacked is not None and not c.exact.all():
            axes.fill_between(
                curves.flips, curves.proven, curves.attacked, step="post", color=colour, alpha=0.2, linewidth=0
            )
        if curves.votes is not None:
            label = f"{name}, votes only" if name else "votes only"
            axes.step(curves.flips, curves.votes, "--", where="post", color=colour, label=label, linewidth=1.5)
    kept = "correct" if y is not None else "as they are"
    axes.set(
        xlabel=of_those_not_trusted(
            "flipped training labels" if unit.threat == FLIPS.name else unit.all_made, named.values()
        ),
        ylabel="certified accuracy" if y is not None else "share of predictions",
        xlim=(0, last + 1),
        ylim=(0, 1.02),
        title=f"Share of test points proven to stay {kept}",
    )
    axes.legend(frameon=False, loc="upper right")
    return figure


def plot_median_robustness(
    certificates: Mapping[int, Certificates] | Mapping[str, Mapping[int, Certificates]], y: ArrayLike | None = None
) -> Any:
    """Median certified robustness against the number of partitions, one colour a setting.

    Solid is certified, thin what known attacks allow at most, dashed what the votes alone certify (black-box).

    Parameters
    ----------
    certificates : dict of int to Certificates, or dict of str to such dicts
        Certified test sets by number of partitions, for one setting or for several by name.
    y : array-like of shape (n_test,), default=None
        True labels. Without them all predictions count, not only those that are right.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    plot_certified_accuracy : For every size of attack.

    Examples
    --------
    >>> import flipcert
    >>> X, y = [[0.0, 1.0], [0.2, 1.0], [1.0, 0.0], [1.0, 0.3]], [0, 0, 1, 1]
    >>> one = flipcert.KernelSVM().fit(X, y).certify(X)
    >>> two = flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=2).fit(X, y).certify(X)
    >>> figure = flipcert.plots.plot_median_robustness({1: one, 2: two}, y)
    >>> figure.axes[0].get_xlabel()
    'number of partitions'
    """
    _refuse_none(certificates)
    single = all(isinstance(value, Certificates) for value in certificates.values())
    groups = cast(Mapping[str, Mapping[int, Certificates]], {"": certificates} if single else certificates)
    unit = _one_unit(c for group in groups.values() for c in group.values())
    figure, axes = new_figure()
    for i, (name, by_partitions) in enumerate(groups.items()):
        colour, marker = COLOURS[i % len(COLOURS)], _MARKERS[i % len(_MARKERS)]
        medians = [(n, Medians.of(c, counted(c, y))) for n, c in sorted(by_partitions.items())]
        named = f"{name}, " if name else ""
        styles: dict[str, tuple[str, dict[str, Any]]] = {
            "proven": (name or "proven", {"linewidth": 2, "marker": marker}),
            "attacked": ("_", {"linewidth": 1}),
            "votes": (f"{named}votes only", {"linewidth": 1.5, "linestyle": "--"}),
        }
        for part, (label, style) in styles.items():
            known = [(n, value) for n, median in medians if (value := getattr(median, part)) is not None]
            if known:
                axes.plot(*zip(*known, strict=True), color=colour, label=label, **style)
    shown = sorted({n for by_partitions in groups.values() for n in by_partitions})
    axes.set_xscale("log")
    axes.set_xticks(shown, [str(n) for n in shown])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.yaxis.get_major_locator().set_params(integer=True)
    kind = "correct predictions" if y is not None else "predictions"
    counted_along = of_those_not_trusted(unit.all_made, [c for group in groups.values() for c in group.values()])
    title = f"{capital(unit.nouns)} that at least half of the {kind} withstand"
    axes.set(xlabel="number of partitions", ylabel=counted_along, title=title)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def plot_radii(certificates: Certificates, y: ArrayLike | None = None) -> Any:
    """Histogram of certified radii.

    Predictions that no attack changes have a bar of their own at the right.

    Parameters
    ----------
    certificates : Certificates
        A certified test set.
    y : array-like of shape (n_test,), default=None
        True labels, to tell right and wrong predictions apart.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    plot_radius_by_class : Class by class.

    Examples
    --------
    >>> import flipcert
    >>> X, y = [[0.0, 1.0], [0.2, 1.0], [1.0, 0.0], [1.0, 0.3]], [0, 0, 1, 1]
    >>> figure = flipcert.plots.plot_radii(flipcert.KernelSVM().fit(X, y).certify(X), y)
    >>> figure.axes[0].get_ylabel()
    'test points'
    """
    figure, axes = new_figure()
    bins = Bins.of(certificates, counted(certificates, y))
    left = np.arange(bins.counting.size) * bins.width
    # A bar is centred on a single number, and begins at the first of several.
    shift = -0.5 if bins.width == 1 else 0.0
    beyond = left[-1] + 2 * bins.width
    places = np.append(left, beyond) + shift if sum(bins.beyond) else left + shift
    heights = [
        np.append(counts, more)[: places.size]
        for counts, more in zip((bins.counting, bins.others), bins.beyond, strict=True)
    ]
    style = {"width": 0.9 * bins.width, "align": "edge"}
    axes.bar(places, heights[0], color=COLOURS[0], label="correct" if y is not None else None, **style)
    if heights[1].any():
        axes.bar(places, heights[1], bottom=heights[0], color="#999999", label="wrong", **style)
        axes.legend(frameon=False, loc="upper right")
    if sum(bins.beyond):
        more = "any" if unit_of(certificates.threat).bounded else "more"
        axes.text(beyond + shift + 0.45 * bins.width, sum(bins.beyond), more, ha="center", va="bottom")
    axes.set(
        xlabel=of_those_not_trusted(Exposure.of(certificates).axis_of_radii, [certificates]),
        ylabel="test points",
        title="Certified radii",
    )
    return figure


def plot_radius_by_class(certificates: Certificates, y: ArrayLike | None = None) -> Any:
    """Spread of certified radii in each class, weakest first: median, middle half and middle 80 %.

    Of more than 40 classes the 20 weakest and the 20 strongest are shown.

    Parameters
    ----------
    certificates : Certificates
        A certified test set.
    y : array-like of shape (n_test,), default=None
        True labels: classes are the true ones, and only right predictions count. Without them classes are the
        predicted ones.

    Returns
    -------
    matplotlib.figure.Figure

    See Also
    --------
    plot_radii : All classes together.

    Examples
    --------
    >>> import flipcert
    >>> X, y = [[0.0, 1.0], [0.2, 1.0], [1.0, 0.0], [1.0, 0.3]], [0, 0, 1, 1]
    >>> figure = flipcert.plots.plot_radius_by_class(flipcert.KernelSVM().fit(X, y).certify(X), y)
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['0', '1']
    """
    labels = certificates.prediction if y is None else y
    spreads = class_spreads(certificates, counted(certificates, y), labels)
    present = [(spread.label, spread.quantiles) for spread in spreads if spread.quantiles is not None]
    ranked = sorted(present, key=lambda row: row[1][2])
    if len(ranked) > _MOST_CLASSES:
        ranked = ranked[: _MOST_CLASSES // 2] + ranked[-_MOST_CLASSES // 2 :]
    figure, axes = new_figure(height=max(2.0, 1.2 + 0.28 * len(ranked)))
    for place, (_, (low, lower, median, upper, high)) in enumerate(ranked):
        axes.plot([low, high], [place, place], color=COLOURS[0], linewidth=1.2)
        axes.plot([lower, upper], [place, place], color=COLOURS[0], linewidth=6, alpha=0.4, solid_capstyle="butt")
        axes.plot([median], [place], "o", color=COLOURS[0])
    axes.set_yticks(range(len(ranked)), [_plain_text(label) for label, _ in ranked])
    axes.invert_yaxis()
    axes.set_xlim(left=min(0, axes.get_xlim()[0]))
    kind = "true class" if y is not None else "predicted class"
    withstood = of_those_not_trusted(Exposure.of(certificates).axis_of_radii, [certificates])
    axes.set(xlabel=withstood, title=f"Certified radii by {kind}")
    return figure


def of_those_not_trusted(name: str, certificates: Iterable[Certificates | CollectiveCertificate]) -> str:
    """The name of an axis, which also says how many labels can be flipped if some are trusted, or how many sources."""
    exposures = {Exposure.of(c) for c in certificates}
    first = next(iter(exposures))
    if first.n_sources is not None:
        return name if len({e.n_sources for e in exposures}) > 1 else f"{name}\n(of {first.counted}{first.aside})"
    if not first.unit.spares_trusted or not any(e.n_trusted for e in exposures):
        return name
    what = f"{first.unit.thing}s"
    if len(exposures) > 1:
        return f"{name}\n(of {what} that are not trusted)"
    if first.reach == 0:
        impossible = first.unit.nothing_possible
        return f"{name}\n({impossible[0].lower()}{impossible[1:]}: all {first.n_labels:,} are trusted)"
    return f"{name}\n(of {first.n_attackable:,} {what} that are not trusted; {first.n_trusted:,} are trusted)"


def _one_unit(certificates: Iterable[Certificates]) -> Unit:
    """What radii count; a ValueError if they do not all count the same."""
    threats = list(dict.fromkeys(c.threat for c in certificates))
    if len(threats) > 1:
        named = ", ".join(map(repr, threats))
        raise ValueError(
            f"certificates must be of one threat, for their radii count different things otherwise; got {named}."
        )
    return unit_of(threats[0])


def _plain_text(label: Any) -> str:
    """A label as it is: matplotlib would read dollar signs as mathematics."""
    return str(label).replace("$", r"\$")


def _refuse_none(certificates: Mapping[Any, Any]) -> None:
    if not certificates:
        raise ValueError("certificates is empty; give at least one certified test set.")


def new_figure(height: float = 4.8) -> tuple[Any, Any]:
    """A figure with one pair of axes, in the style of all plots."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('Plots need matplotlib. Install with: pip install "flipcert[plot]".') from None
    figure = Figure(figsize=(8.0, height), layout="constrained")
    axes = figure.subplots()
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
