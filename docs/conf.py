"""How the site is made: ``make docs``.

The source folder is the repository itself, not ``docs/``: a link such as ``../paper/tangent.md`` then leads to the same
page on the site as where the files are read as they are. Nothing is fetched, neither here nor by the pages.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from site_links import TUTORIALS, as_on_the_site  # noqa: E402

project = "flipcert"
author = "the authors of flipcert"
release = re.findall(r'__version__ = "(.+)"', (HERE.parent / "src" / "flipcert" / "__init__.py").read_text())[0]
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "plain_math",
    "table_columns",
]
root_doc = "docs/index"
include_patterns = ["docs/**", "paper/*.md", "paper/results/*.md", "*.md"]
exclude_patterns = [".*", "**/_*", "src", "tests", "benchmarks", "examples", "reproduction*", "demo"]

myst_heading_anchors = 4
suppress_warnings = [
    "config.cache",  # functions in the settings of the gallery are not kept between builds
]

# Classes are told by their docstrings; methods follow on the same page (docs/_templates/autosummary/class.rst).
templates_path = [str(HERE / "_templates")]  # for autosummary, which looks in the source folder
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # whose method it is says the title
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": ["examples/tutorials"],
    "gallery_dirs": [TUTORIALS],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_", "__repr__"),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 3600,
    "remove_config_comments": True,
    "image_srcset": ["2x"],
    "image_scrapers": ("matplotlib", "gallery_figures.figures_of_plots"),
    "write_computation_times": False,
}

html_math_renderer = "plain"
html_theme = "pydata_sphinx_theme"
html_title = "flipcert"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_root"]  # an index.html that leads to docs/index.html
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {
    "docs/start": [],  # it has no pages below it that a sidebar could show
    **{page: [] for page in ("docs/benchmarks", "paper/results/README", "paper/results/peers")},  # wide tables
}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_depth": 3,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
copyright = "the authors of flipcert, BSD-3-Clause"


def setup(app):
    """Markdown as it is read elsewhere becomes Markdown as Sphinx reads it."""
    app.connect("source-read", as_on_the_site)
