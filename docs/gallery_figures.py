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
    fine = re.sub(r"\.png$", "_2_00x.png", path)
    figure = block_vars["example_globals"]["figure"]
    figure.set_size_inches(5.6, 3.6)  # as the others are: smaller, so that letters can be read on a phone
    figure.savefig(path, dpi=100)
    figure.savefig(fine, dpi=200)
    return figure_rst([path], gallery_conf["src_dir"], srcsetpaths=[{0: path, 2.0: fine}])
