"""Settings and data shared by the tests."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tests.helpers.command_line import write_irises

# A busy machine is no fault of a test, and no reason to fail it.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser):
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in a random order, that of this seed")


def pytest_collection_modifyitems(config, items):
    seed = config.getoption("--shuffle")
    if seed is not None:
        random.Random(seed).shuffle(items)


@pytest.fixture(scope="session")
def digits():
    """Handwritten digits in [-1/2, 1/2]: training inputs and labels, test inputs and labels."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16 - 0.5, y, test_size=360, random_state=0)
    return X_train, y_train, X_test, y_test


@pytest.fixture
def blobs():
    """Three overlapping classes in the plane, small enough for everything."""
    rng = np.random.default_rng(7)
    centres = np.array([[0.0, 0.0], [1.5, 0.5], [0.3, 1.7]])
    y = np.arange(45) % 3
    X = centres[y] + rng.normal(size=(45, 2))
    return X[:30], y[:30], X[30:], y[30:]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Irises in files of all formats, in the folder that commands are given in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_irises()
    return tmp_path
