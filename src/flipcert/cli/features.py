"""The commands about features and their help; what they do is imported when they run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from flipcert.cli.errors import in_words
from flipcert.cli.groups import with_groups
from flipcert.cli.options import LARGEST_SEED

app = typer.Typer(
    help="Learn features from images without labels, and keep them in a feature file (needs torch).",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Data = Annotated[
    str, typer.Argument(help="Data set with images, by name: mnist, cifar10, digits, ...", show_default=False)
]
Folder = Annotated[
    Path | None, typer.Option("--data", help="Data folder; FLIPCERT_DATA, or the cache of the user, if not given.")
]
Batches = Annotated[
    str | None, typer.Option("--batches", help="cifar10: training batches to read, such as 1,2; all if not given.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


@dataclass(frozen=True)
class Learning:
    """How to train; None stands for the default of the method."""

    width: Annotated[int | None, typer.Option(help="Channels of the network; 64 if not given.")] = None
    epochs: Annotated[int | None, typer.Option(help="Passes over the images; rotnet 4, simclr 100 if not given.")] = (
        None
    )
    batch_size: Annotated[int | None, typer.Option(help="Images in a step; rotnet 32, simclr 256 if not given.")] = None
    learning_rate: Annotated[
        float | None, typer.Option(help="Largest step; rotnet 0.1, simclr 0.001 if not given.")
    ] = None
    weight_decay: Annotated[float | None, typer.Option(help="Penalty of large weights.")] = None
    blocks: Annotated[int | None, typer.Option(help="rotnet: blocks of the network, 4 if not given.")] = None
    projection: Annotated[int | None, typer.Option(help="simclr: outputs of the projection, 128 if not given.")] = None
    temperature: Annotated[float | None, typer.Option(help="simclr: of the loss, 0.5 if not given.")] = None
    crop: Annotated[float | None, typer.Option(help="simclr: smallest share of a crop, 0.2 if not given.")] = None
    colour: Annotated[float | None, typer.Option(help="simclr: change of colours, 0.5 if not given; 0 for none.")] = (
        None
    )
    seed: Annotated[int, typer.Option(help="Of weights, order and random versions.", min=0, max=LARGEST_SEED)] = 0


@app.command()
@with_groups
@in_words
def train(
    method: Annotated[str, typer.Argument(help="rotnet or simclr.", show_default=False)],
    dataset: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Checkpoint to write, and to go on from.")],
    learning: Learning,
    data: Folder = None,
    batches: Batches = None,
    quiet: Quiet = False,
) -> None:
    """Train a network on the training images of a data set. Its labels are not used.

    The state is kept every minute. A training that was stopped goes on when its command is given again, and ends with
    the same weights.

    [bold]Examples[/]

      flipcert features train rotnet mnist --epochs 2 --out rotnet.pt

      flipcert features train simclr cifar10 --width 16 --epochs 20 --out simclr.pt
    """
    from flipcert.cli.features_commands import train_command

    train_command(method, dataset, out, learning, data, batches, quiet)


@app.command()
@in_words
def extract(
    checkpoint: Annotated[Path, typer.Argument(help="What features train wrote.", show_default=False)],
    dataset: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Feature file to write, NAME.npz.")],
    data: Folder = None,
    batches: Batches = None,
    quiet: Quiet = False,
) -> None:
    """Write the features of a data set into a file; in the data folder, it can be used by its name.

    [bold]Example[/]

      flipcert features extract rotnet.pt mnist --out mnist-rotnet.npz
    """
    from flipcert.cli.features_commands import extract_command

    extract_command(checkpoint, dataset, out, data, batches, quiet)
