"""The documentation says what is true: README output, public names, docstrings, versions."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import sys
import tomllib
from operator import attrgetter

import pytest

import flipcert
from flipcert import kernels, plots
from tests.helpers.lower_bounds import TESTED_AS, lower_bounds, requirements
from tests.helpers.paths import ROOT

PUBLIC = {name: getattr(flipcert, name) for name in flipcert.__all__ if not inspect.ismodule(getattr(flipcert, name))}
PUBLIC |= {f"kernels.{name}": getattr(kernels, name) for name in kernels.__all__}
PUBLIC |= {f"plots.{name}": getattr(plots, name) for name in plots.__all__}


@pytest.mark.parametrize(
    ("page", "place", "example"),
    [
        ("README.md", 0, "quickstart"),
        ("docs/verifiers.md", 0, "own_verifier"),
        ("docs/verifiers.md", 1, "clean_label"),
        ("docs/smoothers.md", 0, "random_forest"),
        ("docs/smoothers.md", 1, "kernel_density"),
        ("docs/smoothers.md", 2, "preferences"),
        ("docs/audit.md", 0, "check_labels"),
        ("docs/cli.md", 0, "table"),
    ],
)
def test_pages_show_the_examples_and_their_real_output(page, place, example, capsys):
    source = (ROOT / "examples" / f"{example}.py").read_text()
    blocks = re.findall(r"```(?:python|text)\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    code, output = blocks[2 * place : 2 * place + 2]
    assert code in source
    runpy.run_path(str(ROOT / "examples" / f"{example}.py"))
    assert capsys.readouterr().out == output


def test_the_page_on_networks_shows_the_example_and_output_of_its_kind(capsys):
    """What training makes of a network differs a little from machine to machine, so numbers may."""
    source = (ROOT / "examples" / "own_network.py").read_text()
    page = (ROOT / "docs" / "smoothers.md").read_text().partition("## Fine-tuning a network of your own")[2]
    code, output = re.findall(r"```(?:python|text)\n(.*?)```", page, flags=re.DOTALL)[:2]
    assert code in source
    runpy.run_path(str(ROOT / "examples" / "own_network.py"))
    printed = capsys.readouterr().out
    assert re.sub(r"[\d.]+ (correct|flips)", r"\1", printed) == re.sub(r"[\d.]+ (correct|flips)", r"\1", output)
    numbers = [float(number) for number in re.findall(r"([\d.]+) correct", printed)]
    stated = [float(number) for number in re.findall(r"([\d.]+) correct", output)]
    assert all(abs(a - b) <= 0.02 for a, b in zip(numbers, stated, strict=True))


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_names_are_documented(name):
    page = (ROOT / "docs" / "api.md").read_text()
    assert f"`{name}`" in page or f"`flipcert.{name}`" in page
    thing = PUBLIC[name]
    documentation = inspect.getdoc(thing)
    assert documentation
    assert "Examples\n--------\n" in documentation
    assert ">>> " in documentation
    assert "See Also\n--------\n" in documentation
    if inspect.isclass(thing):
        methods = [m for n, m in inspect.getmembers(thing, inspect.isfunction) if not n.startswith("_")]
        methods = [m for m in methods if m.__module__.startswith("flipcert")]
    else:
        methods = [thing]
    for method in methods:
        documentation = inspect.getdoc(method)
        assert documentation, method
        parameters = [p for p in inspect.signature(method).parameters.values() if p.name != "self"]
        # Methods of kernels are called by others; their base class explains them.
        explained = name.startswith("kernels.") or name == "Witness"
        if parameters and not explained:
            assert "Parameters\n----" in documentation, method
            for parameter in parameters:
                assert re.search(rf"(^|\W){re.escape(parameter.name)}\W", documentation), (method, parameter.name)
        assert not re.search(r"Parameters\n(?!-)", documentation)


def used_by_people(name):
    """Methods that are called by name: all of what comes back, and what estimators have as scikit-learn's do."""
    thing = PUBLIC[name]
    methods = [n for n, _ in inspect.getmembers(thing, callable) if not n.startswith("_")]
    if hasattr(thing, "certify"):
        return {"fit", "predict", "decision_function", "predict_proba", "replay", "certify", "worst_flips"} & {*methods}
    # Those of the engine, which the others call.
    return {*methods} - {"of", "union", "some", "require_rows"}


