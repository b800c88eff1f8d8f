"""Jobs that stop half-way: the reason is what one sees."""

import threading

import pytest

from flipcert.engine.blocks import map_tasks


class Full(Exception):
    """Nothing more can be kept."""


def test_what_stops_a_job_is_not_hidden_by_the_tasks_still_under_way():
    """One result cannot be kept while others wait to be used and others run: joblib has much to say about that."""
    others_are_ready = threading.Event()

    def task(number):
        if number == 5:
            others_are_ready.set()
        return number

    def keep(place, result):
        assert others_are_ready.wait(600)
        raise Full("no room")

    with pytest.raises(Full, match="no room"):
        map_tasks(task, range(200), 2, done=keep)


def test_tasks_that_fail_say_why():
    def task(number):
        if number == 3:
            raise Full("the third")
        return number

    with pytest.raises(Full, match="the third"):
        map_tasks(task, range(50), 2)
