"""How the page looks: drawn, legible, within its width, in light, dark, on paper and on a phone."""

from __future__ import annotations

import io

import pytest
from matplotlib import image

from tests.slow.browser.conftest import SCREENSHOTS

NAMES = [
    "digits",
    "sweep",
    "large",
    "names",
    "single",
    "beyond",
    "unlabelled",
    "bare",
    "many",
    "trusted",
    "sources",
    "threats",
    "collective",
    "collective-names",
    "collective-sources",
    "sealed",
    "constant",
]
MODES = {
    "light": {},
    "dark": {"scheme": "dark"},
    "print": {"media": "print", "width": 720},
    "phone": {"width": 375},
    "phone-dark": {"width": 375, "scheme": "dark"},
}

EVERY_PLOT = """() => [...document.querySelectorAll(".plot > svg")].filter(p => p.checkVisibility()).map(plot => {
  const box = plot.getBoundingClientRect();
  const marks = [...plot.querySelectorAll("path, rect, .mark")].map(mark => {
    const b = mark.getBoundingClientRect();
    return [b.width, b.height];
  });
  return {width: box.width, height: box.height, marks, name: plot.getAttribute("aria-label")};
})"""

TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter(e =>
  e.checkVisibility() && !e.closest(".scroll, .album, .unseen, defs") &&
  (e.getBoundingClientRect().right > innerWidth + 0.5 || e.getBoundingClientRect().left < -0.5)
).map(e => e.outerHTML.slice(0, 200))"""

# Texts of a plot that lie upon each other; a label may cross the line it belongs to, but no other text.
OVERLAPS = """() => [...document.querySelectorAll(".plot > svg")].flatMap(plot => {
  const texts = [...plot.querySelectorAll("text")].filter(t => t.checkVisibility() && !t.closest(".mark"));
  const boxes = texts.map(t => t.getBoundingClientRect());
  const found = [];
  for (let i = 0; i < texts.length; i++) for (let j = 0; j < i; j++) {
    const a = boxes[i], b = boxes[j];
    // Lines of text have air above and below.
    if (a.left < b.right && b.left < a.right && a.top + 2 < b.bottom - 2 && b.top + 2 < a.bottom - 2)
      found.push([texts[i].textContent, texts[j].textContent]);
  }
  return found;
})"""

# Contrast of text with what is behind it, by the formula of the accessibility guidelines (WCAG 2).
CONTRASTS = """() => {
  const parse = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const linear = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const behind = e => {
    if (!e) return [255, 255, 255, 1];
    const own = parse(getComputedStyle(e).backgroundColor);
    return own[3] === 1 ? own : over(own, behind(e.parentElement));
  };
  const poor = [];
  for (const e of document.querySelectorAll("body *")) {
    if (!e.checkVisibility() || e.closest(".unseen")) continue;
    const style = getComputedStyle(e), svg = e instanceof SVGElement;
    const words = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    const stroke = svg && e.matches(".line, .spread:not(.thick)");
    const bar = svg && e.matches("rect.bar");
    if (!(words && !["title", "SCRIPT", "STYLE"].includes(e.tagName)) && !stroke && !bar) continue;
    const ground = behind(svg ? e.closest("div, td") : e);
    const ink = over(parse(stroke ? style.stroke : svg ? style.fill : style.color), ground);
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (stroke || bar ? 3 : 4.5)) poor.push([ratio, e.outerHTML.slice(0, 120)]);
  }
  return poor;
}"""


def tabs_of(page):
    """Each tab in turn, or the page as it is."""
    tabs = page.get_by_role("tab").all()
    if not tabs or not tabs[0].is_visible():
        yield page
    for tab in tabs[:6] if tabs and tabs[0].is_visible() else []:
        tab.click()
        yield page


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", MODES)
def test_every_plot_is_drawn_and_nothing_sticks_out(visit, name, mode):
    with visit(name, **MODES[mode]) as page:
        for _ in tabs_of(page):
            plots = page.evaluate(EVERY_PLOT)
            assert len(plots) >= (0 if name == "sealed" else 2)  # where nothing can be flipped, there is no plot
            for plot in plots:
                assert plot["width"] > 200, plot["name"]
                assert plot["height"] > 100, plot["name"]
                assert plot["marks"], plot["name"]
                assert all(width > 0 or height > 0 for width, height in plot["marks"]), plot["name"]
            assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
            assert page.evaluate(TOO_WIDE) == []
            assert page.evaluate(OVERLAPS) == []
        assert page.title() != "broken"


@pytest.mark.parametrize("name", ["digits", "sweep", "many", "names", "constant"])
@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_text_and_lines_stand_out(visit, name, mode):
    with visit(name, **MODES[mode]) as page:
        assert page.evaluate(CONTRASTS) == []


@pytest.mark.parametrize("name", ["digits", "sweep", "large", "unlabelled"])
def test_screenshots(visit, name):
    """Pictures for people to look at; here only that they are not blank, and dark where they should be."""
    SCREENSHOTS.mkdir(exist_ok=True)
    for mode, options in MODES.items():
        with visit(name, **options) as page:
            data = page.screenshot(full_page=True)
            (SCREENSHOTS / f"{name}-{mode}.png").write_bytes(data)
            pixels = image.imread(io.BytesIO(data))[..., :3]
            assert (pixels[0, 0].mean() < 0.2) == ("dark" in mode)
            assert pixels.std() > 0.05


def test_tables_on_a_phone(visit):
    """Names of sources wrap, so that what these can do is in sight; comparisons scroll in a box of their own."""
    widths = "box => [box.scrollWidth, box.clientWidth, getComputedStyle(box).overflowX]"
    with visit("sources", width=390) as page:
        inner, outer, overflow = page.locator(".scroll:has(.comparison)").first.evaluate(widths)
        assert (inner > outer, overflow) == (True, "auto")
        for _ in tabs_of(page):
            inner, outer, _ = page.locator(".scroll:has(.givers):visible").evaluate(widths)
            assert inner <= outer


def test_paper_has_what_the_screen_has(visit, browser):
    with visit("sweep", media="print") as page:
        assert not page.get_by_role("tablist").is_visible()
        assert not page.locator("input").first.is_visible()
        assert page.locator(".panel:visible").count() == 1
        assert page.locator(".probe:visible .always").first.is_visible()
        assert page.pdf().startswith(b"%PDF")
