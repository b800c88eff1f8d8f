"""Tables as people have them, and the advice that is given about them."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pandas as pd

from tests.helpers.command_line import run

N = 40
U_V = ["u", "v"] * (N // 2)
ALL_DIFFERENT = [f"t{i}" for i in range(N)]


def plain(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    return pd.DataFrame({"a": rng.normal(size=N) + y, "b": rng.normal(size=N) * 100, "label": np.where(y, "yes", "no")})


def write(train, test, kind="csv"):
    for name, table in (("train", train), ("test", test)):
        table.to_csv(f"{name}.csv", index=False) if kind == "csv" else table.to_parquet(f"{name}.parquet")
    return f"train.{kind}", f"test.{kind}"


def advised_for(*files):
    """What is said about files, and the command that is advised, if there is one; it works."""
    looked = run("inspect", *files)
    assert looked.exit_code == 0, looked.output
    found = re.findall(r"^flipcert certify .*$", looked.stdout, re.MULTILINE)
    if found:
        assert len(found) == 1
        told = run(*shlex.split(found[0])[1:], "--quiet")
        assert told.exit_code == 0, told.output
    return looked.stdout, found[0] if found else None
