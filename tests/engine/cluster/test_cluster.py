"""The same bits on a cluster as on threads, whatever happens to its workers."""

from __future__ import annotations

import gc
import json
import os
import socket
import threading
import time

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import flipcert
from flipcert.cli import app
from flipcert.engine import tiles as grid
from flipcert.engine.blocks import map_tasks, map_threads
from flipcert.engine.cluster import engines
from flipcert.engine.cluster.worker import Parcel
from flipcert.engine.watch import Watcher, watched_by
from flipcert.kernels import NTK, RBF
from tests.helpers.clusters import kill_a_worker, two_workers

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def jobs(monkeypatch):
    """Numbers of tasks that went to an engine, job by job."""
    seen = []
    real = engines.run_on

    def spy(engine, function, tasks, *rest):
        seen.append(len(tasks))
        return real(engine, function, tasks, *rest)

    monkeypatch.setattr("flipcert.engine.blocks.run_on", spy)
    return seen


def few_neighbours_disagree(model, X, n_flips):
    votes = np.sort(model.predict_proba(X) * model.n_neighbors, axis=1).round()
    return votes[:, -1] - votes[:, -2] > 2 * n_flips


VERIFIED = flipcert.FixedBudget(KNeighborsClassifier(9), few_neighbours_disagree)
SMALL_NETWORK = flipcert.BoundedNetwork(hidden=(4,), epochs=1, clip=0.1, max_flips=3)
MODELS = {
    "svm": flipcert.KernelSVM(),
    "svm on an infinite kernel": flipcert.KernelSVM(NTK(activation="relu")),
    "primal ridge": flipcert.KernelRidge(),
    "dual ridge": flipcert.KernelRidge(RBF(gamma=0.1)),
    "neighbours": flipcert.WeightedNeighbors(7, weights="distance"),
    "spreading": flipcert.LabelSpreading(7),
    "smoothing": flipcert.SmoothedLinear(),
    "network": SMALL_NETWORK,
    "linear network": flipcert.BoundedNetwork(),
    "squared network": flipcert.BoundedNetwork(loss="squared"),
    "verified": VERIFIED,
    "50 svm": flipcert.PartitionEnsemble(flipcert.KernelSVM(), 50),
    "50 ridge": flipcert.PartitionEnsemble(flipcert.KernelRidge(RBF(gamma=0.1)), 50),
    "50 neighbours": flipcert.PartitionEnsemble(flipcert.WeightedNeighbors(3), 50),
    "50 smoothed": flipcert.PartitionEnsemble(flipcert.SmoothedLinear(), 50),
    "50 networks": flipcert.PartitionEnsemble(flipcert.BoundedNetwork(epochs=1, max_flips=2), 50),
    "50 verified": flipcert.PartitionEnsemble(
        flipcert.FixedBudget(KNeighborsClassifier(3), few_neighbours_disagree, max_flips=1), 50
    ),
    "50 trees": flipcert.PartitionEnsemble(DecisionTreeClassifier(), 50),
}


def everything(model, X, y, X_test):
    """All that a model says, with its fit, as arrays."""
    model.fit(X, y)
    told = {name: value for name, value in vars(model.certify(X_test)).items() if value is not None}
    told["model"] = json.dumps(dict(told["model"]))
    told["predict"] = model.predict(X_test)
    told["costs"] = model.flip_costs(X_test[:40])
    # More than a block, and less than one.
    for t, witness in enumerate([*model.worst_flips(X_test[:40]), *model.worst_flips(X_test[:3])]):
        if witness is not None:
            told[f"indices of {t}"], told[f"labels of {t}"] = witness.indices, witness.labels
    return {name: np.asarray(value) for name, value in told.items()}


def assert_same(told, expected):
    assert told.keys() == expected.keys()
    for name in expected:
        assert told[name].dtype == expected[name].dtype, name
        assert told[name].tobytes() == expected[name].tobytes(), name


@pytest.mark.parametrize("name", MODELS)
def test_bits(name, client, jobs, digits):
    X, y, X_test, _ = digits
    # A verifier is asked about more points at a time.
    data = X[:300], y[:300], X_test[: 300 if name == "verified" else 64]
    expected = everything(MODELS[name], *data)
    assert not jobs
    with joblib.parallel_config(backend="dask", client=client):
        told = everything(MODELS[name], *data)
    assert_same(told, expected)
    assert jobs, "nothing went to the cluster"


