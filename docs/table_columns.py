"""Columns of tables by what they hold: numbers stand on the right, and sentences have room."""

from __future__ import annotations

import re

from docutils import nodes

NUMBER = re.compile(r"[-+−<≤≥~]?\s*[\d.,]+\s*(%|×|s|ms|GB|MB)?")
# Characters of a cell from which it is a sentence; and columns of a table from which sentences become narrow.
SENTENCE, MANY = 40, 3


def _mark(app, doctree, docname):
    """Give cells of a column a class, ``number`` or ``sentence``, that the style sheet knows."""
    for group in doctree.findall(nodes.tgroup):
        rows = [row for part in group.findall(nodes.tbody) for row in part.children]
        for cells in zip(*(row.children for row in group.findall(nodes.row)), strict=False):
            texts = [cell.astext().strip() for cell in cells if cell.parent in rows]
            if any(texts) and all(NUMBER.fullmatch(text) for text in texts if text):
                kind = "number"
            elif group["cols"] >= MANY and max(map(len, texts), default=0) > SENTENCE:
                kind = "sentence"
            else:
                continue
            for cell in cells:
                cell["classes"].append(kind)


def setup(app):
    """Join Sphinx."""
    app.connect("doctree-resolved", _mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
