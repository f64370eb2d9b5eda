"""The book in a browser without a network: quiet, legible, searchable, and whole.

Opening a page is what takes time, so every page is opened once in each of three ways for all tests.
"""

import re
from itertools import product
from pathlib import Path

import pytest

WAYS = {
    "light": {"scheme": "light", "width": 1280},
    "dark": {"scheme": "dark", "width": 1280},
    "narrow": {"scheme": "light", "width": 390},
}
LOOKS = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def seen(visit, pages) -> dict[tuple[str, str], dict]:
    """What each page looks like in each way of opening it."""
    result = {}
    for way, options in WAYS.items():
        for path in pages:
            with visit(path, **options) as visited:
                complaints = {"complaints": visited.complaints}
                result[way, path] = visited.page.evaluate(LOOKS) | complaints
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


def test_text_is_legible_by_day_and_by_night(seen, pages):
    for scheme, path in product(("light", "dark"), pages):
        assert seen[scheme, path]["theme"] == scheme
        assert seen[scheme, path]["contrast"][0][0] >= 4.5, (path, seen[scheme, path]["contrast"][0])


def test_every_image_is_there_says_what_it_shows_and_keeps_a_white_ground_in_the_dark(seen, pages):
    for path in pages:
        for image in seen["dark", path]["images"]:
            if image["inText"]:
                assert (image["ground"], image["filter"]) == ("rgb(255, 255, 255)", "none"), (path, image)
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


def test_a_narrow_window_scrolls_downwards_and_its_wide_figures_by_keyboard(seen, pages):
    for path in pages:
        narrow = seen["narrow", path]
        assert narrow["sticksOut"] == [], path
        assert narrow["pageWidth"] <= 390, path
        for figure in narrow["figures"]:
            assert figure["shown"] >= min(figure["natural"], 640) - 1, (path, figure)
            assert figure["stop"] == figure["scrolls"], (path, figure)
            assert figure["caption"] <= 390, (path, figure)
        wide = [figure for figure in seen["light", path]["figures"] if figure["scrolls"] or figure["stop"]]
        assert wide == [], path
    assert any(seen["narrow", path]["figures"] for path in pages)
