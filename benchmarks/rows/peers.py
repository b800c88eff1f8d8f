"""The methods that flipcert is compared with: how fast, how much they certify, and how far exact answers go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

import flipcert
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import Spread, compare, seconds

FLIPS = (0, 1, 2, 4, 8, 16, 32)
Split = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def digits() -> Split:
    """Handwritten digits, bundled with scikit-learn: training inputs, test inputs, and the labels of both."""
    X, y = load_digits(return_X_y=True)
    parts: Split = tuple(train_test_split(X / 16 - 0.5, y, test_size=360, random_state=0))
    return parts


def rows(settings: Settings) -> Iterator[Record]:
    """A row for each method, certified accuracies beside it, then the share of points that integer programs solve."""
    X_train, X_test, y_train, y_test = digits()
    X_test, y_test = X_test[: settings.size(360, 60)], y_test[: settings.size(360, 60)]
    methods: dict[str, tuple[Any, Any]] = {
        "ScaLabelCert: ridge": (flipcert.KernelRidge("linear", reg=10.0), flipcert.KernelRidge("linear", reg=10.0)),
    }
    for method in ("white-box", "neyman-pearson", "kl"):
        smoothed = flipcert.SmoothedLinear(0.0125, 10.0, method)
        methods[f"smoothing: {method}"] = (smoothed, flipcert.KernelRidge("linear", reg=10.0))
    neighbours = KNeighborsClassifier(15)
    methods["verifier: 15 neighbours"] = (flipcert.FixedBudget(neighbours, neighbours_are_robust), neighbours)
    for name, (model, plain) in methods.items():
        model.fit(X_train, y_train)
        certificates = model.certify(X_test)
        ours = min(seconds(lambda: model.certify(X_test)) for _ in range(3))  # noqa: B023
        yield Record(
            name=f"peers-{name.replace(': ', '-').replace(' ', '-')}",
            group="peers",
            job=f"{name}, digits, n = {len(y_train):,}, T = {len(y_test)}: certify",
            measured=compare(
                lambda: model.certify(X_test),  # noqa: B023
                lambda: plain.fit(X_train, y_train),  # noqa: B023
                settings.pairs,
            ),
            unit="×",
            method="certify over fitting the plain model, in turns",
            data="digits",
            checked=_replayed(certificates, model, X_train, y_train, X_test),
            quick=settings.quick,
            details={
                "method": name,
                "points_per_second": len(y_test) / ours,
                "certified_accuracy": [float(a) for a in certificates.certified_accuracy(y_test, FLIPS)],
            },
        )
    yield from solved_shares(settings)


def solved_shares(settings: Settings) -> Iterator[Record]:
    """Exact radii of an SVM for n samples, C at multiples of the small-C threshold, within a time limit a point."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    limit, n_points = settings.size(5.0, 1.0), settings.size(6, 4)
    order = np.random.default_rng(0).permutation(len(y))
    points = X[order[-n_points:]]
    for n in settings.size((20, 40, 80, 160), (20, 40)):
        train, labels = X[order[:n]], y[order[:n]]
        threshold = flipcert.KernelSVM("linear").fit(train, labels).C_max_
        for ratio in settings.size((1.0, 1.5, 2.0, 4.0, 10.0), (1.0, 4.0)):
            model = flipcert.MilpSVM("linear", C=ratio * threshold, time_limit=limit).fit(train, labels)
            certificates: list[flipcert.Certificates] = []
            ratio_of_times = compare(
                lambda: certificates.append(model.certify(points)),  # noqa: B023
                lambda: model.fit(train, labels),  # noqa: B023
                1,
                warm=False,
            )
            first = certificates[0]
            share = float(first.exact.mean())
            yield Record(
                name=f"milp-{n}-{ratio:g}".replace(".", "_"),
                group="milp",
                job=f"MilpSVM, n = {n}, C = {ratio:g} C_max, {limit:g} s a point: share of exact radii",
                measured=Spread(share, share, share, n_points),
                method="radius == radius_upper",
                data="breast cancer, standardised",
                checked=_replayed(first, model, train, labels, points[:2]),
                quick=settings.quick,
                details={"n": n, "ratio": ratio, "limit": limit, "over_fit": ratio_of_times.median,
                         "mean_gap": float((first.radius_upper - first.radius).mean())},
            )  # fmt: skip


def neighbours_are_robust(model: Any, X: NDArray[Any], n_flips: int) -> NDArray[np.bool_]:
    """Whether the majority among the neighbours leads by more than flips can close."""
    votes = np.sort(model.predict_proba(X) * model.n_neighbors, axis=1).round()
    return np.asarray(votes[:, -1] - votes[:, -2] > 2 * n_flips)


def _replayed(
    certificates: flipcert.Certificates, model: Any, X: NDArray[Any], y: NDArray[Any], points: NDArray[Any]
) -> str:
    """Refit on the known attacks of some points: each must change the prediction, and none may be within the radius."""
    count = 0
    for t, witness in enumerate(model.worst_flips(points[:5])):
        if witness is not None:
            after = model.fit(X, witness.apply(y)).predict(points[t : t + 1])[0]
            if after == certificates.prediction[t] or len(witness) <= certificates.radius[t]:
                raise AssertionError(f"attack on test point {t}: {len(witness)} flips, prediction {after}.")
            count += 1
    model.fit(X, y)
    return f"attacks replayed: {count} points" if count else "no attack is known"
