"""The folder of a run: who it belongs to, what is finished, and files that appear whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from flipcert.engine.files import UNFINISHED, whole_file
from flipcert.outcome import Outcome

_IDENTITY = "run.json"
_BLOCKS = "blocks"
SUMMARY = "summary.json"


class RunFolder:
    """A folder that holds one run.

    The identity of the run (inputs by digest, settings, version) is written first, then one file for each finished
    block of test points, and at the end the results, which replace the blocks. A run that is killed is opened again
    by the same identity and goes on; any other identity is refused.

    Parameters
    ----------
    path : str or path-like
        The folder; it is made if it does not exist.
    identity : mapping of str to Any
        All that decides the results, as plain values.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._identity = json.loads(json.dumps(identity, sort_keys=True, default=_plain))

    @property
    def finished(self) -> bool:
        """Whether the run has ended: its summary is written last."""
        return (self.path / SUMMARY).exists()

    @contextmanager
    def opened(self) -> Iterator[RunFolder]:
        """Claim the folder for this process as long as the block lasts."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"--out {self.path} is a file; name a folder.")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            stored = self._stored_identity()
            if stored is None:
                if any(entry for entry in self.path.iterdir() if not entry.name.endswith(UNFINISHED)):
                    raise ValueError(f"--out {self.path} holds other files and no run; name a new folder.")
                self.write_json(_IDENTITY, self._identity)
            elif stored != self._identity:
                raise ValueError(
                    f"--out {self.path} holds another run ({_difference(stored, self._identity)}); name another folder."
                )
            with self._lock():
                self._sweep_up()
                (self.path / _BLOCKS).mkdir(exist_ok=True)
                yield self
                if self.finished:
                    shutil.rmtree(self.path / _BLOCKS, ignore_errors=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ValueError(f"--out {self.path} cannot be written: {reason}.") from error

    def finish(self, summary: Mapping[str, Any]) -> None:
        """End the run: its summary is written last, and nothing is needed of the blocks any more."""
        self.write_json(SUMMARY, summary)

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file."""
        with whole_file(self.path / name) as file:
            file.write((json.dumps(value, indent=2, default=_plain) + "\n").encode())

    def keep(self, name: str, outcome: Outcome) -> None:
        """Write the outcome of a finished block."""
        columns = {key: values for key, values in vars(outcome).items() if values is not None}
        with whole_file(self._block(name)) as file:
            np.savez(file, **columns)

    def recall(self, name: str) -> Outcome | None:
        """Read the outcome of a block, if it was finished."""
        path = self._block(name)
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as stored:
            return Outcome(**({"blackbox_radius": None} | {key: stored[key] for key in stored.files}))

    @property
    def scratch(self) -> Path:
        """Where to keep what is of use until the run ends."""
        return self.path / _BLOCKS

    def _block(self, name: str) -> Path:
        return self.path / _BLOCKS / f"{name}.npz"

    def _stored_identity(self) -> Any | None:
        path = self.path / _IDENTITY
        if not path.exists():
            return None
        try:
            return json.loads(path.read_text())
        except ValueError as error:
            raise ValueError(f"{path} is damaged; remove the folder and run again.") from error

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Keep other processes out; the system lets go of the lock when this one ends, however it does."""
        with open(self.path / _IDENTITY) as file:
            try:
                import fcntl
            except ImportError:  # no such locks on this system
                yield
                return
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ValueError(f"--out {self.path} is in use by another process; wait for it to end.") from error
            yield

    def _sweep_up(self) -> None:
        """Remove what a killed process was writing."""
        for folder in (self.path, self.path / _BLOCKS):
            for left in folder.glob(f".*{UNFINISHED}"):
                left.unlink(missing_ok=True)


def _difference(stored: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> str:
    """The first setting that differs, in words."""
    for name in sorted({*stored, *wanted}):
        before, now = stored.get(name), wanted.get(name)
        if before != now:
            if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
                before, now = dict(enumerate(before)), dict(enumerate(now))
            if isinstance(before, dict) and isinstance(now, dict):
                return f"{name}: {_difference(before, now)}"
            return f"{name} was {json.dumps(before)}, is {json.dumps(now)}"
    return "nothing differs"


def _plain(value: Any) -> Any:
    """NumPy numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot be written as JSON: {value!r}")
