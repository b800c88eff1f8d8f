"""Formulas of docstrings as plain HTML: letters, signs, indices and powers. Nothing has to be loaded to show them.

What it does not know is an error of the build, so that no page shows half a formula.
"""

from __future__ import annotations

import re
from html import escape
from html.entities import html5

from docutils import nodes

# All other signs go by their names, which HTML has as well: alpha, Theta, langle, nabla.
SIGNS = {
    "sum": "Σ", "le": " ≤ ", "ge": " ≥ ", "ne": " ≠ ", "max": "max", "min": "min", "exp": "exp", "log": "log",
    "|": "‖", ",": " ", "qquad": "\u2003",
}  # fmt: skip
# One argument: a group in braces, or a single sign.
GROUP = r"(?:\{((?:[^{}]|\{[^{}]*\})*)\}|(\\[A-Za-z]+|[^\s{}\\]))"


def as_html(formula: str) -> str:
    """Write one formula in HTML."""
    text = " ".join(formula.split())
    text = re.sub(r"\\text" + GROUP, lambda m: m[1] or m[2], text)
    text = re.sub(r"\\sqrt ?" + GROUP, lambda m: f"√({m[1]})" if m[1] else f"√{m[2]}", text)
    text = re.sub(r"\\frac" + GROUP + GROUP, lambda m: f"{m[1] or m[2]}/({m[3] or m[4]})", text)
    text = re.sub(r"\\dot ?([A-Z])", "\\1\u0307", text)
    text = escape(text, quote=False)
    for tag, sign in (("sub", "_"), ("sup", r"\^")):
        # From the inside out: an index may have an index.
        while (shorter := re.sub(sign + GROUP, lambda m, t=tag: f"<{t}>{m[1] or m[2]}</{t}>", text)) != text:
            text = shorter
    text = re.sub(r"\\([A-Za-z]+|[|,])", lambda m: SIGNS.get(m[1]) or html5[f"{m[1]};"], text)
    if "\\" in text or "{" in text:
        raise ValueError(f"docs/plain_math.py cannot write {formula!r}: it came to {text!r}.")
    return re.sub(r" +", " ", text).replace("-", "−")


def _inline(translator, node):
    translator.body.append(f'<span class="formula">{as_html(node.astext())}</span>')
    raise nodes.SkipNode


def _block(translator, node):
    translator.body.append(f'<p class="formula">{as_html(node.astext())}</p>')
    raise nodes.SkipNode


def setup(app):
    """Join Sphinx."""
    app.add_html_math_renderer("plain", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
