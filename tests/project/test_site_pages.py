"""Pages of the site say what is true: their code runs and prints what they show, their tables come from records."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy

import numpy as np
import pytest
from sklearn.datasets import load_digits

import flipcert
from tests.helpers.paths import ROOT

DOCS = ROOT / "docs"
PAGES = [
    DOCS / "start.md",
    DOCS / "api.md",
    *sorted((DOCS / "howto").glob("*.md")),
    *sorted((DOCS / "theory").glob("*.md")),
]
WITH_CODE = [page for page in PAGES if "```python" in page.read_text()]
GENERATED = ("_build", "reference", "tutorials")


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_code_of_a_page_prints_what_the_page_shows(page):
    blocks = re.findall(r"```(python|text)\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert blocks[0][0] == "python"
    names: dict[str, object] = {}
    printed = ""
    for kind, content in blocks:
        if kind == "text":
            assert printed == content, printed
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(content, str(page), "exec"), names)
        printed = out.getvalue()


@pytest.mark.parametrize("page", ["index", "threats", "collective", "logistic"])
def test_code_that_goes_on_from_data_of_a_reader_runs(page, tmp_path, monkeypatch):
    """These pages show nothing printed, and begin with inputs, labels and who gave them."""
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(return_X_y=True)
    X, y, source = X[:400] / 16 - 0.5, y[:400], np.arange(300) % 60
    names = {
        "X": X[:300],
        "y": y[:300],
        "X_train": X[:300],
        "y_train": y[:300],
        "X_test": X[300:320],
        "flipcert": flipcert,
    }
    names |= {"annotator": source, "worker": source, "row": np.arange(300), "label": y[:300]}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_pages_are_where_the_site_looks_for_them():
    """Each page is in a table of contents; what is generated is not kept."""
    listed = set()
    for page in [*DOCS.rglob("*.md"), *DOCS.glob("*.rst")]:
        if page.relative_to(DOCS).parts[0] in GENERATED:
            continue
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), flags=re.DOTALL):
            lines = [line for line in block.splitlines() if line and not line.startswith(":")]
            names = [re.sub(r".*<(.+)>", r"\1", line) for line in lines]
            listed |= {(page.parent / name).resolve() for name in names}
    pages = [page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in GENERATED]
    assert {page.with_suffix("") for page in pages} - listed == {DOCS / "index"}
    ignored = (ROOT / ".gitignore").read_text().split()
    assert all(f"/docs/{folder}/" in ignored for folder in GENERATED)


def test_tables_on_models_are_those_of_the_record():
    script = runpy.run_path(str(DOCS / "howto" / "measure_models.py"))
    record = json.loads((DOCS / "howto" / "models.json").read_text())
    assert list(record["results"]) == list(script["MODELS"])
    for page in (DOCS / "howto" / "choose.md", DOCS / "promises.md"):
        text = page.read_text()
        assert "from models.json" in text
        assert text == script["with_tables"](text, record)


def test_the_curve_of_the_start_is_that_of_its_code():
    script = runpy.run_path(str(DOCS / "start_picture.py"))
    numbers = script["in_numbers"](*script["certificates_of_the_page"]())
    assert numbers in (DOCS / "start.svg").read_text()
    described = re.search(r"!\[(.*?)\]\(start\.svg\)", (DOCS / "start.md").read_text())[1]
    shares = numbers.split()
    assert [f"0{share}" for share in re.findall(r"\.\d{3}", described)] == [shares[0], shares[10], shares[20]]
    assert described.endswith(f"0 at {len(shares) - 1}")
