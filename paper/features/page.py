"""The page about learned features: text, and figures from what ``python -m paper.features.study`` measured."""

from __future__ import annotations

from typing import Any

_TEXT = """# Features without labels

Certificates trust features and distrust labels, so features must not have seen the labels that an attacker may flip.
`paper.features` learns them from images alone: its functions take no labels. It needs torch
(`pip install "flipcert[torch]"`).

- **RotNet** names the quarter turn by which an image was rotated. Its features are the map of the second block of a
  network in network: `width` channels, a quarter of the height and width, not negative. On MNIST that is 64 x 7 x 7.
- **SimCLR** finds the second random version (crop, mirror image, other colours) of an image among those of others. Its
  features are the `8 width` averages at the end of a ResNet-18 for small images.

```sh
python -m paper features train rotnet mnist --width 64 --epochs 2 --out rotnet.pt
python -m paper features train simclr cifar10 --batches 1 --width 16 --epochs 10 --batch-size 64 --out simclr.pt
python -m paper features extract rotnet.pt mnist --out data/mnist-rotnet.npz
FLIPCERT_DATA=data python -m paper features export mnist-rotnet --out features
flipcert certify features/train.npz features/test.npz --partitions 50 --out run
```

Data sets are known by name: `digits` (comes with scikit-learn), `mnist`, `mnist-1-vs-7`, `cifar10`, and `NAME` for any
feature file `NAME.npz` (arrays `x_train`, `y_train`, `x_test`, `y_test`; perhaps `scale` and `image_shape`). They are
looked for in the folder that `FLIPCERT_DATA` names, else in `flipcert` in the user's folder for caches: MNIST as IDX
files, CIFAR-10 as binary batches, compressed or not. What is not there is fetched from OpenML and kept. In Python:
`paper.data.load("mnist")`.

A training keeps its state every minute. Stopped at any moment and started again with the same command, it ends with the
same weights, bit for bit, on the same kind of machine and number of threads. A checkpoint of other settings or images
is refused. On a busy machine threads that wait actively slow each other down; `OMP_WAIT_POLICY=PASSIVE` helps.

## What was trained

"""

_AFTER = """
The probe is ridge regression on standardised columns, fitted to the labelled training set, of which the last fifth
chose the regularisation. Labels are used only there. Time is wall-clock on {threads} threads of a shared machine.

`python -m paper.features.study` trains both, measures, and writes `paper/features.json` and this page.
"""


def page(records: list[dict[str, Any]]) -> str:
    """The page, from the records of all jobs."""
    rows = [
        ("network", [f"{_NAMES[record['method']]}, width {record['settings']['width']}" for record in records]),
        ("images", [_images(record) for record in records]),
        ("epochs, batch size", [f"{r['settings']['epochs']}, {r['settings']['batch_size']}" for r in records]),
        ("training", [f"{record['seconds'] / 60:.0f} minutes" for record in records]),
        ("loss, first and last epoch", [f"{r['losses'][0]:.3f}, {r['losses'][-1]:.3f}" for r in records]),
        ("turns named rightly, test images", [_share(record["turns"]) for record in records]),
        ("features", [" x ".join(map(str, record["feature_shape"])) for record in records]),
        ("accuracy of a linear probe, pixels", [_share(record["probe"]["pixels"]) for record in records]),
        ("accuracy of a linear probe, features", [_share(record["probe"]["features"]) for record in records]),
    ]
    lines = ["| | " + " | ".join(record["name"] for record in records) + " |", "| --- |" + " --- |" * len(records)]
    lines += [f"| {what} | {' | '.join(cells)} |" for what, cells in rows]
    threads = " and ".join(sorted({str(record["threads"]) for record in records}))
    return _TEXT + "\n".join(lines) + "\n" + _AFTER.format(threads=threads)


_NAMES = {"rotnet": "RotNet", "simclr": "SimCLR"}


def _images(record: dict[str, Any]) -> str:
    some = "" if record["batches"] is None else f" (batch {', '.join(map(str, record['batches']))} of 5)"
    return f"{record['n_images']:,} of {record['dataset']}{some}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"
