"""How many workers would have to collude? CIFAR-10N: three labels a picture from 747 real people.

python examples/cifar10n.py features.npz cifar10n.npz

The first file holds x_train, x_test (features of the pictures) and y_test, the second labels and workers, both of shape
(3, 50000). The labels are the authors' (CC BY-NC 4.0) and no part of flipcert: docs/crowd.md says how to make the file.
"""

import sys
import time

import numpy as np
from sklearn.preprocessing import StandardScaler

import flipcert

CLASSES = range(10)


def main(features, crowd):
    """Fit and certify one model after the other."""
    features, crowd = np.load(features), np.load(crowd)
    scale = features["scale"] if "scale" in features else np.float32(1.0)
    scaler = StandardScaler().fit(features["x_train"] * scale)
    rows = np.random.default_rng(0).choice(len(features["x_test"]), 300, replace=False)
    X = scaler.transform(features["x_train"] * scale)
    X_test, y_test = scaler.transform(features["x_test"][rows] * scale), features["y_test"][rows]
    labels, workers = crowd["labels"], crowd["workers"]

    for reg in (100.0, 1e4):
        model = flipcert.KernelRidge("linear", reg=reg, classes=CLASSES)
        model.fit(X, labels[0], source=workers[0])
        show(f"ridge, reg {reg:g}, first label", model, X_test, y_test)

    row = np.tile(np.arange(labels.shape[1]), 3)
    equal = flipcert.Annotations(row, labels.ravel(), source=workers.ravel())
    capped = flipcert.Annotations.capped(row, labels.ravel(), workers.ravel(), cap=100)
    for name, annotations in (("equal weights", equal), ("weights 1 / max(volume, 100)", capped)):
        model = flipcert.KernelRidge("linear", reg=1e4, classes=CLASSES).fit(X, annotations)
        show(f"ridge, reg 1e4, three labels, {name}", model, X_test, y_test)

    for partitions in (10, 50, 250):
        base = flipcert.KernelRidge("linear", reg=100.0)
        model = flipcert.PartitionEnsemble(base, partitions, partition="source", classes=CLASSES)
        model.fit(X, labels[0], source=workers[0])
        show(f"partition by worker, N = {partitions}, ridge reg 100, first label", model, X_test, y_test)


def show(name, model, X_test, y_test):
    """One line: accuracy, medians of the correct points, and how many points one or two workers can change."""
    start = time.perf_counter()
    by_worker = model.certify(X_test, threat="sources")
    seconds = time.perf_counter() - start
    flips = model.certify(X_test).median_certified_robustness(y_test)
    one, two = (np.mean(by_worker.radius_upper < workers) for workers in (1, 2))
    print(
        f"{name}: accuracy {by_worker.correct(y_test).mean():.3f}; median of the correct {flips} flips, "
        f"{by_worker.median_certified_robustness(y_test)} of {by_worker.n_sources} workers; "
        f"one worker changes {one:.0%} of the points, two {two:.0%}; exact {by_worker.exact.mean():.0%} "
        f"({seconds:.1f} s for {len(by_worker)} points)",
        flush=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
