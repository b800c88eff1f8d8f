"""``python -m paper --dask``: the same tables from other processes."""

from __future__ import annotations

import distributed
import pytest

from paper.figures.table import read_table

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture
def client():
    place = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, **place) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_figures_of_the_paper(paper, client, tmp_path):
    """One of each kind of work: ensembles, a kernel that is stored, SVMs of any C."""
    names = ("figure-2a", "figure-3c", "small-c")
    with distributed.get_task_stream(client) as stream:
        for options, out in (((), "threads"), (("--dask", client.scheduler.address), "cluster")):
            paper(*names, "--quick", "--digits", "-q", "--out", tmp_path / out, *options)
    assert stream.data
    for name in names:
        tables = [read_table(tmp_path / out / "results" / f"{name}.parquet") for out in ("threads", "cluster")]
        first, second = ([_without_times(row) for row in table] for table in tables)
        assert first == second, name


def _without_times(row):
    return {name: value for name, value in row.items() if not name.startswith(("seconds", "timed"))}