@pytest.mark.parametrize(
    "name",
    [n for n in PUBLIC if hasattr(PUBLIC[n], "certify")]
    + ["Annotations", "AuditPlan", "Certificates", "CollectiveCertificate", "Witness"],
)
def test_methods_that_people_call_have_examples(name):
    methods = used_by_people(name)
    assert len(methods) >= 2
    for method in methods:
        assert re.search(r"Examples\n-+\n(.|\n)*>>> ", inspect.getdoc(getattr(PUBLIC[name], method))), method


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_see_also_names_what_there_is(name):
    section = re.search(r"See Also\n-+\n((?:.+\n)+)", inspect.getdoc(PUBLIC[name]) + "\n")[1]
    near = kernels if name.startswith("kernels.") else plots if name.startswith("plots.") else flipcert
    for other in re.findall(r"^([\w.]+) : \S.*\.$", section, flags=re.MULTILINE):
        place = flipcert if other.startswith("flipcert.") else near
        found = attrgetter(other.removeprefix("flipcert."))(place)
        assert found is not PUBLIC[name]
    assert section.count("\n") == len(re.findall(r"^[\w.]+ : ", section, flags=re.MULTILINE))


def test_fit_returns_self():
    fits = [thing.fit for thing in PUBLIC.values() if inspect.isclass(thing) and hasattr(thing, "fit")]
    assert len(fits) > 10
    assert {fit.__annotations__["return"] for fit in fits} == {"Self"}


@pytest.mark.parametrize("name", [n for n in PUBLIC if inspect.isclass(PUBLIC[n]) and hasattr(PUBLIC[n], "get_params")])
def test_parameters_of_estimators_are_documented(name):
    thing = PUBLIC[name]
    documentation = inspect.getdoc(thing)
    for parameter in inspect.signature(thing).parameters:
        assert re.search(rf"^[\w, ]*\b{parameter}\b[\w, ]* : ", documentation, flags=re.MULTILINE), parameter


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "paper").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            place = (page.parent / target).resolve()
            # A source distribution comes without the paper.
            if (ROOT / "paper").exists() or not place.is_relative_to(ROOT / "paper"):
                assert place.exists(), (page.name, target)