@pytest.mark.parametrize(
    "model",
    [
        flipcert.KernelRidge(RBF(gamma=0.1)),
        flipcert.PartitionEnsemble(flipcert.KernelSVM("linear"), 4, "source"),
        flipcert.PartitionEnsemble(flipcert.KernelRidge(RBF(gamma=0.1)), 4),
    ],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'partition', '')}",
)
def test_bits_of_sources_and_annotations(model, client, jobs, digits):
    """A threat is the same threat on the workers, and a row that several people labelled is one there."""
    X, y, X_test, _ = digits
    X, X_test = X[:300], X_test[:64]
    rng = np.random.default_rng(0)
    row = rng.permutation(np.append(np.arange(300), rng.integers(0, 300, 400)))
    label = np.where(rng.random(700) < 0.3, rng.integers(0, 10, 700), y[row])
    annotations = flipcert.Annotations.capped(row, label, source=rng.integers(0, 30, 700), cap=20)

    def told(fitted):
        return [fitted.certify(X_test, threat=threat).radius.tolist() for threat in ("flips", "sources")]

    expected = told(model.fit(X, annotations)), told(model.fit(X, y[:300], source=np.arange(300) % 30))
    assert expected[0][0] != expected[0][1]
    with joblib.parallel_config(backend="dask", client=client):
        assert told(model.fit(X, annotations)) == expected[0]
        assert told(model.fit(X, y[:300], source=np.arange(300) % 30)) == expected[1]
    assert jobs


@pytest.mark.parametrize("n_partitions", [1, 2])
def test_bits_of_integer_programs(n_partitions, client, jobs, blobs):
    X, y, X_test = blobs[0][:20], blobs[1][:20], blobs[2][:9]
    model = flipcert.MilpSVM("rbf", C=0.3)
    if n_partitions > 1:
        model = flipcert.PartitionEnsemble(model, n_partitions)
    expected = everything(model, X, y, X_test)
    with joblib.parallel_config(backend="dask", client=client):
        assert_same(everything(model, X, y, X_test), expected)
    assert jobs


STREAMED = {
    "svm": flipcert.KernelSVM(),
    "svm on an infinite kernel": flipcert.KernelSVM(NTK(activation="relu")),
    "ridge": flipcert.KernelRidge(reg=1.0),
    "kernel matrix": flipcert.KernelSVM("precomputed"),
}


@pytest.mark.parametrize("name", STREAMED)
def test_tiles_of_few_long_rows_go_to_all_workers(name, client, jobs, digits, monkeypatch):
    """One block of rows: what is collected of its tiles comes back, in order, and the training set is sent once."""
    monkeypatch.setattr(grid, "COLUMNS", 64)
    packed = []
    monkeypatch.setattr(Parcel, "of", lambda *own, of=Parcel.of, **more: packed.append(own) or of(*own, **more))
    X, y, X_test, _ = digits
    X_test = X_test[:20]
    if name == "kernel matrix":
        monkeypatch.setattr("flipcert.flips.streamed_tiles._LARGEST_ROWS", 1000)
        X, X_test = X @ X.T, X_test @ X.T
    # Ties, so that sums are taken exactly too.
    X, X_test = np.round(4 * X), np.round(4 * X_test)
    model = STREAMED[name].fit(X, y, trusted=np.arange(len(y)) % 7 == 0, source=np.arange(len(y)) % 30)

    def told():
        with config_context(working_memory=4 * 32 * 64 * 8 / 2**20):
            own = [model.certify(X_test, threat=threat) for threat in ("flips", "sources")]
            witnesses = model.worst_flips(X_test[:5])
        columns = [getattr(part, name) for part in own for name in ("prediction", "radius", "rounding_sensitive")]
        return [np.asarray(column).tolist() for column in columns], [w.indices.tolist() for w in witnesses]

    expected = told()
    assert not jobs
    with joblib.parallel_config(backend="dask", client=client):
        assert told() == expected
        # Once for each of the three jobs, but many times a pass over the tiles.
        assert len(packed) == (0 if name == "kernel matrix" else 3)
        assert (len(jobs) > 5 and min(jobs) > 1) or name == "kernel matrix"
        before = len(jobs)
        model.set_params(n_jobs=1)
        assert told() == expected
        model.set_params(n_jobs=None)
        assert len(jobs) == before


def test_tiles_survive_the_loss_of_workers(client, digits, monkeypatch):
    monkeypatch.setattr(grid, "COLUMNS", 16)
    X, y, X_test, _ = digits
    model = flipcert.KernelSVM().fit(X, y)
    expected = model.certify(X_test[:20]).radius
    begun = threading.Event()
    real = engines.run_on

    def spy(*arguments):
        begun.set()
        return real(*arguments)

    monkeypatch.setattr("flipcert.engine.blocks.run_on", spy)
    killer = threading.Thread(target=lambda: begun.wait(60) and kill_a_worker(client))
    killer.start()
    with (
        joblib.parallel_config(backend="dask", client=client),
        config_context(working_memory=4 * 32 * 16 * 8 / 2**20),
    ):
        assert np.array_equal(model.certify(X_test[:20]).radius, expected)
    killer.join()


