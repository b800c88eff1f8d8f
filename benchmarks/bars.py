"""The picture of the page: headlines as bars, in products, on a logarithmic axis; light or dark as the reader is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.headlines import OF_THEIR_OWN, of_page
from benchmarks.records import Record

BARS = Path(__file__).parent.parent / "docs" / "benchmarks.svg"
_TICKS = (0.01, 0.1, 1.0, 10.0)
_LEFT, _WIDTH, _ROW, _TOP = 330, 300, 26, 30
# Blue and orange of Okabe and Ito, which colour-blind readers tell apart on white and on black.
_STYLE = """\
text { font: 13px sans-serif; fill: #333 } .small { font-size: 11px; fill: #555 }
.met { fill: #0072b2 } .missed { fill: #d55e00 } .grid { stroke: #ccc } .one, .target { stroke: #333 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .small { fill: #aaa } .met { fill: #56b4e9 } .missed { fill: #e69f00 }
  .grid { stroke: #444 } .one, .target { stroke: #ddd }
}"""


def draw(records: Sequence[Record], path: Path = BARS) -> None:
    """Write the picture."""
    path.write_text(svg(records))


def svg(records: Sequence[Record]) -> str:
    """Bars from a hundredth of a product on; a stroke where the target is."""
    shown = [(words, record) for words, record in of_page(records) if record.name not in OF_THEIR_OWN]
    bottom = _TOP + _ROW * len(shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 90} {bottom + 48}" role="img">',
        f"<title>Time over that of the product that forms the weights</title><style>{_STYLE}</style>",
    ]
    for tick in _TICKS:
        x, kind = _place(tick), "one" if tick == 1.0 else "grid"
        parts.append(f'<line class="{kind}" x1="{x}" y1="{_TOP - 6}" x2="{x}" y2="{bottom}"/>')
        parts.append(f'<text class="small" x="{x}" y="{_TOP - 12}" text-anchor="middle">{tick:g} ×</text>')
    for number, (words, record) in enumerate(shown):
        y, end = _TOP + _ROW * number, _place(record.measured.median)
        kind = "missed" if record.met is False else "met"
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 17}" text-anchor="end">{escape(words)}</text>')
        parts.append(f'<rect class="{kind}" x="{_LEFT}" y="{y + 5}" width="{end - _LEFT:.1f}" height="16"/>')
        if record.target is not None:
            x = _place(record.target)
            parts.append(f'<line class="target" stroke-width="2" x1="{x}" y1="{y + 2}" x2="{x}" y2="{y + 24}"/>')
        after = max(end, _place(record.target or 0.0)) + 6
        parts.append(f'<text x="{after:.1f}" y="{y + 17}">{record.measured.median:.2g} ×</text>')
    parts.append(
        f'<text class="small" x="{_LEFT}" y="{bottom + 18}">Strokes: what was wanted.</text>'
        f'<rect class="met" x="{_LEFT}" y="{bottom + 26}" width="11" height="11"/>'
        f'<text class="small" x="{_LEFT + 16}" y="{bottom + 36}">reached</text>'
        f'<rect class="missed" x="{_LEFT + 76}" y="{bottom + 26}" width="11" height="11"/>'
        f'<text class="small" x="{_LEFT + 92}" y="{bottom + 36}">missed</text></svg>'
    )
    return "\n".join(parts) + "\n"


def _place(value: float) -> float:
    """Where a number of products lies."""
    low, high = math.log10(0.004), math.log10(20.0)
    share = (math.log10(max(value, 0.004)) - low) / (high - low)
    return round(_LEFT + _WIDTH * min(share, 1.0), 1)
