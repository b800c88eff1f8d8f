"use strict";
// The page is complete without this: it adds tabs, legends that hide a series, and numbers under the pointer.

function percent(share) {
  const value = 100 * share;
  if (value === 0 || value === 100) return `${value} %`;
  if (value > 99.94) return "over 99.9 %";
  return `${value < 0.095 ? Number(value.toPrecision(1)) : value.toFixed(1)} %`;
}

for (const plot of document.querySelectorAll("[data-curves]")) {
  const { stride, labels, of, made, points, counts } = JSON.parse(plot.dataset.curves);
  const figure = plot.closest("figure");
  const area = plot.querySelector(".plot > svg");
  const cursor = plot.querySelector(".cursor");
  const slider = figure.querySelector("input");
  const last = counts[0].length - 1;

  function show(place) {
    place = Math.max(0, Math.min(last, Math.round(place)));
    const flips = place * stride;
    slider.value = place;
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, `${(100 * place) / last}%`);
    for (const node of figure.querySelectorAll("[data-flips]")) node.textContent = flips.toLocaleString("en");
    for (const node of figure.querySelectorAll("[data-share]")) node.textContent = `${percent(flips / labels)} ${of}`;
    slider.setAttribute("aria-valuetext", `${flips} ${made}`);
    counts.forEach((curve, i) => {
      figure.querySelector(`[data-curve="${i}"]`).textContent = percent(curve[place] / points);
    });
  }

  function point(event) {
    const box = area.getBoundingClientRect();
    show((last * (event.clientX - box.left)) / box.width);
  }
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  slider.addEventListener("input", () => show(Number(slider.value)));
  slider.closest("label").hidden = false;
}

// What a tooltip says of a mark is also written below the plot, for fingers and for those who do not wait.
for (const title of document.querySelectorAll(".plot title")) {
  const mark = title.parentElement;
  const readout = mark.closest("figure").querySelector(".readout");
  if (!readout) continue;
  const say = () => { readout.textContent = title.textContent; };
  mark.addEventListener("pointerenter", say);
  mark.addEventListener("click", say);
}

for (const button of document.querySelectorAll("[data-toggle]")) {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    const series = button.closest("figure").querySelectorAll(`[data-series="${button.dataset.toggle}"]`);
    for (const mark of series) mark.toggleAttribute("data-off", !shown);
  });
}

const tabs = [...document.querySelectorAll("[role=tab]")];
if (tabs.length) {
  const panels = tabs.map((tab) => document.getElementById(tab.getAttribute("aria-controls")));

  function choose(chosen) {
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", tab === chosen);
      tab.tabIndex = tab === chosen ? 0 : -1;
      panels[i].hidden = tab !== chosen;
    });
    // Many tabs scroll in their list.
    const list = chosen.parentElement;
    list.scrollTop = chosen.offsetTop - (list.clientHeight - chosen.offsetHeight) / 2;
  }
  const linked = () => tabs[panels.findIndex((panel) => `#${panel.id}` === location.hash)];

  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const moves = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      const next = tabs[(moves[event.key] + tabs.length) % tabs.length];
      choose(next);
      next.focus();
    });
  });
  // A link in the table of results opens its tab; the browser then scrolls to it.
  addEventListener("hashchange", () => {
    const tab = linked();
    if (!tab) return;
    choose(tab);
    tab.scrollIntoView();
  });
  tabs[0].parentElement.hidden = false;
  choose(linked() || tabs.find((tab) => tab.getAttribute("aria-selected") === "true") || tabs[0]);
}
