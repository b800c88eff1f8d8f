"""The clock of time limits: it stands still while a compiler works, and only then."""

import threading
import time

from numba import njit
from numba.core import event

from flipcert.engine.clock import working_time


def test_it_goes_as_others_do():
    begin = working_time(), time.monotonic()
    time.sleep(0.05)
    end = working_time(), time.monotonic()
    assert 0.05 <= end[0] - begin[0] <= end[1] - begin[1] + 0.001


def test_compiling_takes_no_time():
    slow = {}

    class Listener(event.Listener):
        def on_start(self, event):
            slow.setdefault("begin", working_time())
            time.sleep(0.2)
            slow["during"] = working_time()

        def on_end(self, event):
            pass

    working_time()  # it listens from its first use on, before the listener that dawdles here

    @njit
    def inner(x):
        return x + 1

    @njit
    def outer(x):
        return inner(x) + 1

    with event.install_listener("numba:compile", Listener()):
        begin = time.monotonic(), working_time()
        assert outer(1) == 3
        end = time.monotonic(), working_time()
    assert end[0] - begin[0] >= 0.4  # both functions were compiled, one while the other was
    assert slow["during"] == slow["begin"]
    assert end[1] - begin[1] < 0.2


def test_it_stands_still_for_other_threads_too():
    seen = []

    class Listener(event.Listener):
        def on_start(self, event):
            threads = [threading.Thread(target=lambda: seen.append(working_time())) for _ in range(2)]
            for thread in threads:
                thread.start()
                thread.join()
                time.sleep(0.05)

        def on_end(self, event):
            pass

    working_time()
    with event.install_listener("numba:compile", Listener()):
        assert njit(lambda x: x * 2)(2) == 4
    assert len(seen) == 2
    assert seen[0] == seen[1]
