"""Which labels look wrong? CIFAR-10N: labels of real people beside the true ones, and cleanlab's score beside ours.

python examples/wrong_labels.py features.npz cifar10n.npz

The first file holds x_train (features of the pictures) and y_train, the true labels; the second labels of shape
(3, 50000). The labels are the authors' (CC BY-NC 4.0) and no part of flipcert: docs/crowd.md says how to make the file.
Where cleanlab is installed, its scores come from the same model, cross-validated, with scores as probabilities.
"""

import sys
import time

import numpy as np
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

import flipcert

FIRST = (100, 500, 1_000, 5_000)


def main(features, crowd):
    """Count wrong labels among those that look most like it."""
    features, crowd = np.load(features), np.load(crowd)
    scale = features["scale"] if "scale" in features else np.float32(1.0)
    X = StandardScaler().fit_transform(features["x_train"] * scale)
    labels, wrong = crowd["labels"][0], crowd["labels"][0] != features["y_train"]
    print(f"{wrong.mean():.1%} of {len(labels):,} labels are wrong; wrong ones among the first {FIRST}:")
    model = flipcert.KernelRidge("linear", reg=100.0, classes=range(10))

    start = time.process_time()
    doubt = flipcert.suspicious_labels(model, X, labels)
    show("suspicious_labels, leave-one-out", -doubt, wrong, time.process_time() - start)

    start = time.process_time()
    scores = cross_val_predict(model, X, labels, cv=5, method="decision_function")
    spent = time.process_time() - start
    try:
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        print('cleanlab is not installed; "pip install cleanlab" shows its scores as well.')
        return
    shares = np.maximum(scores, 1e-6)
    shares /= shares.sum(axis=1, keepdims=True)
    for method in ("self_confidence", "normalized_margin", "confidence_weighted_entropy"):
        start = time.process_time()
        quality = get_label_quality_scores(labels, shares, method=method)
        show(f"cleanlab, {method}, 5 folds", quality, wrong, spent + time.process_time() - start)


def show(name, quality, wrong, seconds):
    """One line: wrong labels among the first ones by a score, lowest first."""
    order = np.argsort(quality, kind="stable")
    found = ", ".join(f"{np.count_nonzero(wrong[order[:first]]):,}" for first in FIRST)
    print(f"{name}: {found} ({seconds:.1f} processor seconds)", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
