"""Results of all kinds for reports: real ones on digits, made-up ones for what is rare or large."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import flipcert
from flipcert.report import notable_points
from flipcert.report.result import Attack, Result, SourcePower

NASTY = np.array(
    [
        "<script>document.title='broken'</script>",
        "<img src=x onerror=\"document.title='broken'\">",
        "'\"><svg onload=document.title='broken'>",
        "</style></script><!--",
        "{{ 7 * 7 }}{% raw %}",
        "&amp; &lt;b&gt;",
        "https://example.org/a?b=c&d=e",
        "a-name-without-any-place-to-break-it-that-goes-on-and-on-" * 3,
        "ünïcødé → 漢字 🙂",
        "",
    ]
)


def digits(names=None):
    """Training and test images with labels; names replace the ten digits."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16 - 0.5, y, train_size=300, test_size=80, random_state=0)
    return (X_train, y_train, X_test, y_test) if names is None else (X_train, names[y_train], X_test, names[y_test])


def real_result(model, *, names=None, labelled=True, images=False, name="ridge"):
    """Certify digits, and attack the points that stand out and some others."""
    X_train, y_train, X_test, y_test = digits(names)
    certificates = model.fit(X_train, y_train).certify(X_test)
    labels = y_test if labelled else None
    rows = np.union1d(np.concatenate(notable_points(certificates, labels, count=5)), np.arange(10))
    attacks = [
        Attack(int(row), witness.indices, y_train[witness.indices], witness.labels)
        for row, witness in zip(rows, model.worst_flips(X_test[rows]), strict=True)
        if witness is not None
    ]
    return Result(
        name=name,
        certificates=certificates,
        labels=labels,
        attacks=tuple(attacks),
        test_images=_pictures(X_test) if images else {},
        train_images=_pictures(X_train) if images else {},
        seconds=1.25,
    )


def sweep(regs=(0.1, 1.0), partitions=(1, 5, 20), **options):
    """A sweep over regularisation and partitions."""
    results = []
    for reg in regs:
        for n in partitions:
            ridge = flipcert.KernelRidge(reg=reg)
            model = ridge if n == 1 else flipcert.PartitionEnsemble(ridge, n)
            results.append(real_result(model, name=f"{n} partitions, reg {reg}", **options))
    return results


def described(result, **model):
    """The same result, of a model that is described otherwise."""
    told = {**result.certificates.model, **model}
    return replace(result, certificates=replace(result.certificates, model=told))


def made_up(
    n_points=200, n_labels=5000, classes=10, *, seed=0, exact=0.8, votes=True, beyond=0.0, model=None, **fields
):
    """Plausible numbers without a model behind them."""
    rng = np.random.default_rng(seed)
    names = np.arange(classes) if np.isscalar(classes) else np.asarray(classes)
    radius = np.minimum(rng.gamma(2.0, 40.0, n_points).astype(np.int64), n_labels - 1)
    upper = np.minimum(radius + np.where(rng.random(n_points) < exact, 0, rng.integers(1, 9, n_points)), n_labels)
    out_of_reach = rng.random(n_points) < beyond
    radius[out_of_reach] = upper[out_of_reach] = n_labels
    # The same test points for every seed, so that results can be compared.
    truth = np.random.default_rng(n_points).integers(0, len(names), n_points)
    predicted = np.where(rng.random(n_points) < 0.15, (truth + 1) % len(names), truth)
    other = names[(predicted + 1) % len(names)]
    certificates = flipcert.Certificates(
        prediction=names[predicted],
        radius=radius,
        radius_upper=upper,
        blackbox_radius=np.where(out_of_reach, 3, radius // 4) if votes else None,
        runner_up=other,
        target=np.ma.masked_array(other, mask=upper == n_labels),
        rounding_sensitive=rng.random(n_points) < 0.02,
        n_labels=n_labels,
        model={"model": "svm", "partitions": 10, "C": "auto"} | (model or {}),
        classes=names,
    )
    attacks = []
    for row in np.flatnonzero(upper < n_labels)[:40]:
        indices = rng.permutation(min(3 * upper[row] + 3, n_labels))[: upper[row] + 1]
        attacks.append(Attack(int(row), indices, names[indices % len(names)], names[(indices + 1) % len(names)]))
    result = Result("made up", certificates, names[truth], tuple(attacks))
    return replace(result, **fields)


def some_trusted(result, n_attackable):
    """The same result, if only some labels could have been flipped."""
    c = result.certificates
    radius, upper = (np.where(values >= n_attackable, c.n_labels, values) for values in (c.radius, c.radius_upper))
    target = np.ma.masked_array(c.target.data, mask=upper == c.n_labels)
    attacks = tuple(attack for attack in result.attacks if upper[attack.row] < c.n_labels)
    certificates = replace(c, radius=radius, radius_upper=upper, target=target, n_attackable=n_attackable)
    return replace(result, certificates=certificates, attacks=attacks)


def _pictures(X):
    return {row: np.rint(255 * (0.5 - pixels)).astype(np.uint8).reshape(8, 8) for row, pixels in enumerate(X)}


def under(result, threat, n_sources=40):
    """A made-up result as it would look if its radii counted something else than flips."""
    c = result.certificates
    changes = {"threat": threat}
    if threat == "sources":
        radius, upper = (np.where(own == c.n_labels, n_sources, own // 20) for own in (c.radius, c.radius_upper))
        changes |= {"radius": radius, "radius_upper": upper, "n_sources": n_sources}
        changes["blackbox_radius"] = None if c.blackbox_radius is None else np.minimum(c.blackbox_radius, radius)
    c = replace(c, **changes)
    attacks = [_attack_under(attack, threat, int(c.radius_upper[attack.row]) + 1) for attack in result.attacks]
    more = {}
    if threat == "sources":
        more["in_flips"] = result.certificates.radius
        more["powers"] = tuple(SourcePower(f"worker {i}", 100 - i, 9 - i) for i in range(10))
    return replace(result, certificates=c, attacks=tuple(attacks), **more)


def _attack_under(attack, threat, size):
    """An attack of as many units, on the same rows."""
    rows, old, new = (own[:size] for own in (attack.indices, attack.old, attack.new))
    none = {"indices": rows[:0], "old": old[:0], "new": new[:0]}
    gone = {"deleted": rows, "deleted_labels": old}
    come = {"inserted": np.zeros((size, 2)), "inserted_labels": np.resize(new, size)}
    kinds = {
        "sources": {
            "indices": attack.indices,
            "old": attack.old,
            "new": attack.new,
            "sources": np.array([f"worker {i}" for i in range(size)]),
            "by": np.array([f"worker {i % size}" for i in range(attack.indices.size)]),
        },
        "deletions": {**none, **gone},
        "insertions": {**none, **come},
        "replacements": {**none, **gone, **come},
        "edits": {"indices": rows, "old": old, "new": new},
    }
    return Attack(attack.row, threat=threat, **kinds[threat])
