"""The curve on ``start.md``: ``python docs/start_picture.py`` draws it from the code of that page."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

HERE = Path(__file__).parent
PICTURE = HERE / "start.svg"


def certificates_of_the_page():
    """What the first block of code on the page certifies, and the labels of its test points."""
    names: dict[str, object] = {}
    exec(re.search(r"```python\n(.*?)```", (HERE / "start.md").read_text(), flags=re.DOTALL)[1], names)
    return names["certificates"], names["y_test"]


def in_numbers(certificates, y_test):
    """The curve, as the picture says it to whoever compares."""
    flips = range(int(certificates.radius.max()) + 2)
    return " ".join(f"{share:.3f}" for share in certificates.certified_accuracy(y_test, flips))


if __name__ == "__main__":
    certificates, y_test = certificates_of_the_page()
    matplotlib.rcParams["svg.hashsalt"] = "flipcert"
    figure = certificates.plot(y_test)
    figure.set_size_inches(5.6, 3.4)
    metadata = {"Date": None, "Description": in_numbers(certificates, y_test)}
    figure.savefig(PICTURE, metadata=metadata, facecolor="white")
