"""Pictures of tutorials that pyplot has no part in: ``figure = certificates.plot()``."""

from __future__ import annotations

import re

from sphinx_gallery.scrapers import figure_rst


def figures_of_plots(block, block_vars, gallery_conf):
    """Save the figure that a block of code asked certificates for."""
    _, code, _ = block
    if not re.search(r"^figure = \w+\.plot\(", code, flags=re.MULTILINE):
        return ""
    path = next(block_vars["image_path_iterator"])
    block_vars["example_globals"]["figure"].savefig(path, dpi=100)
    return figure_rst([path], gallery_conf["src_dir"])
