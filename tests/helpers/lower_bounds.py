"""What pyproject.toml promises to run with: its lower bounds, as requirements that pip installs exactly.

``python tests/helpers/lower_bounds.py`` prints them; ``make test-minimum`` runs the suite on them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
# What the tests use beside the package itself.
_EXTRAS, _GROUP = ("dask", "frame", "plot", "torch"), "test"
# Of torch only this version is at hand without graphics cards; the oldest would bring gigabytes of packages for them.
TESTED_AS = {"torch": "2.13.0"}


def lower_bounds(file: Path = PROJECT) -> dict[str, str]:
    """The smallest version of each package that the tests use."""
    project = tomllib.loads(file.read_text())
    extras = project["project"]["optional-dependencies"]
    stated = [*project["project"]["dependencies"], *project["dependency-groups"][_GROUP]]
    stated += [requirement for extra in _EXTRAS for requirement in extras[extra]]
    bounds: dict[str, str] = {}
    for requirement in stated:
        found = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement)
        if found is None:
            raise ValueError(f"{requirement} in pyproject.toml is no name with a lower bound, such as numpy>=2.2.")
        package, bound = found.groups()
        if bounds.setdefault(package, bound) != bound:
            raise ValueError(f"{package} has two lower bounds in pyproject.toml, {bounds[package]} and {bound}.")
    return bounds


def requirements() -> str:
    """A line for pip for each package."""
    return "\n".join(f"{package}=={TESTED_AS.get(package, bound)}" for package, bound in lower_bounds().items())


if __name__ == "__main__":
    print(requirements())
