"""The report of an analysis in a browser: hostile words stay words, and a telephone is wide enough."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch

from attnlib.analysis import Stream
from attnlib.report import analyse, write_report
from attnlib.report.as_text import number
from attnlib.report.page import MOST_CELLS
from attnlib.trace import KINDS
from tests.attnlib.analysis.builders import ALL, HOSTILE, Toy

PLACES = list(product(range(3), range(16)))  # layers and heads


def analysis():
    """Many heads, and every name that a user can give is hostile."""
    toy = Toy(ALL, ignored=(3,), bias=True)
    analysed = analyse(Stream(toy, range(10), toy.probe), about=dict.fromkeys(HOSTILE, " ".join(HOSTILE)))

    def everywhere(rows):
        first = [row for row in rows if row["head"] == 0]
        return [row | {"layer": layer, "head": head} for row in first for layer, head in PLACES]

    def maps_everywhere(maps):
        return {(f"{kind}.{layer}", n): maps[f"{kind}.0", n % 2] for kind in KINDS for layer, n in PLACES}

    ids = torch.arange(40)  # every word
    every = {(f"{kind}.0", n): torch.eye(40).expand(4, 40, 40) for kind in KINDS for n in range(2)}
    first = replace(analysed.samples[0], source=ids, target=ids, read=ids, maps=every, probe=None)
    return replace(
        analysed,
        samples=tuple(
            replace(sample, maps=maps_everywhere(sample.maps)) for sample in (first, *analysed.samples[1:])
        ),
        heads=[row | {"temporal_rebuilds": row["head"] / 16} for row in everywhere(analysed.heads)],
        terms=everywhere(analysed.terms),
        held_out=False,
        states=[analysed.states[0] | {"states": word} for word in HOSTILE[:4]],
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder, title = tmp_path_factory.mktemp("report"), "x" * 300 + HOSTILE[0]
    write_report(analysis(), folder, title=title, name=lambda _, token: HOSTILE[token % len(HOSTILE)])
    return folder / "index.html"


STICKING_OUT = """() => [...document.querySelectorAll('body *')]
    .filter(own => !own.parentElement.closest('.wide') && own.getBoundingClientRect().right > innerWidth + 1)
    .map(own => own.tagName + '.' + own.className)"""
BRIGHTNESS = Path(__file__).with_name("brightness.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_words_are_seen_on_a_telephone_in_either_theme(opened, report, scheme):
    page = opened(report, width=390, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(own => own.open = true)")
    page.wait_for_timeout(300)

    # Nothing sticks out, and wide tables scroll by themselves.
    assert page.evaluate(STICKING_OUT) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    wide = "[...document.querySelectorAll('.wide')].map(own => own.scrollWidth > own.clientWidth)"
    assert any(page.evaluate(wide))

    # Hostile words are seen, and nothing else is made of them.
    assert page.locator("body script:not(#data):not(#code), body img, body svg, body style").count() == 0
    links = page.locator("body a").evaluate_all("found => found.map(own => own.getAttribute('href'))")
    assert links == ["heads.csv", "terms.csv", "states.csv", "parts.csv", "analysis.json"]
    seen = page.locator("table.map th").all_inner_texts()
    assert "<script>alert(1)</script>" in [word.replace("\n", "") for word in seen]
    assert page.locator("h1").is_visible()
    assert page.locator("table.map").count() == MOST_CELLS // 40**2
    assert page.locator(".grid").count() == 6 * len(KINDS)

    # Light on dark or dark on light, as the browser asks for.
    text, ground = page.evaluate(BRIGHTNESS)
    assert (text > ground) == (scheme == "dark")
    assert abs(text - ground) > 150


def shown(row, part):
    share, low, high = (number(row[f"{part}_{end}"]) for end in ("share", "low", "high"))
    return share if low == "–" else f"{share}\n[{low}, {high}]"


def test_a_click_shows_a_head(opened, report):
    """With the numbers of the analysis, its words as they are, and another sentence and map where asked."""
    analysed, page = analysis(), opened(report)
    assert not page.locator("#head").is_visible()
    grid = page.locator("[data-kind=cross] table.grid").first
    grid.locator("tbody tr").nth(0).locator("td").nth(1).click()
    assert page.locator("#head h2").inner_text() == "Cross-attention, layer 0, head 1"
    place = {"kind": "cross", "layer": 0, "head": 1}
    (head,) = (row for row in analysed.heads if place.items() <= row.items())
    terms = [row for row in analysed.terms if place.items() <= row.items()]
    shares = [shown(head, part) for part in ("temporal", "input", "mixed", "residual")]
    shares += [shown(row, "covariance") for row in terms]
    assert sorted(page.locator("#head table:not(.map) td:not(:empty)").all_inner_texts()) == sorted(shares)
    words = page.locator("#head table.map thead th").all_inner_texts()
    assert len(words) == len(analysed.samples[0].source)
    cells = "#head table.map tbody td"
    for chosen, sample, which in (("0", 0, 0), ("1", 1, 0), ("1", 1, 2)):
        page.locator("#head select").nth(0).select_option(chosen)
        page.locator("#head select").nth(1).select_option(str(which))
        titles = page.locator(cells).evaluate_all("own => own.map(cell => cell.title)")
        weights = analysed.samples[sample].maps["cross.0", 1][which].flatten().tolist()
        for title, weight in zip(titles, weights, strict=True):
            assert title == "unseen or left out" if weight != weight else abs(float(title) - weight) < 0.008


def test_a_click_sorts_a_table(opened, report):
    page = opened(report)
    page.evaluate("document.querySelectorAll('details').forEach(own => own.open = true)")
    table = page.locator("[data-kind=cross] table.sorted").nth(2)  # rebuilt attention
    for turns, down in ((1, True), (2, False)):
        table.locator("thead th").nth(1).click()
        values = [float(text) for text in table.locator("tbody tr td:nth-child(3)").all_inner_texts()]
        assert values == sorted(values, reverse=down), turns
        assert len(set(values)) > 1


SEEN = """cell => { const own = cell.getBoundingClientRect(), panel = document.getElementById('head');
    return own.top >= 0 && own.bottom <= panel.getBoundingClientRect().top }"""


@pytest.mark.parametrize("width", [1280, 390])
def test_a_head_is_opened_by_keys_at_its_place(opened, report, width):
    """The panel is beside the cell, which is marked and stays in sight and in focus."""
    page = opened(report, width=width)
    focus = "() => document.activeElement.textContent"
    panel, name = page.locator("#head"), page.locator("#head h2")
    grid = page.locator("[data-kind=encoder_self] table.grid").first
    cells = grid.locator("tbody tr").nth(1).locator("td")
    assert grid.locator("[tabindex='0']").count() == 1, "one stop a table for those who go by keys"
    grid.locator("[tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    assert not panel.is_visible()
    page.keyboard.press("Enter")
    assert name.inner_text() == "Self-attention of the encoder, layer 1, head 1"
    for key, head in (("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2)):
        page.keyboard.press(key)
        assert name.inner_text().endswith(f"layer 1, head {head}")
        assert cells.nth(head).evaluate("cell => cell === document.activeElement")
        assert cells.nth(head).evaluate(SEEN)
    marked = page.locator("[aria-current]")  # in six grids and four tables
    assert marked.count() == 10
    assert page.locator("td[aria-current]").evaluate_all("own => own.map(cell => cell.cellIndex)") == [3] * 6

    # Even at the edge nothing is lost; the panel is next for the tabulator, and a choice keeps the focus.
    for _ in range(20):
        page.keyboard.press("ArrowUp")
    assert name.inner_text().endswith("layer 0, head 2")
    page.keyboard.press("Tab")
    assert page.evaluate(focus) == "Close (Esc)"
    panel.locator("select").first.focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("[document.activeElement.tagName, document.activeElement.value]") == ["SELECT", "1"]
    page.keyboard.press("Escape")
    assert not panel.is_visible()
    assert marked.count() == 0
    first = grid.locator("tbody tr").first.locator("td").nth(2)
    assert first.evaluate("cell => cell === document.activeElement")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_head_is_opened_by_hand_from_a_table(opened, report, width):
    page = opened(report, width=width)
    focus = "() => document.activeElement.textContent"
    panel, name = page.locator("#head"), page.locator("#head h2")
    page.evaluate("document.querySelectorAll('details').forEach(own => own.open = true)")
    row = page.locator("[data-kind=cross] table.terms tbody th").nth(17)
    row.evaluate("cell => cell.scrollIntoView({block: 'end'})")  # where the panel will be
    row.click()
    assert name.inner_text() == "Cross-attention, layer 1, head 1"
    assert row.evaluate(SEEN)
    panel.locator("button").click()
    assert not panel.is_visible()
    assert page.evaluate(focus) == "layer 1, head 1"


def test_24_heads_fit_of_which_those_that_attend_evenly_are_named(opened, tmp_path):
    analysed = analysis()
    wide = [row | {"head": row["head"] + 8} for row in analysed.heads if row["head"] >= 8]
    even = {("cross", 0, 0): {"uniform": 0.995}}
    rows = [row | even.get((row["kind"], row["layer"], row["head"]), {}) for row in [*analysed.heads, *wide]]
    terms = analysed.terms + [row | {"head": row["head"] + 8} for row in analysed.terms if row["head"] >= 8]
    write_report(replace(analysed, heads=rows, terms=terms, samples=()), tmp_path)
    page = opened(tmp_path / "index.html", width=1280)
    grids = page.locator(".grids .wide")
    assert not any(grids.evaluate_all("all => all.map(own => own.scrollWidth > own.clientWidth)"))
    cells = page.locator("[data-kind=cross] table.grid").first.locator("tbody tr").first.locator("td")
    assert cells.count() == 24
    for place, even in ((0, True), (1, False)):
        cells.nth(place).click()
        assert page.locator("#evenly").is_visible() == even
    page.evaluate("document.querySelectorAll('details').forEach(own => own.open = true)")
    table = page.locator("[data-kind=cross] table.terms")
    headings = table.locator("tbody th").all_inner_texts()
    assert headings[:2] == ["layer 0, head 0 (even)", "layer 0, head 1"]
    heading = table.locator("tbody th").first
    before = heading.bounding_box()
    table.evaluate("own => { own.closest('.wide').scrollLeft = 300 }")
    assert heading.bounding_box() == before, "names of heads stay where they are"
