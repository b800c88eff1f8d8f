"""What the page does: tabs, legends, numbers under the pointer, all from the keyboard too, and without scripts."""

from __future__ import annotations

import pytest

import flipcert
from flipcert.report.words import percent


def chosen(page):
    """The selected tab and the visible panel; there is one of each."""
    selected = page.locator("[role=tab][aria-selected=true]")
    visible = page.locator("[role=tabpanel]:visible")
    assert selected.count() == visible.count() == 1
    assert selected.get_attribute("aria-controls") == visible.get_attribute("id")
    assert selected.get_attribute("tabindex") in (None, "0")
    assert page.locator("[role=tab][tabindex='0'], [role=tab]:not([tabindex])").count() == 1
    return selected.inner_text()


def test_tabs(visit, results):
    names = [result.name for result in results["sweep"]]
    with visit("sweep") as page:
        best = max(results["sweep"], key=lambda r: r.certificates.certified_accuracy(r.labels, range(4)).mean())
        assert chosen(page) == best.name
        page.get_by_role("tab", name=names[2], exact=True).click()
        assert chosen(page) == names[2]
        keys = ["ArrowRight", "ArrowLeft", "End", "ArrowRight", "ArrowLeft", "Home"]
        for key, place in zip(keys, [3, 2, -1, 0, -1, 0], strict=True):
            name = names[place]
            page.keyboard.press(key)
            assert chosen(page) == name
            assert page.evaluate("document.activeElement.innerText") == name
        page.get_by_role("link", name=names[4], exact=True).click()
        page.wait_for_function("document.querySelector('#result-4').checkVisibility()")
        assert chosen(page) == names[4]
        assert page.get_by_role("tab", name=names[4], exact=True).is_visible()
    with visit("sweep", hash_="#result-1") as page:
        assert chosen(page) == names[1]


@pytest.mark.parametrize("name", ["digits", "sweep", "large", "unlabelled", "trusted", "sources"])
@pytest.mark.parametrize("width", [1000, 375])
def test_pointing_at_a_curve_reads_it(visit, results, name, width):
    with visit(name, width=width) as page:
        figure = page.locator("figure:visible").filter(has=page.locator("[data-curves]"))
        number = (
            page.locator("[role=tabpanel]:visible").get_attribute("id") if name in ("sweep", "sources") else "result-0"
        )
        result = results[name][int(number.removeprefix("result-"))]
        c = result.certificates
        counts = (c.radius >= 0) if result.labels is None else c.correct(result.labels)
        area = figure.locator(".plot > svg")
        area.scroll_into_view_if_needed()
        box = area.bounding_box()
        of = "of those not trusted" if name == "trusted" else "of all"
        seen = set()
        for place in (0.01, 0.3, 0.62, 0.99):
            page.mouse.move(box["x"] + place * box["width"], box["y"] + 0.4 * box["height"])
            flips = int(figure.locator("label [data-flips]").inner_text().replace(",", ""))
            seen.add(flips)
            radii = [c.radius, c.radius_upper] + ([] if c.blackbox_radius is None else [c.blackbox_radius])
            shown = figure.locator(".probe dd").all_inner_texts()
            assert shown == [percent(flipcert.certified_accuracy(counts, radius, flips)) for radius in radii]
            assert f"{percent(flips / (c.n_sources or c.n_attackable))} {of}" in figure.locator("label").inner_text()
            cursor = figure.locator(".cursor").bounding_box()
            stride = max(1, flips)
            assert abs(cursor["x"] - (box["x"] + place * box["width"])) <= box["width"] / 2 / min(stride, 8) + 2
        assert len(seen) > 2


def test_the_slider_works_from_the_keyboard(visit, results):
    with visit("digits") as page:
        c, y = results["digits"][0].certificates, results["digits"][0].labels
        assert page.locator("label [data-flips]").inner_text() == str(c.median_certified_robustness(y))
        slider = page.get_by_role("slider", name="Flipped labels")
        slider.focus()
        page.keyboard.press("Home")
        assert page.locator("label [data-flips]").inner_text() == "0"
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        assert page.locator("label [data-flips]").inner_text() == "3"
        assert page.locator(".probe dd").first.inner_text() == percent(c.certified_accuracy(y, 3))
        assert slider.get_attribute("aria-valuetext") == "3 flipped labels"


def test_legends_hide_and_show(visit):
    with visit("sweep") as page:
        figure = page.locator("figure").first
        button = figure.get_by_role("button", name="reg 0.1", exact=True)
        marks = figure.locator(".mark[data-series='0']")
        assert marks.count() == 3
        assert marks.first.is_visible()
        button.focus()
        page.keyboard.press("Enter")
        assert button.get_attribute("aria-pressed") == "false"
        hidden = figure.locator("[data-series='0']").all()
        assert len(hidden) >= 6
        assert not any(mark.is_visible() for mark in hidden)
        assert figure.locator(".mark[data-series='1']").first.is_visible()
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert marks.first.is_visible()


def test_marks_and_bars_are_read_out(visit):
    with visit("sweep") as page:
        figure = page.locator("figure").first
        for mark in figure.locator(".mark").all()[:4]:
            mark.locator("circle").hover(force=True)
            said = figure.locator(".readout").inner_text()
            assert "half of the correct predictions withstand" in said
    with visit("digits") as page:
        figure = page.locator("figure").nth(1)
        bars = figure.locator("rect.bar")
        assert bars.count() > 3
        for bar in bars.all()[:4]:
            bar.hover()
            assert figure.locator(".readout").inner_text() == bar.locator("title").text_content()


@pytest.mark.parametrize("name", ["digits", "sweep"])
def test_without_scripts_everything_is_there(visit, results, name):
    with visit(name, scripts=False) as page:
        assert page.locator("h1").is_visible()
        assert page.locator("[data-curves]:visible").count() == len(results[name])
        assert page.locator(".probe .always:visible").count() == len(results[name])
        assert page.get_by_role("tab").count() == 0
        assert page.get_by_role("slider").count() == 0


def test_pictures_are_shown(visit):
    with visit("digits") as page:
        pictures = page.locator("svg.picture")
        assert pictures.count() > 20
        assert all(picture.bounding_box()["width"] > 20 for picture in pictures.all()[:10])
        assert page.get_by_role("img", name="test row").count() > 5
        # A symbol that is not found would leave an empty picture.
        assert page.evaluate(
            "[...document.querySelectorAll('.picture use')].every(u => document.querySelector(u.getAttribute('href')))"
        )


def test_structure_for_screen_readers(visit):
    with visit("sweep") as page:
        assert page.locator("h1").count() == 1
        assert page.locator("html").get_attribute("lang") == "en"
        for attribute in ("aria-labelledby", "aria-controls"):
            named = [thing.get_attribute(attribute) for thing in page.locator(f"[{attribute}]").all()]
            assert named
            assert all(page.locator(f"[id='{name}']").count() == 1 for name in named)
        for role in ("button", "tab", "slider", "img", "region"):
            for thing in page.get_by_role(role).all():
                assert thing.get_attribute("aria-label") or thing.text_content().strip()
