"""What is noted of a model, how it is written down, and what counts as a difference."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path

import numpy as np

import flipcert

STORED = Path(__file__).parent / "stored"
COLUMNS = ("prediction", "radius", "radius_upper", "exact", "blackbox_radius", "runner_up", "target")
# Of a longer witness, the beginning and a digest are stored, and the ends of its replay.
_LONGEST = 24


def facts(model, X, *, bounds=("lower", "upper"), exact=False, solver=False, threshold=True, rtol=1e-9):
    """All that a fitted model says about some points.

    ``exact`` asks for exact certificates too; ``solver``: its attacks are found by a solver; ``threshold``: note
    ``C_max_``, which may take long; ``rtol=0``: its scores are exact on every machine.
    """
    certificates = model.certify(X)
    told = {"classes": plain(model.classes_), **header_of(certificates)}
    rows = columns_of(certificates)
    rows["predict"] = plain(model.predict(X))
    for bound in bounds:
        costs = attempt(lambda bound=bound: model.flip_costs(X, bound=bound))
        (told if isinstance(costs, str) else rows)[f"costs, {bound}"] = costs
    if exact:
        rows |= {f"{name}, exactly": values for name, values in columns_of(model.certify(X, exact=True)).items()}
        rows["flips, exactly"] = [size_of(witness) for witness in model.worst_flips(X, exact=True)]
    witnesses = model.worst_flips(X)
    rows["witness"] = [size_of(witness) if solver else witness_of(witness) for witness in witnesses]
    numbers = {}
    if hasattr(model, "decision_function"):
        numbers["decision_function"] = (model.decision_function(X), rtol)
    known = [t for t, witness in enumerate(witnesses) if witness is not None]
    if hasattr(model, "replay") and known:
        path = model.replay(X[known[0] : known[0] + 1], witnesses[known[0]])
        numbers["replay"] = (path if len(path) <= _LONGEST else path[[0, 1, 2, -2, -1]], rtol)
    if threshold and hasattr(model, "C_max_"):
        numbers["C_max_"] = (model.C_max_, max(rtol, 1e-9))
    for name in ("solver_", "precision_"):
        if hasattr(model, name):
            told[name] = getattr(model, name)
    if hasattr(model, "partition_"):
        told["partition_"] = {"first": plain(model.partition_[:20]), "digest": digest(plain(model.partition_))}
    return {"told": told, "rows": rows, "numbers": {name: number(*own) for name, own in numbers.items()}}


def header_of(certificates):
    """What certificates say once for all points."""
    told = {name: plain(getattr(certificates, name)) for name in ("n_labels", "n_attackable", "threat", "limit")}
    return told | {"model": dict(certificates.model)}


def columns_of(certificates):
    """What certificates say about each point."""
    columns = {name: getattr(certificates, name) for name in (*COLUMNS, "rounding_sensitive")}
    return {name: plain(values) for name, values in columns.items() if values is not None}


def witness_of(witness):
    """Flips as pairs, or the first of them and a digest of all."""
    if witness is None:
        return None
    flips = [list(pair) for pair in zip(plain(witness.indices), plain(witness.labels), strict=True)]
    if len(flips) <= _LONGEST:
        return flips
    return {"flips": len(flips), "first": flips[:4], "digest": digest(flips)}


def size_of(witness):
    """Number of flips."""
    return None if witness is None else len(witness)


def digest(values):
    """A few characters that stand for plain values too many to be stored."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def number(values, rtol=1e-9):
    """Floating point numbers, and how closely they have to be met; 0 for the same bits."""
    return {"rtol": rtol, "values": plain(values)}


def plain(values):
    """Arrays and scalars of NumPy as Python has them; None where a masked array is masked."""
    return values.tolist() if isinstance(values, (np.ndarray, np.generic)) else values


def outcome(function):
    """What a case notes, and what was warned of; of an error, its sentence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = function()
    if caught:
        found.setdefault("told", {})["warnings"] = sorted({str(warning.message) for warning in caught})
    return json.loads(json.dumps(found))


def attempt(function):
    """The result of a question that may be refused, as a plain value."""
    try:
        return plain(function())
    except (ValueError, TypeError, flipcert.UnsolvedError) as error:
        return f"{type(error).__name__}: {error}"


def write(path, cases):
    """Write cases, one line a fact, so that a difference is seen for what it is."""
    lines = []
    for name, case in cases.items():
        parts = []
        for part, own in case.items():
            entries = [f"   {json.dumps(key)}: {_compact(value)}" for key, value in own.items()]
            parts.append(f"  {json.dumps(part)}: {{\n" + ",\n".join(entries) + "\n  }")
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(parts) + "\n }")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read(group):
    """The stored cases of a group, by name."""
    path = STORED / f"{group}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def differences(stored, found):
    """Sentences on all that is not as it was stored. What has come to be told beside that is no difference."""
    said = []
    for part in stored.keys() | found.keys():
        missing = stored.get(part, {}).keys() ^ found.get(part, {}).keys()
        said += [f"{part} of only one side: {name}" for name in sorted(missing)]
    for name, value in _common(stored, found, "told"):
        other = found["told"][name]
        if name == "model":
            other = {key: other[key] for key in value if key in other}
        if not _same(value, other):
            said.append(f"{name} was {_compact(value)}, is {_compact(other)}")
    for name, values in _common(stored, found, "rows"):
        others = found["rows"][name]
        if len(values) != len(others):
            said.append(f"{name} had {len(values)} rows, has {len(others)}")
            continue
        exactly = ", exactly" if name.endswith(", exactly") else ""
        flags = stored["rows"].get(f"rounding_sensitive{exactly}", [False] * len(values))
        for t, (value, other, loose) in enumerate(zip(values, others, flags, strict=True)):
            if not _same(value, other) and (not loose or name.startswith("rounding_sensitive")):
                said.append(f"{name} of row {t} was {_compact(value)}, is {_compact(other)}")
    for name, value in _common(stored, found, "numbers"):
        if not _close(value, found["numbers"][name]):
            said.append(f"{name} was {_compact(value)}, is {_compact(found['numbers'][name])}")
    return said


def _common(stored, found, part):
    return [(name, value) for name, value in stored.get(part, {}).items() if name in found.get(part, {})]


def _same(one, other):
    """Equal in value and kind: 1, 1.0 and True are three things."""
    return _compact(one) == _compact(other)


def _close(one, other):
    rtol = one["rtol"]
    if rtol == 0:
        return _same(one, other)
    a, b = np.array(one["values"]), np.array(other["values"])
    if a.shape != b.shape:
        return False
    finite = np.abs(a[np.isfinite(a)])
    return np.allclose(a, b, rtol=rtol, atol=rtol * finite.max(initial=0.0), equal_nan=True)


def _compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
