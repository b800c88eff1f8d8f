"""Files of certificates: what is saved comes back, and whatever else a file holds is refused in one sentence."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import warnings
import zipfile
import zlib
from dataclasses import replace

import numpy as np
import pytest

import flipcert
from flipcert.engine import npz
from tests.helpers.paths import DATA

NAMES = np.array(["cat", "gnu", "lynx"])


def certificates(labels=NAMES, n_points=20, with_votes=True):
    rng = np.random.default_rng(0)
    upper = rng.integers(3, 12, n_points)
    codes = rng.integers(0, 3, (3, n_points))
    return flipcert.Certificates(
        prediction=labels[codes[0]],
        radius=upper - rng.integers(0, 3, n_points),
        radius_upper=upper,
        blackbox_radius=upper // 4 if with_votes else None,
        runner_up=labels[codes[1]],
        target=np.ma.masked_array(labels[codes[2]], mask=np.arange(n_points) % 7 == 0),
        rounding_sensitive=np.arange(n_points) % 5 == 0,
        n_labels=40,
        n_attackable=30,
    )


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def npy_of(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"is not a file of saved certificates: .*\.$") as caught:
        flipcert.Certificates.load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "saved.npz"
    certificates().save(path)
    return path.read_bytes()


def assert_sound(loaded):
    """What holds for all certificates."""
    n = len(loaded)
    for name in ("prediction", "radius", "radius_upper", "runner_up", "target", "rounding_sensitive"):
        assert getattr(loaded, name).shape == (n,)
    assert loaded.radius.dtype == loaded.radius_upper.dtype == np.int64
    assert np.all(loaded.radius >= 0)
    assert np.all(loaded.radius <= loaded.radius_upper)
    assert np.all(loaded.radius_upper <= loaded.limit)
    if loaded.blackbox_radius is not None:
        assert loaded.blackbox_radius.shape == (n,)
        assert np.all((loaded.blackbox_radius >= 0) & (loaded.blackbox_radius <= loaded.limit))
    assert 0 <= loaded.n_attackable <= loaded.n_labels
    assert loaded.threat == "flips"
    assert loaded.rounding_sensitive.dtype == bool
    str(loaded.prediction.tolist()).encode()


def corruptions(content, seed):
    """One damaged file after the other: of the archive, of its members, and of what these hold."""
    rng = random.Random(seed)
    members = members_of(content)
    while True:
        kind = rng.randrange(9)
        damaged = bytearray(content)
        if kind == 0:
            for _ in range(rng.choice([1, 1, 2, 8, 64])):
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            yield bytes(damaged)
        elif kind == 1:
            yield content[: rng.randrange(len(content))]
        elif kind == 2:
            # The directory at the end says where and how large everything is.
            start = content.rindex(b"PK\x01\x02") if rng.random() < 0.5 else content.index(b"PK\x01\x02")
            place = rng.randrange(start, len(damaged) - 4)
            damaged[place : place + 4] = struct.pack("<I", rng.choice([0, 1, 8, 99, 2**31, 2**32 - 1]))
            yield bytes(damaged)
        elif kind == 3:
            first, second = rng.sample(sorted(members), 2)
            yield archive_of({**members, first: members[second], second: members[first]})
        elif kind == 4:
            name = rng.choice(sorted(members))
            yield archive_of({other: own for other, own in members.items() if other != name})
        elif kind == 5:
            # Inside a member, with a checksum that fits.
            name = rng.choice(sorted(members))
            own = bytearray(members[name])
            for _ in range(rng.choice([1, 2, 5])):
                own[rng.randrange(len(own))] = rng.randrange(256)
            yield archive_of({**members, name: bytes(own)})
        elif kind == 6:
            name = rng.choice(sorted(members))
            own = members[name]
            end = own.index(b"\n")
            header = rng.choice(
                [
                    b"{'descr': '<i8', 'fortran_order': False, 'shape': (%d,)}" % rng.choice([-1, 19, 2**40, 2**70]),
                    b"{'descr': '|O', 'fortran_order': False, 'shape': (20,), }",
                    b"{'descr': '<U%d', 'fortran_order': True, 'shape': (20,), }" % rng.choice([0, 2, 2**30]),
                    b"{'descr': [('a', '<i4'), ('b', '<i4')], 'fortran_order': False, 'shape': (20,), }",
                    b"(" * 200, b"{'descr': 1e999}", b"\xff\xfe", b"__import__('os')", b"",
                ]
            ).ljust(end - 10)[: end - 10]  # fmt: skip
            yield archive_of({**members, name: own[:10] + header + own[end:]})
        elif kind == 7:
            name = rng.choice(sorted(members))
            shape = rng.choice([(20,), (19,), (), (20, 1), (0,)])
            dtype = rng.choice(["i8", "i4", "f8", "u8", "?", "U3", "S2", "c16", "M8[s]", ">i8"])
            yield archive_of({**members, name: npy_of(np.zeros(shape, dtype))})
        else:
            header = json.loads(str(np.load(io.BytesIO(members["header.npy"]))))
            odd = rng.choice([None, -1, 7, 2**80, 1.5, "x", [], {}, True, float("nan"), "flipcert-certificates-9"])
            header[rng.choice([*header, "another"])] = odd
            text = rng.choice([json.dumps(header), "[" * 100_000, "null", "[]", "{", "\ud800", "1" * 5000])
            yield archive_of({**members, "header.npy": npy_of(np.array(text))})


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_refused_or_hold_certificates(seed, saved, tmp_path):
    path = tmp_path / "damaged.npz"
    said = []
    for _, content in zip(range(150), corruptions(saved, seed), strict=False):
        path.write_bytes(content)
        try:
            with warnings.catch_warnings():
                # Headers are Python expressions, about which a compiler may have something to say.
                warnings.simplefilter("ignore", SyntaxWarning)
                loaded = flipcert.Certificates.load(path)
        except ValueError as error:
            said.append(str(error))
        else:
            assert_sound(loaded)
    assert len(said) > 100
    start = f"path={str(path)!r} is not a file of saved certificates: "
    assert all(sentence.startswith(start) and sentence.endswith(".") for sentence in said)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"radius": np.full(20, 41)}, "radius must hold whole numbers from 0 to 40"),
        ({"radius": np.full(20, -1)}, "radius must hold whole numbers from 0 to 40"),
        ({"radius": np.zeros(20)}, "radius must hold whole numbers"),
        ({"radius": np.zeros(20, bool)}, "radius must hold whole numbers"),
        ({"radius_upper": np.zeros(20, np.int64)}, "a radius is above radius_upper"),
        (
            {"radius": np.zeros((20, 1), np.int64)},
            "radius has shape (20, 1), and radius (20, 1), not one value a point",
        ),
        ({"radius": np.zeros(7, np.int64)}, "radius_upper has shape (20,), and radius (7,), not one value a point"),
        ({"blackbox_radius": np.full(20, 99)}, "blackbox_radius must hold whole numbers from 0 to 40"),
        ({"prediction": np.zeros(20, complex)}, "same kind"),
        ({"prediction": np.zeros(20)}, "same kind"),
        ({name: np.full(20, np.nan) for name in ("prediction", "runner_up", "target")}, "no number"),
        ({name: np.zeros(20, "c16") for name in ("prediction", "runner_up", "target")}, "labels must be numbers"),
        ({"rounding_sensitive": np.zeros(20, np.int8)}, "rounding_sensitive must hold booleans"),
        ({"target_missing": np.zeros(20)}, "target_missing must say"),
        ({"target_missing": np.zeros(3, bool)}, "target_missing must say"),
        ({"another": np.zeros(20)}, "it does not hold just the arrays"),
        ({"radius": None}, "it does not hold just the arrays"),
        ({"header": None}, "it has no header"),
        ({"header": np.zeros(3)}, "it has no header"),
    ],
)
def test_what_does_not_fit_is_named(change, told, saved, tmp_path):
    members = members_of(saved)
    for name, values in change.items():
        if values is None:
            del members[f"{name}.npy"]
        else:
            members[f"{name}.npy"] = npy_of(values)
    assert told in refused(tmp_path / "odd.npz", archive_of(members))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"n_labels": -1}, "30 of -1 labels"),
        ({"n_attackable": 41}, "41 of 40 labels"),
        ({"n_attackable": -1}, "-1 of 40 labels"),
        ({"n_attackable": True}, "True of 40 labels"),
        ({"n_labels": 40.0}, "30 of 40.0 labels"),
        ({"n_labels": 10**30}, "labels cannot be those to attack"),
        ({"threat": "rain"}, "this version does not know the threat 'rain'"),
        ({"format": "flipcert-certificates-3"}, "its format is 'flipcert-certificates-3'"),
        ({"format": "flipcert-certificates-1"}, "did not say how many labels can be attacked; certify again."),
        ({"another": 1}, "its header must tell n_labels, n_attackable, threat"),
        ({"radius_exceeds_upper": 0}, "its header must tell"),
    ],
)
def test_headers_that_do_not_fit_are_named(change, told, saved, tmp_path):
    members = members_of(saved)
    header = json.loads(str(np.load(io.BytesIO(members["header.npy"]))))
    members["header.npy"] = npy_of(np.array(json.dumps({**header, **change})))
    assert told in refused(tmp_path / "odd.npz", archive_of(members))


def test_a_small_file_is_not_unpacked_to_more_than_there_is_memory(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "available_memory", lambda: 2.0**20)
    members = {**members_of(saved), "radius.npy": npy_of(np.zeros(2**18, np.int64))}
    content = archive_of(members)
    assert len(content) < 2**14
    assert "its arrays take 0.0 GiB, and 0.0 GiB of memory are left" in refused(tmp_path / "bomb.npz", content)


def test_a_header_that_asks_for_more_than_there_is_takes_no_memory(saved, tmp_path):
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (1099511627776,), }"
    claim = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117) + b"\n"
    members = {**members_of(saved), "radius.npy": claim + bytes(160)}
    assert "damaged" in refused(tmp_path / "claim.npz", archive_of(members))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on this system")
def test_a_named_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    for path in (tmp_path / "pipe.npz", str(tmp_path / "pipe.npz")):
        with pytest.raises(ValueError, match=r"pipe\.npz is a named pipe, not a file; write what it would give into"):
            flipcert.Certificates.load(path)
    with pytest.raises(ValueError, match="/dev/zero is a device, not a file"):
        flipcert.Certificates.load("/dev/zero")
    with pytest.raises(FileNotFoundError):
        flipcert.Certificates.load(tmp_path / "nothing.npz")


def test_two_arrays_of_one_name_are_refused(saved, tmp_path):
    stream = io.BytesIO(saved)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("radius", npy_of(np.zeros(20, np.int64)))
    assert "it holds two arrays of the same name" in refused(tmp_path / "twice.npz", stream.getvalue())


def test_what_is_wrong_with_packed_bytes_is_not_zlibs_to_tell(saved, tmp_path):
    place = saved.index(b"radius.npy") + 40
    damaged = saved[:place] + bytes(8) + saved[place + 8 :]
    with pytest.raises((zlib.error, zipfile.BadZipFile)):
        members_of(damaged)
    assert "damaged" in refused(tmp_path / "damaged.npz", damaged)


@pytest.mark.parametrize(
    "labels",
    [
        NAMES,
        NAMES.astype(object),
        np.array([b"a", b"b", b"c"]),
        np.array([1, 2, 10**12]),
        np.array([1, 2, 3], np.uint8),
        np.array([-1.5, 0.0, np.inf]),
        np.array([1, 2, 3], object),
        np.array([True, False, True], object),
        np.array([np.str_("a"), "b", "ü"], object),
        np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "M8[D]"),
        np.array(["", "\0a", " "], object),
    ],
)
@pytest.mark.parametrize("with_votes", [True, False])
def test_labels_come_back(labels, with_votes, tmp_path):
    original = certificates(labels, with_votes=with_votes)
    original.save(tmp_path / "saved.npz")
    loaded = flipcert.Certificates.load(tmp_path / "saved.npz")
    for name in ("prediction", "runner_up", "target"):
        assert getattr(loaded, name).tolist() == getattr(original, name).tolist()
    assert loaded.n_attackable == 30
    assert (loaded.blackbox_radius is None) != with_votes


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([1, "1", "2"], "the label 1 would come back as '1'"),
        (["a", "a\0", "b"], r"the label 'a\\x00' would come back as 'a'"),
        (["", "\0", "b"], r"the label '\\x00' would come back as ''"),
        ([True, 1, 2], "the label True would come back as 1"),
        ([1, 2.5, 3], "the label 1 would come back as 1.0"),
        ([2**70, 1, 2], "a label is a whole number of more than 64 bits"),
        ([(1, 2), "a", "b"], r"labels must be numbers, booleans or strings; got \(1, 2\)"),
        ([None, "a", "b"], "got None"),
        ([float("nan"), 1.0, 2.0], "would come back as nan"),
        (["\ud800", "a", "b"], "characters that do not exist"),
    ],
)
def test_labels_that_could_not_be_told_apart_are_not_saved(labels, told, tmp_path):
    array = np.empty(3, object)
    array[:] = labels
    with pytest.raises(ValueError, match=told) as caught:
        certificates(array).save(tmp_path / "saved.npz")
    assert str(caught.value).startswith("these certificates cannot be saved: ")
    assert str(caught.value).endswith(".")
    assert not list(tmp_path.iterdir())


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    whole = certificates()
    for change in (
        {"radius": whole.radius[:3]},
        {"radius": whole.radius.astype(float)},
        {"prediction": np.ma.masked_array(whole.prediction, mask=True)},
        {"runner_up": np.arange(20)},
    ):
        with pytest.raises(ValueError, match="these certificates cannot be saved"):
            replace(whole, **change).save(tmp_path / "saved.npz")


def test_a_radius_that_is_published_and_not_true_comes_back(tmp_path, digits):
    """Only a file that says so holds a radius above the smallest known attack."""
    X, y, X_test, _ = digits
    model = flipcert.SmoothedLinear(flip_probability=0.3, method="published").fit(X[:300], y[:300])
    with pytest.warns(UserWarning, match="published"):
        wrong = model.certify(X_test)
    assert np.any(wrong.radius > wrong.radius_upper)
    wrong.save(tmp_path / "wrong.npz")
    assert np.array_equal(flipcert.Certificates.load(tmp_path / "wrong.npz").radius, wrong.radius)


@pytest.mark.parametrize("name", ["ensemble", "svm"])
def test_files_that_were_saved_before_can_be_read(name):
    loaded = flipcert.Certificates.load(DATA / f"certificates-{name}.npz")
    assert_sound(loaded)
    expected = json.loads((DATA / "certificates.json").read_text())[name]
    for own, value in expected.items():
        found = getattr(loaded, own)
        assert (found.tolist() if isinstance(found, np.ndarray) else found) == value, own
