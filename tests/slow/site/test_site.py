"""The site as it was built: links lead somewhere, nothing is loaded from elsewhere, every public name has its place."""

from __future__ import annotations

import inspect
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import flipcert
from flipcert import kernels, plots
from tests.helpers.paths import ROOT

SITE = ROOT / "docs" / "_build" / "html"
PAGES = [file for file in sorted(SITE.rglob("*.html")) if "_static" not in file.parts]
TUTORIALS = sorted((ROOT / "examples" / "tutorials").glob("plot_*.py"))
PUBLIC = [f"flipcert.{name}" for name in flipcert.__all__ if not inspect.ismodule(getattr(flipcert, name))]
PUBLIC += [f"flipcert.kernels.{name}" for name in kernels.__all__]
PUBLIC += [f"flipcert.plots.{name}" for name in plots.__all__]


class Page(HTMLParser):
    """What a page has: places to link to, links, and what a browser would load by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in ("index", "search", "next", "prev", "canonical"):
            self.loaded.append(values.get("href", ""))
        self.loaded += [values["src"]] if "src" in values else []
        self.loaded += re.findall(r"(\S+)(?: [\d.]+[wx])?(?:,|$)", values.get("srcset", ""))


@cache
def page(file: Path) -> Page:
    return Page(file.read_text())


def local(file: Path, target: str) -> Path:
    return (file.parent / unquote(target)).resolve() if target else file


def test_there_is_a_site():
    assert (SITE / "docs" / "index.html") in PAGES
    assert len(PAGES) > 60


def test_links_lead_somewhere():
    for file in PAGES:
        for link in page(file).links:
            if re.match(r"[a-z]+:", link):
                assert link.startswith(("https:", "http:", "mailto:")), (file, link)
                continue
            target, place = urldefrag(link)
            found = local(file, target)
            assert found.is_file(), (file, link)
            if place and found.suffix == ".html" and file.name != "search.html":
                assert unquote(place) in page(found).places | {"main-content"}, (file, link)


def test_pages_load_nothing_from_elsewhere():
    for file in PAGES:
        for source in page(file).loaded:
            if not source.startswith("data:"):
                assert not re.match(r"([a-z]+:)?//", source), (file, source)
                assert local(file, source.split("?")[0]).is_file(), (file, source)
    for file in SITE.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", file.read_text()), file


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_in_the_reference(name):
    file = SITE / "docs" / "reference" / f"{name}.html"
    assert name in page(file).places
    assert f"reference/{name}.html#{name}" in page(SITE / "docs" / "reference.html").links


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda script: script.stem)
def test_tutorials_show_pictures_and_what_they_print(script):
    text = (SITE / "docs" / "tutorials" / f"{script.stem}.html").read_text()
    drawn = len(re.findall(r"^plt\.show\(\)|^figure = \w+\.plot\(", script.read_text(), flags=re.MULTILINE))
    pictures = re.findall(rf"<img src=[^>]*sphx_glr_{script.stem}_\d+\.png", text)
    assert len(pictures) == drawn > 0
    assert "sphx-glr-script-out" in text, "nothing printed"
    assert "Traceback" not in text
