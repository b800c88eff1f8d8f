"""The folder of a run: who it belongs to, what is finished, and files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from flipcert.engine.files import UNFINISHED, refuse_odd_files, whole_file
from flipcert.engine.npz import read_arrays
from flipcert.labels.threats import FLIPS
from flipcert.results.certificate_file import arrays_of, certificates_of
from flipcert.results.certificates import Certificates
from flipcert.results.collective_certificate import CollectiveCertificate
from flipcert.results.collective_file import arrays_of as arrays_of_collective
from flipcert.results.collective_file import collective_of

Kept = TypeVar("Kept")

_IDENTITY = "run.json"
_BLOCKS = "blocks"
SUMMARY = "summary.json"
# What a kept block answers, beside its certificates.
_QUESTION = "question"
# The digest of a summary, in itself.
_SEAL = "sha256"


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
            with self._lock():
                self._claim()
                self._sweep_up()
                (self.path / _BLOCKS).mkdir(exist_ok=True)
                yield self
                if self.finished:
                    shutil.rmtree(self.path / _BLOCKS, ignore_errors=True)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ValueError(f"--out {self.path} cannot be written: {reason}.") from error

    def finish(self, summary: Mapping[str, Any], files: Iterable[str]) -> None:
        """End the run: its summary is written last, and nothing is needed of the blocks any more.

        The summary holds digests of the other files, and of itself, so that :func:`read_summary` knows them again.
        """
        digests = {name: _digest_of_file(self.path / name) for name in files}
        told = json.loads(json.dumps({**summary, "files": digests}, default=_plain))
        self.write_json(SUMMARY, {**told, _SEAL: _digest_of(told)})

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file."""
        with whole_file(self.path / name) as file:
            file.write((json.dumps(value, indent=2, default=_plain) + "\n").encode())

    def keep(self, name: str, block: Certificates) -> None:
        """Write a finished block, which answers the question of that name."""
        self._keep(name, arrays_of(block))

    def recall(self, name: str) -> Certificates | None:
        """Read a block, if it was finished; a damaged one has to be computed again."""
        return self._recall(name, lambda arrays: certificates_of(Certificates, arrays))

    def keep_collective(self, name: str, certificate: CollectiveCertificate) -> None:
        """Write what was proven and found for a budget."""
        self._keep(name, arrays_of_collective(certificate))

    def recall_collective(self, name: str) -> CollectiveCertificate | None:
        """Read that, if it was finished and is not damaged."""
        return self._recall(name, lambda arrays: collective_of(CollectiveCertificate, arrays))

    def keep_arrays(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Write what a step of the run has found."""
        self._keep(name, arrays)

    def recall_arrays(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Read that, if it was finished and is not damaged."""
        return self._recall(name, lambda arrays: arrays)

    def _keep(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        with whole_file(self._block(name)) as file:
            np.savez(file, **cast(dict[str, Any], arrays | {_QUESTION: np.array(name)}))

    def _recall(self, name: str, make: Callable[[dict[str, NDArray[Any]]], Kept]) -> Kept | None:
        try:
            refuse_odd_files(self._block(name))
            with open(self._block(name), "rb") as file:
                arrays = read_arrays(file)
            question = str(arrays.pop(_QUESTION, ""))
            return make(arrays) if question == name else None
        except (OSError, ValueError):
            return None

    @property
    def holds_blocks(self) -> bool:
        """Whether anything was kept."""
        return any((self.path / _BLOCKS).glob("*.npz"))

    @property
    def scratch(self) -> Path:
        """Where to keep what is of use until the run ends."""
        return self.path / _BLOCKS

    def _block(self, name: str) -> Path:
        return self.path / _BLOCKS / f"{name}.npz"

    def _claim(self) -> None:
        """Write whose folder this is, or see that it is that of this run."""
        path = self.path / _IDENTITY
        if not path.exists():
            if any(entry for entry in self.path.iterdir() if not entry.name.endswith(UNFINISHED)):
                raise ValueError(f"--out {self.path} holds other files and no run; name a new folder.")
            self.write_json(_IDENTITY, self._identity)
            return
        try:
            refuse_odd_files(path)
            stored = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            stored = None
        if not isinstance(stored, dict):
            raise ValueError(f"{path} is damaged; remove the folder and run again.")
        if stored != self._identity:
            raise ValueError(
                f"--out {self.path} holds another run ({_difference(stored, self._identity)}); name another folder."
            )

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Keep other processes out; the system lets go of the lock when this one ends, however it does."""
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            yield
            return
        folder = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(folder)
            raise ValueError(f"--out {self.path} is in use by another process; wait for it to end.") from error
        except OSError:  # nor on this file system
            pass
        try:
            yield
        finally:
            os.close(folder)

    def _sweep_up(self) -> None:
        """Remove what a killed process was writing."""
        for folder in (self.path, self.path / _BLOCKS):
            for left in folder.glob(f".*{UNFINISHED}"):
                left.unlink(missing_ok=True)


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary of a finished run, if it and the files that it names are what the run wrote."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not the folder of a run; give one that `flipcert certify` or `sweep` wrote.")
    if not (folder / SUMMARY).exists():
        raise ValueError(
            f"{folder} has no {SUMMARY}: it is no run, or one that has not finished; give the folder of a run, or run "
            "its command again to go on."
        )
    try:
        refuse_odd_files(folder / SUMMARY)
        summary = json.loads((folder / SUMMARY).read_bytes())
        changed = changed_files(folder, summary)
    except (IsADirectoryError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        changed = [SUMMARY]
    if changed:
        raise ValueError(
            f"{folder} does not hold a complete run: {changed[0]} is missing, or not what was written; run its command "
            "again in a new folder."
        )
    if (fault := fault_of_identity(folder, summary)) is not None:
        raise ValueError(f"{folder} does not hold a complete run: {fault}; run its command again in a new folder.")
    return cast(dict[str, Any], summary)


def changed_files(folder: Path, summary: Mapping[str, Any]) -> list[str]:
    """Files of a run that are missing, or not what the summary says was written; the summary itself comes first."""
    told = {name: own for name, own in summary.items() if name != _SEAL}
    changed = [SUMMARY] if summary[_SEAL] != _digest_of(told) else []
    return changed + [name for name, own in summary["files"].items() if _digest_of_file(folder / name) != own]


def fault_of_identity(folder: Path, summary: Mapping[str, Any]) -> str | None:
    """What is wrong, if anything, between the summary of a run and what decided its results."""
    path = folder / _IDENTITY
    try:
        refuse_odd_files(path)
        identity = json.loads(path.read_bytes())
        # Runs from before there were other threats name none.
        first, second = ({"threat": FLIPS.name, **told} for told in (identity, summary))
        second = {name: second.get(name) for name in first}
        if first != second:
            return f"{SUMMARY} is not that of the run in {_IDENTITY} ({_difference(first, second)})"
    except (OSError, ValueError, TypeError, RecursionError):
        return f"{_IDENTITY} is missing, or not what was written"
    return None


def _digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _digest_of_file(path: Path) -> str | None:
    try:
        refuse_odd_files(path)
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, IsADirectoryError, ValueError):
        return None


def _difference(stored: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> str:
    """The first setting that differs, in words."""
    # An option that one version did not have yet is no difference by itself.
    return _first_difference(stored, wanted) or "made by another version of flipcert"


def _first_difference(stored: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> str | None:
    """The first setting with another value; one that is missing has none."""
    for name in sorted({*stored, *wanted}):
        before, now = stored.get(name), wanted.get(name)
        if before == now:
            continue
        if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
            before, now = (own[0] if len(own) == 1 else dict(enumerate(own)) for own in (before, now))
        if isinstance(before, dict) and isinstance(now, dict):
            if (inner := _first_difference(before, now)) is not None:
                return f"{name}: {inner}"
            continue
        return f"{name} was {json.dumps(before)}, is {json.dumps(now)}"
    return None


def _plain(value: Any) -> Any:
    """NumPy numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot be written as JSON: {value!r}")
