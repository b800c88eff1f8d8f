"""A plot area as inline SVG. Lines stretch with the page; text, dots and the width of strokes do not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

Scale = Callable[[float], float]  # a value to its place, 0 to 1
_GRID = 1000  # places across the stretched layer


def element(name: str, /, *content: str, **attributes: object) -> Markup:
    """One element; text and attributes are escaped, attributes that are None left out, `_` in their names is `-`."""
    given = [(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None]
    inside = Markup("").join(escape(part) for part in content)
    opening = "".join(f' {key}="{escape(str(value))}"' for key, value in given)
    return Markup(f"<{name}{opening}>{inside}</{name}>" if content or name == "div" else f"<{name}{opening}/>")


def linear(highest: float) -> Scale:
    """Scale from 0 to ``highest``."""
    return lambda value: value / highest


def logarithmic(lowest: float, highest: float) -> Scale:
    """Scale of equal ratios, with the ends a little inside."""
    width = math.log(highest / lowest) or 1.0
    return lambda value: 0.03 + 0.94 * math.log(value / lowest) / width


def round_ticks(highest: float, most: int) -> list[int]:
    """Whole numbers from 0 up to ``highest``, 1, 2 or 5 times a power of ten apart, at most ``most`` steps."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if highest / step <= most:
                return list(range(0, int(highest) + 1, step))
        power *= 10


class Plot:
    """A plot under construction. Marks carry a `series`, by which a legend shows and hides them."""

    def __init__(self, x: Scale, y: Scale) -> None:
        self.x, self.y = x, y
        self._back: list[Markup] = []
        self._stretched: list[Markup] = []
        self._front: list[Markup] = []

    def grid(self, ticks: Sequence[tuple[float, str]], title: str) -> None:
        """Horizontal lines with their values, and the title of the vertical axis above them."""
        for value, label in ticks:
            place = _percent(1 - self.y(value))
            style = "grid" if value else "grid floor"
            self._back.append(element("line", class_=style, x1="0", x2="100%", y1=place, y2=place))
            self._back.append(element("text", label, class_="tick", x="0", y=place, dx="-8", dy=".32em"))
        self._back.append(element("text", title, class_="axis", x="0", y="0", dx="-48", dy="-14"))

    def base(self, ticks: Sequence[tuple[float, str, str]], title: str, *, spare: bool = True) -> None:
        """Values along the horizontal axis, each with a remark below, and its title.

        Every other one is left out on narrow screens (``spare``).
        """
        for i, (value, label, remark) in enumerate(ticks):
            place = _percent(self.x(value))
            lines = [element("text", label, x=place, y="100%", dy="20")]
            lines += [element("text", remark, class_="remark", x=place, y="100%", dy="35")] if remark else []
            kind = "tick below spare" if spare and i % 2 and len(ticks) > 4 else "tick below"
            self._back.append(element("g", *lines, class_=kind))
        remarks = any(remark for _, _, remark in ticks)
        self._back.append(element("text", title, class_="axis below", x="50%", y="100%", dy="54" if remarks else "40"))

    def line(self, points: Sequence[tuple[float, float]], style: str, series: int, *, steps: bool = False) -> None:
        """A line through points, straight or (``steps``) level until the next point."""
        places = [(round(_GRID * self.x(x)), round(_GRID * (1 - self.y(y)))) for x, y in points]
        self._stretched.append(element("path", d=_path(places, steps), class_=f"line {style}", data_series=series))

    def area(self, flips: Sequence[float], low: Sequence[float], high: Sequence[float], series: int) -> None:
        """The area between two lines."""
        there = [(round(_GRID * self.x(x)), round(_GRID * (1 - self.y(y)))) for x, y in zip(flips, high, strict=True)]
        back = [(round(_GRID * self.x(x)), round(_GRID * (1 - self.y(y)))) for x, y in zip(flips, low, strict=True)]
        outline = _path(there + back[::-1], False) + "z"
        self._stretched.append(element("path", d=outline, class_="area", data_series=series))

    def bar(self, left: float, right: float, low: float, high: float, style: str, said: str, series: int) -> None:
        """A bar between two values, with what to say about it."""
        x, y = self.x(left), 1 - self.y(high)
        box = {"x": _percent(x), "y": _percent(y)}
        box |= {"width": _percent(self.x(right) - x), "height": _percent(1 - self.y(low) - y)}
        title = element("title", said)
        self._back.append(element("rect", title, **box, class_=style, data_series=series))

    def dot(self, x: float, y: float, style: str, said: str, series: int, shape: str = "●") -> None:
        """A mark at a point, with what to say about it."""
        across, down = _percent(self.x(x)), _percent(1 - self.y(y))
        mark = element("text", shape, x=across, y=down, dy=".35em")
        # A finger is wider than a mark.
        target = element("circle", cx=across, cy=down, r="13", class_="target")
        title = element("title", said)
        self._front.append(element("g", title, target, mark, class_=f"mark {style}", data_series=series))

    def text(
        self, x: float, y: float, content: str, style: str = "", series: int | None = None, dx: int = 0, dy: int = 0
    ) -> None:
        """A label at a point, moved by some pixels."""
        place = {"x": _percent(self.x(x)), "y": _percent(1 - self.y(y)), "dx": dx or None, "dy": dy or None}
        self._front.append(element("text", content, **place, class_=f"label {style}", data_series=series))

    def rule(self, x: float, style: str) -> None:
        """A vertical line over the whole height."""
        place = _percent(self.x(x))
        self._front.append(element("line", class_=style, x1=place, x2=place, y1="0", y2="100%"))

    def render(self, description: str, style: str = "") -> Markup:
        """The plot as one picture with a description."""
        stretched = element(
            "svg", *self._stretched, viewBox=f"0 0 {_GRID} {_GRID}", aria_hidden="true", preserveAspectRatio="none",
            width="100%", height="100%",
        )  # fmt: skip
        picture = element("svg", *self._back, stretched, *self._front, role="img", aria_label=description)
        return element("div", picture, class_=f"plot {style}".strip())


def _percent(place: float) -> str:
    return f"{100 * place:.2f}".rstrip("0").rstrip(".") + "%"


def _path(places: Sequence[tuple[int, int]], steps: bool) -> str:
    """Path through places, in relative moves, level runs joined."""
    (x, y), *rest = places
    path, run = [f"M{x} {y}"], 0
    for next_x, next_y in rest:
        across, down = next_x - x, next_y - y
        x, y = next_x, next_y
        if down == 0:
            run += across
            continue
        if steps:
            path.append(f"h{run + across}v{down}")
        else:
            path.append((f"h{run}" if run else "") + f"l{across} {down}")
        run = 0
    return "".join(path) + (f"h{run}" if run else "")
