"""Functions on arrays, pipelines, and certificates in files."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import flipcert
from tests.goldens.data import FAMILIES, NAMES, blobs, centred, digits, jittered, weights_of
from tests.goldens.record import columns_of, header_of, number, plain, size_of, witness_of


def told(**facts):
    """Plain facts."""
    return {"told": {name: plain(value) for name, value in facts.items()}}


def costs(family, n_classes, dtype=np.float64, n_train=14):
    """All bounds of all methods, without and with offsets, and the attacks behind them."""
    weights, labels, offset = weights_of(family, 4, n_train, n_classes)
    problem = (weights.astype(dtype), labels, n_classes)
    found = {}
    for name, given in (("", None), (", offset", offset)):
        for bound in ("lower", "upper", "exact"):
            found[f"{bound}{name}"] = flipcert.flip_costs(*problem, bound=bound, offset=given)
        for bound in ("lower", "upper"):
            found[f"published {bound}{name}"] = flipcert.flip_costs(
                *problem, bound=bound, method="published", offset=given
            )
        found[f"cheapest{name}"] = flips(*problem, offset=given)
        for target in range(n_classes):
            found[f"to {target}{name}"] = flips(*problem, target=target, offset=given)
        closest = flipcert.cheapest_flips(*problem, target=np.arange(4) % n_classes, offset=given, bound="exact")
        found[f"sizes to each{name}"] = [size_of(witness) for witness in closest]
    return told(**found)


def flips(*problem, **options):
    """Witnesses, plainly."""
    return [witness_of(witness) for witness in flipcert.cheapest_flips(*problem, **options)]


def many_weights():
    """Rows long enough that only some weights are sorted, of one sign and of both."""
    rng = np.random.RandomState(11)
    labels = rng.randint(0, 10, 3000)
    found = {}
    for name, lowest in (("one sign", 0), ("both signs", -(2**29)), ("mostly positive", -(2**25))):
        weights = rng.randint(lowest, 2**30, (3, 3000)).astype(np.float64)
        for bound in ("lower", "upper"):
            for method in ("best", "published"):
                found[f"{name}, {bound}, {method}"] = flipcert.flip_costs(
                    weights, labels, 10, bound=bound, method=method
                )
        found[f"{name}, cheapest"] = flips(weights, labels, 10)
        found[f"{name}, to 7"] = flips(weights, labels, 10, target=7)
    return told(**found)


def votes():
    """Radii of votes, with all kinds of costs."""
    rng = np.random.RandomState(12)
    found = {}
    for n_classes, n_voters in ((2, 9), (3, 20), (10, 50)):
        ballots = np.minimum(rng.geometric(0.4, (6, n_voters)) - 1, n_classes - 1)
        found[f"black box, {n_classes}"] = flipcert.blackbox_radius(ballots, n_classes)
        for dearest in (1, 3, 40, 1000):
            prices = rng.randint(1, dearest + 1, (6, n_voters, n_classes))
            found[f"{n_classes} classes, {dearest}"] = flipcert.ensemble_radius(ballots, prices, n_classes)
            found[f"{n_classes} classes, {dearest}, labels"] = flipcert.ensemble_radius(ballots, prices, n_labels=35)
    return told(**found)


def metrics():
    """Shares and medians."""
    rng = np.random.RandomState(13)
    correct, radius = rng.rand(41) < 0.7, rng.randint(0, 20, 41)
    medians = [flipcert.median_certified_robustness(correct, radius, over=over) for over in ("correct", "all")]
    accuracy = flipcert.certified_accuracy(correct, radius, np.arange(25).reshape(5, 5))
    one = flipcert.certified_accuracy(correct, radius, 7)
    nothing = flipcert.median_certified_robustness(np.zeros(3, bool), [1, 2, 3])
    return {
        **told(medians=medians, nothing=nothing),
        "numbers": {"accuracy": number(accuracy, 0), "one": number(one, 0)},
    }


def pipeline(*steps, data=jittered, names=None, exact=False):
    """A pipeline through the two functions that take one."""
    X, y, X_test = data()
    y = y if names is None else names[y]
    model = make_pipeline(*steps).fit(X, y)
    certificates = flipcert.certify(model, X_test, **({"exact": True} if exact else {}))
    rows = columns_of(certificates)
    rows["predict"] = plain(model.predict(X_test))
    rows["witness"] = [witness_of(witness) for witness in flipcert.worst_flips(model, X_test)]
    accuracy = certificates.certified_accuracy(model.predict(X_test), [0, 1, 5, 20])
    found = {"median": certificates.median_certified_robustness(model.predict(X_test)), **header_of(certificates)}
    return {"told": found, "rows": rows, "numbers": {"accuracy": number(accuracy, 0)}}


def frozen():
    """A pipeline whose scaler was fitted before, elsewhere."""
    X, _, _ = jittered()
    return pipeline(FrozenEstimator(StandardScaler().fit(X[:50])), flipcert.KernelRidge())


def replays():
    """What the flips of an attack do, one after the other."""
    X, y, X_test = centred()
    ensemble = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 5).fit(X, y)
    single = flipcert.KernelSVM("linear", classes=range(10)).fit(X, y)
    binary = flipcert.KernelSVM("linear").fit(X, y % 2)
    numbers = {}
    for name, model in (("ensemble", ensemble), ("single", single), ("binary", binary)):
        for t in (0, 3):
            (witness,) = model.worst_flips(X_test[t : t + 1])
            numbers[f"{name}, row {t}"] = number(model.replay(X_test[t : t + 1], witness), 0)
    return {"numbers": numbers}


def saved_and_loaded():
    """Certificates come back from a file as they were."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, certificates in certificates_to_keep().items():
            path = Path(folder) / "certificates.npz"
            certificates.save(path)
            loaded = flipcert.Certificates.load(path)
            rows |= {f"{name}, {column}": values for column, values in columns_of(loaded).items()}
    return {"told": rows}