def test_processes_of_joblib(jobs, digits):
    X, y, X_test, _ = digits
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), 10)
    expected = model.fit(X, y).certify(X_test)
    for backend in ("loky", "multiprocessing"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            found = model.fit(X, y).certify(X_test)
        assert np.array_equal(found.radius, expected.radius)
        assert np.array_equal(found.prediction, expected.prediction)
    assert len(jobs) == 4


def test_who_works(client):
    def process(_):
        # What is nested stays where it is.
        return os.getpid(), {*map_tasks(lambda _: os.getpid(), range(3), None)}

    with joblib.parallel_config(backend="dask", client=client):
        found = map_tasks(process, range(20), None)
        assert {own for own, _ in found} == {*client.run(os.getpid).values()}
        assert all({own} == nested for own, nested in found)
        assert map_tasks(lambda _: os.getpid(), range(3), 1) == [os.getpid()] * 3
        assert map_threads(lambda _: os.getpid(), range(3), None) == [os.getpid()] * 3


def test_tasks_of_a_user_do_not_wait_for_tasks_of_ours(client, blobs):
    """Both workers are busy with a user's tasks, as in a grid search; there is nobody else to give blocks to."""
    X, y, X_test, _ = blobs
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM("rbf"), 3)
    expected = model.fit(X, y).certify(X_test).radius
    with joblib.parallel_config(backend="dask", client=client):
        calls = (joblib.delayed(lambda m: m.fit(X, y).certify(X_test).radius)(model) for _ in range(4))
        assert all(np.array_equal(radius, expected) for radius in joblib.Parallel()(calls))


def test_errors_of_tasks_are_theirs(client):
    def task(number):
        raise ValueError(f"number {number} is wrong")

    with joblib.parallel_config(backend="dask", client=client), pytest.raises(ValueError, match=r"number \d is wrong"):
        map_tasks(task, range(5), None)


def tasks_of_the_cluster(dask_scheduler):
    return [key for key in dask_scheduler.tasks if str(key).startswith("run-")]


@pytest.mark.parametrize("culprit", ["task", "done"])
def test_a_job_that_stops_leaves_nothing_to_do(client, culprit):
    def task(number):
        if number > 0:
            time.sleep(0.2)
        elif culprit == "task":
            raise ValueError("no room")

    def done(place, result):
        raise ValueError("no room")

    # Jobs of other tests may wait to be forgotten, some of them in the memory of a worker that began them.
    gc.collect()
    of_others = {*client.run_on_scheduler(tasks_of_the_cluster)}
    with joblib.parallel_config(backend="dask", client=client):
        with pytest.raises(ValueError, match="no room") as stopped:
            map_tasks(task, range(50), None, done=done)
        # As long as the error is there, so is all that it came through; the cluster must not wait for it to go.
        patience = time.monotonic() + 60
        while ({*client.run_on_scheduler(tasks_of_the_cluster)} - of_others) and time.monotonic() < patience:
            time.sleep(0.01)
        assert {*client.run_on_scheduler(tasks_of_the_cluster)} <= of_others
    del stopped


def test_training_data_are_sent_once(client, digits, monkeypatch, tmp_path):
    X, y, X_test, _ = digits
    sent = []
    scatter = client.scatter
    monkeypatch.setattr(client, "scatter", lambda data, **how: sent.append(data.nbytes) or scatter(data, **how))
    monkeypatch.setattr(engines, "can_be_shared", lambda: False)
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), 5)
    with joblib.parallel_config(backend="dask", client=client):
        model.fit(X, y)
        # Each part goes to one worker, and does not come back as something else.
        assert sum(sent) < 1.1 * X.nbytes
        sent.clear()
        model.certify(X_test)
        assert sum(sent) < 1.2 * (X.nbytes + X_test.nbytes)
        sent.clear()
        voters = flipcert.PartitionEnsemble(flipcert.SmoothedLinear(), 5).fit(X, y)
        sent.clear()
        # Several jobs, one for each block of rows, with the same voters.
        voters.certify(X_test)
        assert sum(sent) < 6 * (X.nbytes + X_test.nbytes)
        sent.clear()
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "X_test.npy", X_test)
        mapped = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("X", "X_test"))
        flipcert.KernelSVM("rbf").fit(next(mapped), y).certify(next(mapped))
        assert sum(sent) < 200_000


def without_the_clients_memory():
    from flipcert.engine.cluster.shared import SharedArrays, Unreachable

    def cannot(self):
        raise Unreachable("another machine")

    SharedArrays._opened, SharedArrays.open = SharedArrays.open, cannot


def with_it_again():
    from flipcert.engine.cluster.shared import SharedArrays

    SharedArrays.open = SharedArrays._opened


