"""The main job on bundled data: the commands that a user would give, one after the other, on handwritten digits."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import typer
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from flipcert.cli.console import results
from flipcert.engine.files import whole_file


def run_demo(folder: Path, quiet: bool = False) -> None:
    """Write the data to ``folder``, certify one model, compare ensembles, and write a report about both."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {folder} is a file; name a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    train, test = _write_digits(folder)
    model = ["--model", "ridge", "--activation", "relu", "--image-shape", "8,8"]
    silence = ["--quiet"] if quiet else []
    results.print(
        "1,437 handwritten digits with labels, 360 to predict. How many labels would an attacker have to flip?\n",
        soft_wrap=True,
    )
    _give("certify", train, test, *model, "--out", str(folder / "one-model"), *silence)
    _give(
        "sweep", train, test, *model, "--reg", "0.1,1,10", "--partitions", "1,5,10,25,50",
        "--out", str(folder / "sweep"), *silence,
    )  # fmt: skip
    _give("attack", train, test, *model[:4], "--row", "5", *silence)
    _give("report", str(folder / "sweep"), "--out", str(folder / "report.html"))
    results.print(f"\nOpen [bold]{folder / 'report.html'}[/] in a browser.", soft_wrap=True)


def _write_digits(folder: Path) -> tuple[str, str]:
    """Training and test data as files."""
    X, y = load_digits(return_X_y=True)
    # Centring helps, and is allowed: it never sees a label.
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0 - 0.5, y, test_size=360, random_state=0)
    paths = []
    for name, own_X, own_y in (("train", X_train, y_train), ("test", X_test, y_test)):
        paths.append(str(folder / f"{name}.npz"))
        with whole_file(paths[-1]) as file:
            np.savez_compressed(file, X=own_X, y=own_y)
    return paths[0], paths[1]


def _give(*arguments: str) -> None:
    """Give a command as a user would."""
    from flipcert.cli.app import app

    results.print(f"[bold]$ {shlex.join(['flipcert', *arguments])}[/]", soft_wrap=True)
    if code := app(list(arguments), standalone_mode=False):
        raise typer.Exit(code)
    results.print()
