"""Accuracy and certified accuracy of every model on five small data sets: the evidence behind ``choose.md``.

``python docs/howto/measure_models.py`` measures (some minutes; the networks need torch), writes ``models.json``, and
from it the tables and the picture of the page; ``--page`` only writes the page again. Settings are fixed here, before
any result, and are the same for all data sets: no model is tuned, so that none is helped by labels.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import flipcert

HERE = Path(__file__).parent
RECORD, PAGE, PICTURE = HERE / "models.json", HERE / "choose.md", HERE / "models.svg"
SPLITS = 3
# Sizes of attacks, as shares of the training labels.
SHARES = (0.0, 0.01, 0.02, 0.05)

relu = flipcert.kernels.NTK(activation="relu")
MODELS = {
    "KernelRidge, ReLU NTK, reg 1": lambda: flipcert.KernelRidge(relu, reg=1.0),
    "KernelRidge, linear, reg 10": lambda: flipcert.KernelRidge("linear", reg=10.0),
    "KernelRidge, rbf, reg 1": lambda: flipcert.KernelRidge("rbf", reg=1.0),
    "LabelSpreading": lambda: flipcert.LabelSpreading(),
    "WeightedNeighbors, 15": lambda: flipcert.WeightedNeighbors(15),
    "KernelSVM, linear (small C)": lambda: flipcert.KernelSVM("linear"),
    "KernelSVM, rbf (small C)": lambda: flipcert.KernelSVM("rbf"),
    "PartitionEnsemble of 10, ridge, ReLU NTK": lambda: flipcert.PartitionEnsemble(flipcert.KernelRidge(relu), 10),
    "PartitionEnsemble of 10, random forest": lambda: flipcert.PartitionEnsemble(
        RandomForestClassifier(100, random_state=0), 10
    ),
    "LogisticRegression, C 1/30": lambda: flipcert.LogisticRegression(C=1 / 30),
    "SmoothedLinear, reg 10": lambda: flipcert.SmoothedLinear(reg=10.0),
    "BoundedNetwork, linear": lambda: flipcert.BoundedNetwork(),
    "MilpSVM, rbf, C 1, on 30 rows": lambda: flipcert.MilpSVM("rbf", time_limit=2.0),
}
# What MilpSVM is given: it is for small training sets.
FEW_ROWS, FEW_POINTS = 30, 20


def data_sets():
    """Inputs and labels by name, and how many are kept for testing."""
    yield "iris", load_iris(return_X_y=True), 50
    yield "wine", load_wine(return_X_y=True), 60
    yield "breast cancer", load_breast_cancer(return_X_y=True), 169
    yield "two moons", make_moons(700, noise=0.25, random_state=0), 200
    yield "digits", load_digits(return_X_y=True), 360


def splits(X, y, n_test):
    """Training and test sets, standardised by the training inputs."""
    for seed in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=n_test, random_state=seed, stratify=y)
        scale = StandardScaler().fit(X_train)
        yield scale.transform(X_train), scale.transform(X_test), y_train, y_test


def few_of_each(y, count):
    """Row numbers, as many of each class as fit."""
    rng = np.random.default_rng(0)
    each = count // np.unique(y).size
    return np.concatenate([rng.permutation(np.flatnonzero(y == c))[:each] for c in np.unique(y)])


def measure(make, X_train, X_test, y_train, y_test, few):
    """What one model comes to on one split."""
    if few:
        rows = few_of_each(y_train, FEW_ROWS)
        X_train, y_train, X_test, y_test = X_train[rows], y_train[rows], X_test[:FEW_POINTS], y_test[:FEW_POINTS]
    model = make().set_params(classes=np.unique(y_train))
    began = time.process_time()
    certificates = model.fit(X_train, y_train).certify(X_test)
    seconds = time.process_time() - began
    flips = [round(share * y_train.size) for share in SHARES]
    return {
        "certified": certificates.certified_accuracy(y_test, flips).tolist(),
        "median": certificates.median_certified_robustness(y_test) / y_train.size,
        "exact": float(np.mean(certificates.exact)),
        "seconds": seconds,
    }


def best_svm(kernel, X_train, X_test, y_train, y_test):
    """Accuracy of the SVM whose C, of 13, is best by cross-validation: it looks at labels, and nothing is proven."""
    search = GridSearchCV(SVC(kernel=kernel), {"C": np.logspace(-3, 3, 13)}, cv=5)
    return float(search.fit(X_train, y_train).score(X_test, y_test))


def measured():
    """All of it, as plain values."""
    results, references = {}, {}
    for name, (X, y), n_test in data_sets():
        own = list(splits(X, y, n_test))
        labels, dummy = int(own[0][2].size), float(np.mean([np.bincount(s[3]).max() / n_test for s in own]))
        best = {kernel: float(np.mean([best_svm(kernel, *split) for split in own])) for kernel in ("linear", "rbf")}
        references[name] = {"labels": labels, "one answer": dummy, "best SVM": best}
        for model, make in MODELS.items():
            few = model.startswith("MilpSVM")
            runs = [measure(make, *split, few) for split in (own[:1] if few else own)]
            results.setdefault(model, {})[name] = {
                key: np.mean([r[key] for r in runs], axis=0).tolist() for key in runs[0]
            }
            print(name, model, results[model][name], flush=True)
    return {"references": references, "results": results}


def percent(share):
    """A share in words of a table."""
    return f"{share:.3f}".removeprefix("0") if share < 1 else "1"


def tables(record):
    """The tables of the page."""
    results, references = record["results"], record["references"]
    shown = {model: own for model, own in results.items() if not model.startswith("MilpSVM")}
    head = "| model | " + " | ".join(f"{name} ({own['labels']:,})" for name, own in references.items()) + " |"

    def at(place):
        """Certified accuracy at one size of attack, the best of each data set in bold."""
        lines = [head, "| --- |" + " --- |" * len(references)]
        best = {name: max(own[name]["certified"][place] for own in shown.values()) for name in references}
        for model, own in shown.items():
            shares = {name: own[name]["certified"][place] for name in references}
            cells = [f"**{percent(s)}**" if s == best[name] > 0 else percent(s) for name, s in shares.items()]
            lines.append(f"| {model} | {' | '.join(cells)} |")
        return lines

    cells = [percent(own["one answer"]) for own in references.values()]
    accuracy = "\n".join([*at(0), f"| *one answer for all* | {' | '.join(cells)} |"])
    little, much = ("\n".join(at(SHARES.index(share))) for share in (0.01, 0.05))

    lines = ["| model | radii that are exact | processor seconds, digits |", "| --- | --- | --- |"]
    for model, own in results.items():
        exact = np.mean([own[name]["exact"] for name in references])
        lines.append(f"| {model} | {exact:.0%} | {own['digits']['seconds']:.2g} |")
    cost = "\n".join(lines)

    lines = ["| | " + " | ".join(references) + " |", "| --- |" + " --- |" * len(references)]
    for kernel in ("linear", "rbf"):
        cells = [percent(results[f"KernelSVM, {kernel} (small C)"][name]["certified"][0]) for name in references]
        lines.append(f"| small C, {kernel} kernel: the kernel mean | {' | '.join(cells)} |")
        cells = [percent(own["best SVM"][kernel]) for own in references.values()]
        lines.append(f"| best C of 13 by cross-validation, {kernel} kernel | {' | '.join(cells)} |")
    small_c = "\n".join(lines)

    (small,) = (own for model, own in results.items() if model not in shown)
    lines = [
        "| MilpSVM, rbf, C 1, on 30 rows | " + " | ".join(references) + " |",
        "| --- |" + " --- |" * len(references),
    ]
    for said, place in (("right", 0), ("right, and proven at 1 flip", 2), ("right, and proven at 2 flips", 3)):
        lines.append(f"| {said} | {' | '.join(percent(small[name]['certified'][place]) for name in references)} |")
    parts = {"accuracy": accuracy, "1-percent": little, "5-percent": much}
    return parts | {"milp": "\n".join(lines), "cost": cost, "small-c": small_c}


def with_tables(text, record):
    """A page with its tables, each between two comments, written anew."""
    for name, table in tables(record).items():
        begin, end = f"<!-- {name}: from models.json -->", f"<!-- end of {name} -->"
        if begin in text:
            head, _, rest = text.partition(begin)
            text = f"{head}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}"
    return text


def draw(record):
    """Median radius against accuracy, one panel a data set."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "flipcert"
    results, references = record["results"], record["references"]
    figure, axes = plt.subplots(2, 3, figsize=(7.5, 6.2), layout="constrained", sharey=True)
    *panels, spare = axes.flat
    shown = [model for model in results if not model.startswith("MilpSVM")]
    markers = "osD^vPX*<>hp"
    for axis, name in zip(panels, references, strict=True):
        for place, model in enumerate(shown):
            own = results[model][name]
            axis.plot(
                own["certified"][0],
                100 * own["median"],
                markers[place],
                color=f"C{place % 10}",
                markersize=8,
                label=model,
            )
        axis.set_title(name, fontsize=12)
        axis.xaxis.set_major_locator(plt.MaxNLocator(4))
        axis.grid(alpha=0.3)
    figure.supxlabel("accuracy", fontsize=12)
    figure.supylabel("flips that half of the right predictions withstand, in % of the labels", fontsize=11)
    # What is left of the grid says which model is which.
    spare.axis("off")
    spare.legend(*panels[0].get_legend_handles_labels(), loc="center", fontsize=8.5, frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    if "--page" not in sys.argv:
        RECORD.write_text(json.dumps(measured(), indent=1) + "\n")
    kept = json.loads(RECORD.read_text())
    for page in (PAGE, HERE.parent / "promises.md"):
        page.write_text(with_tables(page.read_text(), kept))
    draw(kept)
