"""Training states in files: plain numbers and tensors, written whole, never unpickled."""

from __future__ import annotations

import hashlib
import os
import pickle
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.features.encoder import Encoder, Pixels
from paper.features.method import Method, load_torch
from paper.features.rotnet import RotNet
from paper.features.simclr import SimCLR
from paper.files import whole_file

METHODS: dict[str, type[Method]] = {method.name: method for method in (RotNet, SimCLR)}

# Of the files; another number is refused.
_FORMAT = 1
# What a file must hold, and what is known of a training.
_PARTS = {"identity", "pixels", "network", "optimiser", "progress"}
_IDENTITY = {"method", "settings", "image_shape", "n_images", "images"}
# What using a file that is damaged, or another one, ends with.
_DAMAGE = (
    pickle.UnpicklingError, zipfile.BadZipFile, RuntimeError, EOFError, LookupError, ValueError, TypeError,
    AttributeError,
)  # fmt: skip


@dataclass
class Progress:
    """How far a training is.

    Attributes
    ----------
    step : int
        Steps that are done.
    losses : list of float
        Mean loss of each finished epoch.
    running : float
        Sum of the losses in the epoch that is not finished.
    finished : bool
        Whether all steps are done.
    seconds : float
        Time that it took; the only part that another run does not reproduce.
    """

    step: int = 0
    losses: list[float] = field(default_factory=list)
    running: float = 0.0
    finished: bool = False
    seconds: float = 0.0

    def add(self, loss: float, n_batches: int) -> None:
        """One more step is done."""
        self.step += 1
        self.running += loss
        if self.step % n_batches == 0:
            self.losses.append(self.running / n_batches)
            self.running = 0.0


def identity_of(method: Method, images: NDArray[Any]) -> dict[str, Any]:
    """What decides the weights: method, settings, images."""
    contents = hashlib.sha256(np.ascontiguousarray(images).data).hexdigest()
    return {
        "method": method.name,
        "settings": asdict(method),
        "image_shape": list(images.shape[1:]),
        "n_images": len(images),
        "images": f"{images.dtype}:{contents}",
    }


def write_checkpoint(
    path: str | os.PathLike[str],
    identity: dict[str, Any],
    pixels: Pixels,
    network: Any,
    optimiser: Any | None,
    progress: Progress,
) -> None:
    """Keep a state; without the optimiser once training is finished."""
    state = {
        "format": _FORMAT,
        "identity": identity,
        "pixels": asdict(pixels),
        "network": network.state_dict(),
        "optimiser": None if optimiser is None else optimiser.state_dict(),
        "progress": asdict(progress),
    }
    with whole_file(path) as file:
        load_torch().save(state, file)


def open_checkpoint(
    path: str | os.PathLike[str], identity: dict[str, Any], network: Any, optimiser: Any
) -> Progress | None:
    """Go on from a state, if there is one: fills in network and optimiser, and says how far they are."""
    if not os.path.exists(path):
        return None
    state = _read(path)
    found = state["identity"]
    if found != identity:
        raise ValueError(f"{path} holds a training with {_difference(found, identity)}; name another file.")
    with _intact(path):
        network.load_state_dict(state["network"])
        if state["optimiser"] is not None:
            optimiser.load_state_dict(state["optimiser"])
        return Progress(**state["progress"])


def load(path: str | os.PathLike[str]) -> Encoder:
    """Load a trained network from a checkpoint. Nothing is unpickled.

    Parameters
    ----------
    path : path-like
        What ``train(..., checkpoint=path)`` or ``python -m paper features train --out`` wrote.

    Returns
    -------
    Encoder

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from paper.features import RotNet, train
    >>> images = np.random.default_rng(0).integers(0, 256, (32, 1, 8, 8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trained = train(RotNet(width=4, epochs=1), images, checkpoint=f"{folder}/rotnet.pt")
    ...     again = load(f"{folder}/rotnet.pt")
    >>> np.array_equal(trained.features(images), again.features(images))
    True
    """
    torch = load_torch()
    if not os.path.exists(path):
        raise ValueError(f"{path} does not exist; give the path of a checkpoint.")
    state = _read(path)
    identity = state["identity"]
    with _intact(path):
        progress = Progress(**state["progress"])
        method = METHODS[identity["method"]](**identity["settings"])
        shape = tuple(identity["image_shape"])
        network = method.network(shape).to(memory_format=torch.channels_last)
        network.load_state_dict(state["network"])
        pixels = Pixels(**state["pixels"])
    if not progress.finished:
        raise ValueError(
            f"{path} holds a training that is not finished; go on with the command or the call that began it."
        )
    return Encoder(method, shape, pixels, network, progress.losses, progress.seconds)


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    torch = load_torch()
    with _intact(path):
        if not os.path.isfile(path) or not zipfile.is_zipfile(path):
            raise ValueError("no archive")
        state = torch.load(path, map_location="cpu", weights_only=True)
        identity = state["identity"]
        complete = state.keys() >= _PARTS and identity.keys() >= _IDENTITY and isinstance(identity["settings"], dict)
        if state["format"] != _FORMAT or not complete:
            raise ValueError("another format, or something is missing")
        return dict(state)


@contextmanager
def _intact(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say that a file is no checkpoint, whatever it is that it lacks."""
    try:
        yield
    except _DAMAGE as error:
        raise ValueError(
            f"{Path(path)} is no checkpoint of these networks, or only a part of one; name another file."
        ) from error


def _difference(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """The first thing in which two trainings differ, in words."""
    for key in wanted:
        if key == "settings" and found["method"] == wanted["method"]:
            for name, value in wanted["settings"].items():
                if found["settings"].get(name) != value:
                    return f"{name} {found['settings'].get(name)}, not {value}"
        elif key == "images" and found[key] != wanted[key]:
            return "other images"
        elif found[key] != wanted[key]:
            return f"{key} {found[key]}, not {wanted[key]}"
    return "other settings"
