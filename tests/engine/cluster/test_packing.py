"""What is sent to other processes, and what is not."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import flipcert
from flipcert.engine.cluster import worker
from flipcert.engine.cluster.packing import SelectedRows, pack, unpack
from flipcert.engine.cluster.shared import Unreachable
from flipcert.engine.cluster.worker import Parcel, run

SLICES = st.slices(7).filter(lambda s: len(range(7)[s]) > 0)


@given(arrays.arrays(st.sampled_from([np.float32, np.float64, np.int64, np.bool_]), arrays.array_shapes(min_side=0)))
def test_arrays_come_out_as_they_went_in(array):
    again, same, label = unpack(pack((array, array, "x")))
    assert again is same
    assert label == "x"
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.tobytes() == array.tobytes()
    assert again.flags.writeable


def test_what_cannot_be_written_to_stays_so():
    array = np.arange(5.0)
    array.flags.writeable = False
    assert not unpack(pack(array)).flags.writeable


@given(first=SLICES, second=SLICES, transposed=st.booleans())
def test_any_view_of_a_mapped_array_goes_by_name(tmp_path_factory, first, second, transposed):
    path = tmp_path_factory.mktemp("mapped") / "X.npy"
    X = np.arange(49.0).reshape(7, 7)
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    view = np.asarray(mapped)[first, second]
    expected = X[first, second]
    if transposed:
        view, expected = view.T, expected.T
    packed = pack(view)
    assert np.array_equal(unpack(packed), expected)
    # Nothing of the numbers is in the bytes: another file of the same name would be read, if it were not noticed.
    np.save(path, X + 1000.0)
    with pytest.raises(ValueError, match="has another file"):
        unpack(packed)


def test_mapped_arrays_are_not_sent(tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 50))
    y = np.arange(2000) % 3
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = flipcert.KernelSVM("rbf")
    assert pack(model.fit(X, y)).nbytes > X.nbytes
    assert pack(model.fit(mapped, y)).nbytes < X.nbytes / 10
    again = unpack(pack(model))
    assert np.array_equal(again.certify(X[:40]).radius, model.certify(X[:40]).radius)
    rows = pack(SelectedRows(mapped, np.arange(0, 2000, 2)))
    assert rows.nbytes < 20_000
    assert np.array_equal(unpack(rows).values, X[::2])


def test_arrays_that_somebody_may_write_to_are_sent(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros(4000))
    writable = np.load(tmp_path / "X.npy", mmap_mode="c")
    writable[:] = 1.0
    assert unpack(pack(writable)).sum() == 4000


def test_a_file_that_is_not_there(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.zeros(4000))
    packed = pack(np.load(path, mmap_mode="r"))
    path.unlink()
    with pytest.raises(ValueError, match=r"cannot open .*X\.npy \(no such file or directory\); put it on storage"):
        unpack(packed)


def test_shared_memory():
    arrays = {"a": np.arange(1000.0), "b": np.arange(7), "c": np.zeros(0)}
    packed = pack(arrays).sharing()
    sent = pickle.dumps(packed)
    assert len(sent) < 1000
    found = unpack(pickle.loads(sent))
    assert all(np.array_equal(found[name], arrays[name]) for name in arrays)
    assert found["a"].ctypes.data % 64 == 0
    # What a worker writes is its own.
    found["a"][:] = 0.0
    assert np.array_equal(unpack(pickle.loads(sent))["a"], arrays["a"])
    del packed
    assert np.array_equal(found["b"], arrays["b"])
    with pytest.raises(Unreachable):
        unpack(pickle.loads(sent))
    # Whatever has taken its place has another password.
    other = pack(arrays).sharing()
    moved = pickle.loads(sent)
    moved._shared._path = other._shared._path
    with pytest.raises(Unreachable):
        unpack(moved)


def test_rows_that_both_sides_have_do_not_come_back():
    X = np.random.default_rng(0).normal(size=(500, 40))
    sent = unpack(pack((SelectedRows(X, np.arange(100)),)))
    values = sent[0].values
    result = pack({"kept": values, "other": values + 1}, sent)
    assert result.nbytes < 1.5 * values.nbytes
    mine = (SelectedRows(X, np.arange(100)),)
    again = unpack(result, mine)
    assert np.array_equal(again["kept"], X[:100])
    assert again["kept"] is mine[0].values
    # What nobody has kept is not needed for that.
    del values
    assert unpack(pack("small", sent)) == "small"


def test_compiled_functions_go_by_name():
    from flipcert.engine._jit.bits import lowest_bit

    packed = pack(partial(lowest_bit, np.array([0.5])))
    assert packed.nbytes < 2000
    assert unpack(packed).func is lowest_bit


def test_a_function_is_unpacked_once_and_given_up_with_its_bytes():
    parcel = Parcel.of(partial(np.add, np.arange(3)), at_once=1, by_content=True)
    arguments = (parcel.name, parcel.at_once, pack(10))
    assert unpack(run(parcel.content, *arguments, held=True)).tolist() == [10, 11, 12]
    job = worker._jobs[parcel.name]
    run(parcel.content, *arguments, held=True)
    assert worker._jobs[parcel.name] is job
    name = parcel.name
    del parcel, arguments
    assert name not in worker._jobs
    for number in range(5):
        parcel = Parcel.of(partial(np.add, number), at_once=1, by_content=True)
        run(parcel.content, parcel.name, 1, pack(10), held=False)
    assert len(worker._jobs) == 2


def test_another_version_is_refused(monkeypatch):
    parcel = Parcel.of(partial(np.add, 1), at_once=1, by_content=True)
    monkeypatch.setattr(worker, "digest_of_sources", lambda: "other")
    with pytest.raises(ValueError, match="another version of flipcert"):
        run(parcel.content, parcel.name, 1, pack(1), held=True)


def test_fitted_models_can_be_pickled_and_used_elsewhere(blobs):
    """Plain pickle, by users, in a process that has seen nothing of it."""
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge("rbf"), 3).fit(X, y)
    code = "import pickle, sys; m, X = pickle.load(sys.stdin.buffer); print(m.certify(X).radius.tolist())"
    file = io.BytesIO()
    pickle.dump((model, X_test), file)
    shown = subprocess.run([sys.executable, "-c", code], input=file.getvalue(), capture_output=True, check=True).stdout
    assert shown.decode().strip() == str(model.certify(X_test).radius.tolist())
