"""What a page of the repository needs to be a page of the site: two kinds of links."""

from __future__ import annotations

import re

# Where sphinx-gallery writes what it makes of the scripts in examples/tutorials.
TUTORIALS = "docs/tutorials"


def as_on_the_site(app, docname, source):
    """Have links to tutorials lead to the pages that these become, and known places be places that Sphinx knows."""
    text = source[0]
    text = re.sub(r"\]\((?:\.\./)*examples/tutorials/(\w+)\.py\)", rf"](/{TUTORIALS}/\1.rst)", text)
    source[0] = re.sub(r'^<a id="([^"]+)"></a>$', r"(\1)=", text, flags=re.MULTILINE)
