"""Jobs that stop half-way: the reason is what one sees, and nothing of them is left."""

import threading
import time

import joblib
import pytest
from sklearn import config_context

from flipcert.engine.blocks import map_tasks, map_threads, memory_budget


class Full(Exception):
    """Nothing more can be kept."""


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = set(threading.enumerate())
    yield
    assert not {thread for thread in threading.enumerate() if thread.name.startswith("flipcert")} - before


class Work:
    """Tasks of some length, which are counted."""

    def __init__(self, seconds=0.0, failing=()):
        self.begun, self.ended = [], []
        self._seconds, self._failing = seconds, failing

    def __call__(self, number):
        self.begun.append(number)
        time.sleep(self._seconds)
        self.ended.append(number)
        if number in self._failing:
            raise Full(f"task {number}")
        return number


def stop_at(number):
    """Whoever takes the results has enough of them."""
    taken = []

    def done(place, result):
        assert place == result
        taken.append(place)
        if len(taken) == number:
            raise Full("no room")

    return done


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("seconds", [0.0, 0.002])
@pytest.mark.parametrize("place", [1, 2, 3, 11, 39, 40])
def test_whoever_stops_a_job_is_heard_when_it_has_ended(threads, seconds, place):
    work = Work(seconds)
    with pytest.raises(Full, match="no room"):
        map_tasks(work, range(40), threads, done=stop_at(place))
    assert sorted(work.begun) == sorted(work.ended)
    # What is under way at most: a task that runs and one that waits for each thread.
    assert place <= len(work.begun) <= place + 2 * threads


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_a_task_that_fails_stops_the_job(threads):
    work = Work(0.001, failing=(3,))
    with pytest.raises(Full, match="task 3"):
        map_tasks(work, range(200), threads)
    assert sorted(work.begun) == sorted(work.ended)


def test_what_stops_a_job_is_not_hidden_by_the_tasks_still_under_way():
    """One result cannot be kept while others wait to be used and others run, and these fail as well."""
    others_run, stopped = threading.Event(), threading.Event()

    def task(number):
        if number > 0:
            others_run.set()
            assert stopped.wait(600)
            raise ValueError("too late to be heard")
        return number

    def done(place, result):
        assert others_run.wait(600)
        stopped.set()
        raise Full("no room")

    with pytest.raises(Full, match="no room"):
        map_tasks(task, range(200), 3, done=done)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_job_ends_first(error):
    work = Work(0.01)

    def done(place, result):
        raise error

    with pytest.raises(error):
        map_threads(work, range(50), 2, done=done)
    assert sorted(work.begun) == sorted(work.ended)


def test_jobs_within_jobs():
    def outer(number):
        return sum(map_threads(lambda inner: number * inner, range(10), 3))

    assert map_threads(outer, range(20), 3) == [45 * number for number in range(20)]

    def failing(number):
        return map_threads(Work(failing=(5,)), range(10), 3)

    with pytest.raises(Full, match="task 5"):
        map_threads(failing, range(20), 3)


def test_tasks_see_the_memory_budget_of_their_job():
    """Settings of scikit-learn belong to a thread."""
    with config_context(working_memory=7):
        assert set(map_threads(lambda _: memory_budget(), range(8), 3)) == {7 * 2**20}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({"backend": "threading", "n_jobs": 3}, 3), ({"backend": "sequential"}, 0), ({"n_jobs": 3}, 3)],
)
def test_threads_are_as_many_as_joblib_is_told(settings, expected):
    together = threading.Barrier(expected) if expected else None

    def task(_):
        if together is not None:
            together.wait(600)
        return threading.current_thread()

    with joblib.parallel_config(**settings):
        threads = set(map_threads(task, range(max(expected, 1) * 3), None))
    assert len(threads - {threading.current_thread()}) == expected


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_jobs_in_other_processes_stop_as_well(backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        for place in (1, 2, 5, 29, 30):
            with pytest.raises(Full, match="no room"):
                map_tasks(Work(0.001), range(30), None, done=stop_at(place))
        with pytest.raises(Full, match="task 3"):
            map_tasks(Work(failing=(3,)), range(30), None)
