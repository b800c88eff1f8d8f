"""A column of certificates is one field: blocks, labels, files, frames and runs take it from there."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import flipcert
from flipcert.report.result import Result
from flipcert.results.columns import Kind, certificates_of_blocks, columns_of, holds
from flipcert.runs import folder as run_folder
from flipcert.runs import store
from flipcert.runs.folder import RunFolder
from tests.helpers.paths import DATA

NAMES = np.array(["cat", "gnu", "lynx"])
NEW = ("sure_radius", "second_target", "looked_at")


@dataclass(frozen=True, eq=False)
class Wider(flipcert.Certificates):
    """Certificates with new columns of each kind, and with something new that is told once."""

    sure_radius: NDArray[np.int64] | None = field(default=None, kw_only=True, metadata=holds(Kind.RADII, optional=True))
    second_target: np.ma.MaskedArray[Any, Any] | None = field(
        default=None, kw_only=True, metadata=holds(Kind.LABELS, optional=True, gaps=True)
    )
    looked_at: NDArray[np.bool_] | None = field(default=None, kw_only=True, metadata=holds(Kind.FLAGS, optional=True))
    n_sources: int | None = field(default=None, kw_only=True)


def block(start, stop, new=True):
    """Rows of a made-up model with 30 labels, 20 of which can be flipped, in class indices."""
    rows = np.arange(start, stop)
    added = {
        "sure_radius": rows // 2,
        "second_target": np.ma.masked_less((rows + 2) % 5 - 2, 0),
        "looked_at": rows % 2 == 0,
        "n_sources": 4,
    }
    return Wider(
        prediction=rows % 3,
        radius=rows,
        radius_upper=np.minimum(rows + 1, 30),
        blackbox_radius=rows // 3,
        runner_up=(rows + 1) % 3,
        target=np.ma.masked_less((rows + 1) % 4 - 1, 0),
        rounding_sensitive=rows == 3,
        n_labels=30,
        n_attackable=20,
        **(added if new else {}),
    )


def certified(new=True):
    blocks = [block(0, 9, new), block(9, 10, new), block(10, 26, new)]
    return certificates_of_blocks(blocks, NAMES, {"model": "mine"}, useful=20)


def assert_same(first, second):
    for name in columns_of(first):
        own, other = getattr(first, name), getattr(second, name)
        assert type(own) is type(other), name
        if own is not None:
            assert own.dtype == other.dtype, name
            assert own.tolist() == other.tolist(), name


def test_blocks_become_certificates_in_labels():
    rows = np.arange(26)
    c = certified()
    assert c.prediction.tolist() == NAMES[rows % 3].tolist()
    assert c.radius.tolist() == [*range(20), *[30] * 6]
    assert c.radius_upper.tolist() == [*range(1, 20), *[30] * 7]
    assert c.sure_radius.tolist() == (rows // 2).tolist()
    # A class is named where there is one, and an attack is known.
    for own, codes in (("target", (rows + 1) % 4 - 1), ("second_target", (rows + 2) % 5 - 2)):
        assert getattr(c, own).tolist() == [NAMES[k] if k >= 0 and t < 19 else None for t, k in enumerate(codes)]
    assert c.looked_at.tolist() == (rows % 2 == 0).tolist()
    assert (c.n_labels, c.n_attackable, c.n_sources, c.threat, c.limit) == (30, 20, 4, "flips", 30)
    assert c.model == {"model": "mine"}
    assert all(getattr(certified(new=False), name) is None for name in (*NEW, "n_sources"))


@pytest.mark.parametrize("new", [True, False])
def test_files_hold_new_columns(new, tmp_path):
    c = certified(new)
    c.save(tmp_path / "saved.npz")
    loaded = Wider.load(tmp_path / "saved.npz")
    assert_same(loaded, c)
    assert loaded.n_sources == c.n_sources
    with np.load(tmp_path / "saved.npz") as stored:
        assert ("second_target_missing" in stored.files) == new


def test_files_from_before_do_without_new_columns():
    path = DATA / "certificates-ensemble.npz"
    loaded, before = Wider.load(path), flipcert.Certificates.load(path)
    assert all(getattr(loaded, name) is None for name in (*NEW, "n_sources"))
    assert_same(before, loaded)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"looked_at": np.arange(26)}, "looked_at must hold booleans"),
        ({"sure_radius": np.arange(26) + 20}, "sure_radius must hold whole numbers from 0 to 30"),
        ({"second_target": np.ma.masked_array(np.arange(26))}, "prediction, runner_up, target and second_target must"),
        ({"runner_up": np.ma.masked_array(NAMES[np.arange(26) % 3], True)}, "only a target or second_target may be"),
        ({"second_target": np.ma.masked_array(NAMES)}, "second_target has shape (3,)"),
    ],
)
def test_new_columns_are_checked(change, told):
    with pytest.raises(ValueError, match="cannot be saved: ") as caught:
        replace(certified(), **change).save(io.BytesIO())
    assert told in str(caught.value)


def test_a_label_without_its_gaps_is_refused(tmp_path):
    certified().save(tmp_path / "saved.npz")
    with np.load(tmp_path / "saved.npz") as stored:
        arrays = {name: stored[name] for name in stored.files if name != "second_target_missing"}
    np.savez(tmp_path / "odd.npz", **arrays)
    with pytest.raises(ValueError, match="second_target_missing must say of each second_target whether it is missing"):
        Wider.load(tmp_path / "odd.npz")


def test_frames_have_new_columns():
    frame = certified().to_frame()
    assert list(frame) == [
        "prediction", "radius", "radius_upper", "runner_up", "target", "rounding_sensitive", "exact",
        "blackbox_radius", "sure_radius", "second_target", "looked_at",
    ]  # fmt: skip
    assert frame["second_target"].tolist() == certified().second_target.tolist()


def test_kept_blocks_have_new_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "Certificates", Wider)
    with RunFolder(tmp_path / "run", {"model": "mine"}).opened() as folder:
        for new in (True, False):
            folder.keep(f"question-{new}", block(0, 9, new))
            kept = folder.recall(f"question-{new}")
            assert_same(kept, block(0, 9, new))
            assert (kept.n_labels, kept.n_attackable) == (30, 20)
        other = tmp_path / "run" / "blocks" / "question-True.npz"
        other.rename(tmp_path / "run" / "blocks" / "another.npz")
        assert folder.recall("another") is None


@pytest.mark.parametrize("new", [(True, False), (False,), (True,)])
def test_tables_of_runs_have_new_columns(new, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "Certificates", Wider)
    points = [{"name": str(own), "settings": {"model": "mine"}} for own in new]
    summary = {"n_labels": 30, "n_attackable": 20, "points": points}
    monkeypatch.setattr(store, "read_summary", lambda folder: summary)
    store.write_results(tmp_path, [Result(str(own), certified(own), None) for own in new])
    for own, read in zip(new, store.read_results(tmp_path), strict=True):
        assert_same(read.certificates, certified(own))