def test_readme_changelog_citation_and_version_agree():
    release, _, progress = flipcert.__version__.partition(".dev")
    headings = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert headings[0] == (f"{release} (in progress)" if progress else release)
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", heading) for heading in headings[1:])
    numbers = [tuple(map(int, heading.split()[0].split("."))) for heading in headings]
    assert numbers == sorted(set(numbers), reverse=True)
    assert f"This is {release}{', in progress' if progress else ''}." in (ROOT / "README.md").read_text()

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = dict(re.findall(r"^([\w-]+): (.+)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE))
    assert citation["version"] == flipcert.__version__
    assert (citation["title"], citation["license"]) == (project["name"], project["license"])
    assert citation["abstract"] == project["description"] == flipcert.__doc__
    assert citation["repository-code"] == project["urls"]["Homepage"]


def test_every_change_that_a_newcomer_might_make_touches_three_files_at_most():
    """Recipes are a promise about the layout: their files exist, and there are few of them."""
    recipes = (ROOT / "CONTRIBUTING.md").read_text().partition("## How to add")[2].split("\n### ")[1:]
    assert len(recipes) == 10
    for recipe in recipes:
        (files,) = re.findall(r"^Files: (.+)$", recipe, flags=re.MULTILINE)
        paths = re.findall(r"`([^`]+)`", files)
        assert 1 <= len(paths) <= 3, recipe
        for path in paths:
            assert "NAME" in path or (ROOT / "src" / "flipcert" / path).exists(), path
        for test in re.findall(r"`(tests/[\w/]+\.py)`", recipe):
            assert (ROOT / test).exists(), test


def test_readme_and_citation_name_the_same_paper():
    (title,) = re.findall(r"^    title: (.+)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    assert f"*{title}*" in " ".join((ROOT / "README.md").read_text().split())


def test_supported_pythons_are_those_that_are_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = [found for name in project["classifiers"] for found in re.findall(r"Python :: (3\.\d+)", name)]
    (tested,) = re.findall(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "test.yml").read_text())
    assert [f'"{version}"' for version in stated] == tested.split(", ")
    assert project["requires-python"] == f">={stated[0]}"


def test_architecture_names_every_package():
    page = (ROOT / "docs" / "architecture.md").read_text()
    for package in (ROOT / "src" / "flipcert").iterdir():
        if package.is_dir() and package.name != "__pycache__":
            assert f"`{package.name}/`" in page, package.name


def test_tests_lie_in_folders_that_mirror_the_packages():
    packages = {file.parent.name for file in (ROOT / "src" / "flipcert").glob("*/__init__.py")}
    folders = {file.parent.name for file in (ROOT / "tests").glob("*/__init__.py")}
    assert folders == packages | {"goldens", "helpers", "project", "slow"}
    assert not list((ROOT / "tests").glob("test_*.py"))


def imported(nodes):
    """Top-level packages of the import statements among some nodes."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module.split(".")[0])
    return found


def test_dependencies_are_those_that_are_imported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=]", requirement)[0] for requirement in project["dependencies"]}
    at_once, anywhere = set(), set()
    for file in (ROOT / "src").rglob("*.py"):
        module = ast.parse(file.read_text())
        at_once |= imported(module.body)
        anywhere |= imported(ast.walk(module))
    names = {"sklearn": "scikit-learn"}
    third_party = {names.get(name, name) for name in at_once} - set(sys.stdlib_module_names) - {"flipcert"}
    assert third_party <= declared
    assert declared <= {names.get(name, name) for name in anywhere}


def test_stated_versions_are_those_of_the_package():
    """What pages and the Makefile say about versions is what pyproject.toml promises, and what is tested."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    python = project["project"]["requires-python"].removeprefix(">=")
    bounds = lower_bounds()
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    stated = [found for page in pages for found in re.findall(r"Python (\d+\.\d+) or newer", page.read_text())]
    assert set(stated) == {python} == {project["tool"]["mypy"]["python_version"]}
    for page in pages:
        for package, version in re.findall(r"\b([\w-]+) ?>= ?([\d.]+\d)", page.read_text()):
            assert bounds.get(package, version) == version, (page.name, package)
    makefile = (ROOT / "Makefile").read_text()
    assert set(re.findall(r"torch==([\d.]+)", makefile)) == {TESTED_AS["torch"]}


def test_workflows_only_call_targets_that_the_makefile_has():
    """What is tested elsewhere is what anybody can run here."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for workflow in (ROOT / ".github" / "workflows").iterdir():
        content = workflow.read_text()
        commands = re.findall(r"\brun: *(\S.*)", content)
        lists = re.findall(r"\btarget: (\[[^]]*\]|[\w-]+)", content)
        called = {target for names in lists for target in re.findall(r"[\w-]+", names)}
        called |= {command.removeprefix("make ") for command in commands} - {"${{ matrix.target }}"}
        assert called
        assert called <= targets, workflow.name


def test_lower_bounds_are_exact_requirements(tmp_path):
    printed = requirements()
    assert "typer==" in printed
    assert f"torch=={TESTED_AS['torch']}" in printed.split()
    for line in printed.split():
        assert re.fullmatch(r"[\w-]+==[\d.]+", line), line
    for wrong, said in (("numpy", "is no name with a lower bound"), ("pandas>=1", "pandas has two lower bounds")):
        project = (ROOT / "pyproject.toml").read_text().replace('"cloudpickle>=3"', f'"{wrong}"')
        (tmp_path / "pyproject.toml").write_text(project)
        with pytest.raises(ValueError, match=said):
            lower_bounds(tmp_path / "pyproject.toml")
