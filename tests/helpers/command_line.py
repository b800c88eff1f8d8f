"""Commands as a user gives them, on irises."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from typer.testing import CliRunner

import flipcert
from flipcert.cli import app

IRIS_X, IRIS_Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
X_TRAIN, Y_TRAIN, X_TEST, Y_TEST = IRIS_X[::2], NAMES[IRIS_Y[::2]], IRIS_X[1::2], NAMES[IRIS_Y[1::2]]
MODEL = ("--model", "ridge", "--kernel", "rbf", "--reg", "0.5", "--partitions", "3")


def write_irises():
    for name, X, y in (("train", X_TRAIN, Y_TRAIN), ("test", X_TEST, Y_TEST)):
        np.savez(f"{name}.npz", X=X, y=y)
        np.save(f"X_{name}.npy", X)
        np.save(f"y_{name}.npy", y)
        frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(label=y)
        frame.to_csv(f"{name}.csv", index=False)
        frame.to_parquet(f"{name}.parquet")
        frame.drop(columns="label").to_csv(f"{name}-unlabelled.csv", index=False)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def summary_of(*arguments):
    result = run(*arguments, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments, code=2):
    """What is said to a command that cannot be carried out: one sentence."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    said = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(said) == 1, result.output
    assert said[0].endswith(".")
    return said[0]


def python_certificates():
    base = flipcert.KernelRidge(flipcert.kernels.RBF(), reg=0.5)
    return flipcert.PartitionEnsemble(base, n_partitions=3).fit(X_TRAIN, Y_TRAIN).certify(X_TEST)
