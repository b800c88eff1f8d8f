"""Pages of all kinds, and a browser that notices every error and every request."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

import flipcert
from flipcert.report import write_report
from tests.helpers.collective import collective_of
from tests.helpers.results import NASTY, described, made_up, real_result, some_trusted, sweep, under

SCREENSHOTS = Path(__file__).parent / "screenshots"


def _installed():
    """The distribution's Chromium; None leaves the choice to playwright."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        # Containers have no user namespaces to build a sandbox from; the pages are our own.
        browser = playwright.chromium.launch(executable_path=_installed(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def results():
    """Results behind each page."""
    digits = real_result(flipcert.KernelRidge(), images=True)
    nasty = made_up(classes=NASTY, name=NASTY[0], model={"model": NASTY[1], NASTY[2]: NASTY[3]})
    return {
        "digits": [digits],
        "sweep": sweep(images=True),
        "large": [made_up(12_000, 50_000, [f"class {i}" for i in range(1000)])],
        "names": [nasty, described(replace(nasty, name=NASTY[7]), partitions=2)],
        "single": [made_up(1, 30, 2)],
        "beyond": [made_up(beyond=0.3)],
        "unlabelled": [replace(made_up(exact=0.2), labels=None, name="")],
        "bare": [replace(made_up(votes=False), attacks=())],
        "trusted": [some_trusted(made_up(beyond=0.1), 120)],
        "sources": [under(made_up(beyond=0.1), "sources"), by_mail(under(made_up(seed=1, name="another"), "sources"))],
        "threats": [under(made_up(name=threat), threat) for threat in ("deletions", "insertions", "edits")],
        "sealed": [some_trusted(made_up(beyond=0.1), 0)],
        "collective": [replace(digits, collective=collective_of(digits, (2, 4, 8)))],
        "collective-names": [
            attacked(made_up(classes=NASTY)),
            attacked(made_up(seed=1, name="another", classes=NASTY)),
        ],
        "collective-sources": [attacked(under(made_up(), "sources", 250), 1, 3, 5)],
        "constant": [one_answer_for_all(made_up()), made_up(name="another")],
        "many": [
            made_up(seed=i, name=f"svm {i}", model={"partitions": n, "reg": i % 8})
            for i, n in enumerate(n for n in (1, 2, 5, 10, 20) for _ in range(8))
        ],
    }


def attacked(result, *budgets):
    """The same result, with what one attack on all points does."""
    return replace(result, collective=collective_of(result, budgets or (10, 50, 100), at_most=0.3, at_least=0.15))


def one_answer_for_all(result):
    """The same result, if one class with a long name had been predicted for all points."""
    answer = np.full(len(result.certificates), result.certificates.prediction[0])
    return replace(result, certificates=replace(result.certificates, prediction=answer))


def by_mail(result):
    """The same result, if its sources were known by their addresses."""
    addresses = (f"annotator.{i}@labels.example.org" for i in range(len(result.powers)))
    powers = (replace(power, source=own) for power, own in zip(result.powers, addresses, strict=True))
    return replace(result, powers=tuple(powers))


@pytest.fixture(scope="session")
def pages(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, values in results.items():
        write_report(values, folder / f"{name}.html", title=NASTY[0] if name == "names" else f"Report: {name}")
    return {name: (folder / f"{name}.html").as_uri() for name in results}


@pytest.fixture
def visit(browser, pages):
    """Open a page in a fresh browser without a network; whatever it says or asks for is an error."""

    @contextmanager
    def opened(name, *, width=1000, scheme="light", media="screen", hash_="", scripts=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts, offline=True
        )
        page = context.new_page()
        troubles, requests = [], []
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.emulate_media(media=media)
        page.goto(pages[name] + hash_)
        try:
            yield page
            assert troubles == []
            assert {url.split("#")[0] for url in requests if not url.startswith("data:")} == {pages[name]}
        finally:
            context.close()

    return opened