def certificates_to_keep():
    """Some of each kind, for files: strings, votes, attacks that do not exist."""
    X, y, X_test = centred(60, 6)
    single = flipcert.KernelSVM("linear", classes=NAMES).fit(X, NAMES[y], trusted=y < 5)
    everything = flipcert.KernelSVM("linear").fit(X, y, trusted=np.ones(60, bool))
    votes = flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 4).fit(X, y)
    models = {"strings": single, "all trusted": everything, "ensemble": votes}
    return {name: model.certify(X_test) for name, model in models.items()}


SVM, RIDGE = flipcert.KernelSVM, flipcert.KernelRidge
CASES = {
    "many weights": many_weights,
    "votes": votes,
    "metrics": metrics,
    "replays": replays,
    "saved and loaded": saved_and_loaded,
    "pipeline": partial(pipeline, StandardScaler(), RIDGE(reg=4.0)),
    "pipeline, strings": partial(pipeline, MinMaxScaler(), SVM("rbf"), names=NAMES),
    "pipeline, components": partial(pipeline, PCA(8, svd_solver="full"), SVM(), data=partial(jittered, 120, 6, 3)),
    "pipeline, label-free": partial(pipeline, flipcert.LabelFree(StandardScaler()), RIDGE("rbf", reg=0.5)),
    "pipeline, ensemble": partial(
        pipeline, StandardScaler(), flipcert.PartitionEnsemble(RIDGE(), 5, "random"), exact=True,
        data=partial(jittered, 90, 6, 3),
    ),
    "pipeline, no transformer": partial(pipeline, SVM("linear"), data=digits),
    "pipeline, nested": partial(pipeline, StandardScaler(), make_pipeline(MinMaxScaler(), SVM()), data=blobs),
    "pipeline, frozen": frozen,
}  # fmt: skip
for family in FAMILIES:
    CASES[f"costs, {family}"] = partial(costs, family, 3)
for n_classes in (2, 4):
    CASES[f"costs, integers, {n_classes} classes"] = partial(costs, "integers", n_classes)
    CASES[f"costs, tenths, {n_classes} classes, float32"] = partial(costs, "tenths", n_classes, np.float32)
