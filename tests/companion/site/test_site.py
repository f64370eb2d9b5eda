"""The book in a browser without a network: quiet, legible, searchable, and whole.

Opening a page is what takes time, so every page is opened once in each of three ways for all tests.
"""

import re
from pathlib import Path

import pytest

WAYS = {
    "light": {"scheme": "light", "width": 1280},
    "dark": {"scheme": "dark", "width": 1280},
    "narrow": {"scheme": "light", "width": 390},
}
# Text and the contrast of its colour with the ground it stands on (WCAG 2), lowest first.
CONTRAST = """
() => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const linear = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const wanted = "p, li, h1, h2, h3, td, th, dd, dt, figcaption, a, code, span";
  const found = [];
  for (const element of document.querySelectorAll(".bd-article :is(" + wanted + "), .bd-sidebar a")) {
    const words = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    const style = getComputedStyle(element);
    if (!words || !element.getClientRects().length || style.visibility === "hidden") continue;
    const [a, b] = [luminance(rgb(style.color)), luminance(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([ratio, element.tagName + "." + element.className, element.textContent.trim().slice(0, 40)]);
  }
  return found.sort((x, y) => x[0] - y[0]);
}
"""
IMAGES = """
() => [...document.querySelectorAll("img")].map(image => {
  const style = getComputedStyle(image);
  return {
    source: image.getAttribute("src"), alt: image.getAttribute("alt"), width: image.naturalWidth,
    inText: !!image.closest(".bd-article"), ground: style.backgroundColor, filter: style.filter,
  };
})
"""
# Figures with more in them than the window shows, at which width, and whether the Tab key stops there.
FIGURES = """
() => [...document.querySelectorAll(".bd-article .cell_output figure")].map(figure => {
  const image = figure.querySelector("img");
  return {
    natural: image.naturalWidth, shown: image.getBoundingClientRect().width,
    scrolls: figure.scrollWidth > figure.clientWidth + 1, stop: figure.tabIndex === 0,
    caption: figure.querySelector("figcaption").getBoundingClientRect().right,
  };
})
"""
MATH = """
() => ({
  undrawn: [...document.querySelectorAll(".bd-article .math")]
    .filter(e => !e.querySelector("mjx-container svg")).length,
  drawn: document.querySelectorAll(".bd-article mjx-container svg").length,
  broken: document.querySelectorAll("mjx-container [data-mml-node='merror']").length,
})
"""
# What sticks out of the window to the right without an element around it that scrolls.
STICKS_OUT = """
() => [...document.querySelectorAll(".bd-article *")].filter(element => {
  const right = element.getBoundingClientRect().right;
  if (!element.getClientRects().length || right <= innerWidth + 1) return false;
  for (let e = element; e && !e.matches(".bd-article"); e = e.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX)) return false;
  return true;
}).map(element => element.tagName + "." + element.className)
"""


@pytest.fixture(scope="session")
def seen(visit, pages) -> dict[tuple[str, str], dict]:
    """What each page looks like in each way of opening it."""
    result = {}
    for way, options in WAYS.items():
        for path in pages:
            with visit(path, **options) as visited:
                look = visited.page.evaluate
                result[way, path] = {
                    "theme": look("document.documentElement.dataset.theme"),
                    "contrast": look(CONTRAST),
                    "images": look(IMAGES),
                    "figures": look(FIGURES),
                    "math": look(MATH),
                    "page width": look("document.documentElement.scrollWidth"),
                    "sticks out": look(STICKS_OUT),
                    "complaints": visited.complaints,
                }
    return result


def test_no_page_asks_the_network_or_complains(seen):
    assert [complaint for what in seen.values() for complaint in what["complaints"]] == []


def test_a_request_that_would_leave_is_seen_and_goes_nowhere(visit):
    with visit("index.html") as visited:
        reached = visited.page.evaluate("fetch('https://example.org/').then(() => true, () => false)")
        assert not reached
        assert visited.outside == ["https://example.org/"]


def test_formulas_are_drawn_where_there_are_any_and_mathjax_stays_away_elsewhere(seen, html, pages):
    with_math = []
    for path in pages:
        text = (html / path).read_text(encoding="utf-8")
        has_math = re.search(r'class="[^"]*\bmath\b', text) is not None
        assert ("tex-svg" in text) == has_math, path
        if has_math:
            with_math.append(path)
            found = seen["light", path]["math"]
            assert found["drawn"] > 0, path
            assert (found["undrawn"], found["broken"]) == (0, 0), path
    assert "index.html" in with_math
    assert len(with_math) < len(pages)


def test_search_finds_a_word(visit):
    with visit("search.html?q=typicality") as visited:
        # Results appear one after the other; the wait fails where the page is not among them.
        visited.page.wait_for_selector("#search-results li a[href^='reproduction_notes.html']")
        assert visited.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible(seen, pages, scheme):
    for path in pages:
        assert seen[scheme, path]["theme"] == scheme
        contrasts = seen[scheme, path]["contrast"]
        assert contrasts, path
        assert contrasts[0][0] >= 4.5, (path, contrasts[0])


def test_figures_keep_a_white_ground_in_the_dark(seen, pages):
    for path in pages:
        for image in seen["dark", path]["images"]:
            if image["inText"]:
                assert (image["ground"], image["filter"]) == ("rgb(255, 255, 255)", "none"), (path, image)


def test_every_image_is_there_and_says_what_it_shows(seen, pages):
    for path in pages:
        for image in seen["light", path]["images"]:
            assert image["width"] > 0, (path, image)
            # Sphinx takes the address for the text where none is given.
            assert image["alt"], (path, image)
            assert Path(image["source"]).name not in image["alt"], (path, image)


def test_every_figure_that_a_page_offers_is_shown_on_it(html, pages):
    for path in pages:
        text = (html / path).read_text(encoding="utf-8")
        offered = re.findall(r'href="[^"]*/([^"/]+)\.svg" download', text)
        shown = re.findall(r'<figure class="align-default" id="([^"]+)"', text)
        assert len(offered) == len(shown), (path, offered, shown)


def test_links_inside_the_site_resolve(html, pages):
    texts = {
        path: path.read_text(encoding="utf-8") for path in html.rglob("*.html") if "_static" not in path.parts
    }
    names = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    broken = []
    for path in (html / page for page in pages):
        for link in re.findall(r'<(?:a|link)\b[^>]*\bhref="([^"]+)"', texts[path]):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            goal = (path.parent / target.partition("?")[0]).resolve() if target else path
            if not goal.is_file() or (anchor and goal in names and anchor not in names[goal]):
                broken.append((path.relative_to(html).as_posix(), link))
    assert broken == []


def test_a_narrow_window_scrolls_only_downwards(seen, pages):
    for path in pages:
        assert seen["narrow", path]["sticks out"] == [], path
        assert seen["narrow", path]["page width"] <= 390, path


def test_a_wide_figure_stays_legible_in_a_narrow_window_and_scrolls_by_keyboard(seen, pages):
    figures = [(path, figure) for path in pages for figure in seen["narrow", path]["figures"]]
    assert figures
    for path, figure in figures:
        assert figure["shown"] >= min(figure["natural"], 640) - 1, (path, figure)
        assert figure["stop"] == figure["scrolls"], (path, figure)
        assert figure["caption"] <= 390, (path, figure)


def test_a_figure_that_fits_is_no_stop_of_the_tab_key(seen, pages):
    wide = [figure for path in pages for figure in seen["light", path]["figures"]]
    assert [figure for figure in wide if figure["scrolls"] or figure["stop"]] == []
