"""The paper uses flipcert as anybody could: its public names, and nothing below them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import flipcert

FILES = sorted(Path(__file__).parents[1].rglob("*.py"))
# What can be imported from where. A module is public if it is a name of flipcert.
PUBLIC = {"flipcert": {*flipcert.__all__, "__version__"}} | {
    f"flipcert.{name}": set(getattr(flipcert, name).__all__)
    for name in flipcert.__all__
    if isinstance(getattr(flipcert, name), type(flipcert))
}


def wrongly_used(source):
    """What a file imports from flipcert, or uses of it, that is not public; and private attributes of anything."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "flipcert" and a.name not in PUBLIC)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "flipcert":
            yield from (f"{node.module}.{a.name}" for a in node.names if a.name not in PUBLIC.get(node.module, ()))
        elif isinstance(node, ast.Attribute):
            path, own = ast.unparse(node.value), node.attr.startswith("__")
            hidden = node.attr.startswith("_") and path not in ("self", "cls")
            if not own and (hidden or (path in PUBLIC and node.attr not in PUBLIC[path])):
                yield f"{path}.{node.attr}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: "/".join(file.parts[-2:]))
def test_only_public_names_are_used(file):
    assert list(wrongly_used(file.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "import flipcert.engine",
        "from flipcert.engine.files import whole_file",
        "from flipcert.kernels import base",
        "import flipcert\nflipcert.engine.jit",
        "import flipcert\nflipcert.kernels.base",
        "model._labels",
    ],
)
def test_other_names_would_be_seen(source):
    assert list(wrongly_used(source))


def test_nothing_of_the_paper_is_in_the_package():
    package = Path(flipcert.__file__).parent
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None)]
            assert not any(name and name.split(".")[0] == "paper" for name in names), file