def test_workers_nearby_are_not_even_sent_that(client, digits, monkeypatch):
    X, y, X_test, _ = digits
    sent = []
    scatter = client.scatter
    monkeypatch.setattr(client, "scatter", lambda data, **how: sent.append(data.nbytes) or scatter(data, **how))
    model = flipcert.KernelSVM("rbf").fit(X, y)
    expected = model.certify(X_test)
    with joblib.parallel_config(backend="dask", client=client):
        assert np.array_equal(model.certify(X_test).radius, expected.radius)
        assert sum(sent) < X.nbytes / 10
        # Unless they cannot reach it.
        client.run(without_the_clients_memory)
        try:
            assert np.array_equal(model.certify(X_test).radius, expected.radius)
        finally:
            client.run(with_it_again)
        assert sum(sent) > X.nbytes


class Killer(Watcher):
    """Kills a worker after some blocks."""

    def __init__(self, client, after):
        self._client = client
        self._after = after
        self.kept = 0
        self.notices = []

    def keep(self, question, result):
        self.kept += 1
        if self.kept in self._after:
            kill_a_worker(self._client, self.kept)

    def notice(self, message):
        self.notices.append(message)


def test_a_worker_that_is_killed(client, digits):
    X, y, X_test, _ = digits
    X_test = np.tile(X_test, (10, 1))
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), 10).fit(X, y)
    expected = model.certify(X_test)
    killer = Killer(client, after=[2])
    with joblib.parallel_config(backend="dask", client=client), watched_by(killer):
        found = model.certify(X_test)
    assert killer.kept == 8
    assert np.array_equal(found.radius, expected.radius)
    client.wait_for_workers(2)


def run_cli(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def files(tmp_path, monkeypatch, digits):
    monkeypatch.chdir(tmp_path)
    X, y, X_test, y_test = digits
    np.savez("train.npz", X=X[:600], y=y[:600])
    np.savez("test.npz", X=X_test, y=y_test)
    return tmp_path


def test_command_line(client, files, jobs):
    """A cluster that is there: the same bytes."""
    address = ("--dask", client.scheduler.address)
    for options, out in (((), "threads"), (address, "cluster")):
        result = run_cli("certify", "train.npz", "test.npz", "--partitions", 10, "--out", out, *options)
        assert result.exit_code == 0, result.output
    assert "Dask dashboard: " in result.stderr
    assert jobs
    for name in ("certificates.parquet", "attacks.parquet", "report.html", "run.json"):
        assert (files / "threads" / name).read_bytes() == (files / "cluster" / name).read_bytes(), name
    tables = [
        run_cli("sweep", "train.npz", "test.npz", "--kernel", "rbf", "--partitions", "2,3", "--json", "-q", *options)
        for options in ((), address)
    ]
    points = [[point["metrics"] for point in json.loads(table.stdout)["points"]] for table in tables]
    assert points[0] == points[1]
    attacks = [
        run_cli("attack", "train.npz", "test.npz", "--row", 3, "--partitions", 5, "-q", *options)
        for options in ((), address)
    ]
    assert attacks[0].stdout == attacks[1].stdout


def test_workers_of_its_own(files):
    result = run_cli("certify", "train.npz", "test.npz", "--workers", 1)
    assert result.exit_code == 0, result.output
    assert "Dask dashboard: http://127.0.0.1:" in result.stderr


@pytest.mark.parametrize("address", ["nowhere", "foo://a:1", "tcp://h", "tcp://h:x"])
def test_no_client_is_made_for_what_is_no_address(files, monkeypatch, address):
    """It could not be closed again, and would say so at the end of the process."""
    monkeypatch.setattr(pytest.importorskip("distributed"), "Client", None)
    result = run_cli("certify", "train.npz", "test.npz", "--dask", address)
    assert result.exit_code == 2
    assert f"Error: --dask {address} is not the address of a scheduler" in " ".join(result.stderr.split())


def test_what_is_wrong_with_a_cluster(files):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    result = run_cli("certify", "train.npz", "test.npz", "--dask", nobody)
    assert result.exit_code == 2
    assert f"Error: --dask {nobody}: no Dask scheduler answers there; start one" in result.stderr
    for options, told in (
        (("--dask", "nowhere"), "Error: --dask nowhere is not the address of a scheduler"),
        (("--dask", nobody, "--workers", 2), "Error: --dask names a cluster and --workers asks for another one"),
        (("--workers", 2, "--jobs", 1), "Error: --jobs is for threads of this process and --workers for other"),
        (("--dask", "tls://127.0.0.1:1"), "Error: --dask tls://127.0.0.1:1 needs --tls-ca, --tls-cert and --tls-key"),
        (("--tls-ca", "ca.pem"), "Error: --tls-ca needs --dask and all of --tls-ca, --tls-cert, --tls-key"),
    ):
        result = run_cli("certify", "train.npz", "test.npz", *options)
        assert result.exit_code == 2
        assert told in result.stderr
