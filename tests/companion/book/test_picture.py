"""Figures as pages show them: in the page's font, with colours for the dark, and with all that was drawn."""

import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont

from companion.book.dark import in_the_dark
from companion.book.picture import PAGE_FONTS, for_pages
from companion.book.style import FONTS, INK, PART_COLOURS, as_svg, style
from companion.paths import ROOT

SVG = "{http://www.w3.org/2000/svg}"


def lines() -> str:
    """A drawing of a line, with a text."""
    with style():
        figure = Figure()
        axes = figure.subplots()
        axes.plot([0, 1], color=PART_COLOURS["temporal"])
        axes.set_title("temporal share μ·μ", fontweight="bold")
    return for_pages(as_svg(figure))


def heat_map() -> str:
    """A drawing of a heat map with a text on it and one beside it."""
    with style():
        figure = Figure()
        axes = figure.subplots()
        axes.imshow([[0, 1], [1, 0]], cmap="Greys")
        axes.text(0, 0, "on it", ha="center")
        axes.text(1.1, 0.5, "beside it", transform=axes.transAxes)
    return for_pages(as_svg(figure))


def style_of(svg: str, words: str) -> str:
    """Return the style of a text of a drawing."""
    texts = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return next(text.get("style", "") for text in texts if text.text == words)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, by the Web Content Accessibility Guidelines."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]


def contrast_in_the_dark(colour: str) -> float:
    ground, shown = luminance(in_the_dark("#ffffff")), luminance(in_the_dark(colour))
    return (shown + 0.05) / (ground + 0.05)


def test_text_stays_text():
    assert ">temporal share μ·μ</text>" in lines()


def test_a_drawing_names_the_fonts_of_the_page():
    assert ElementTree.fromstring(lines()).get("font-family") == PAGE_FONTS


def test_no_text_has_another_font():
    assert "font-family:" not in lines()


def test_a_drawing_brings_no_font():
    assert "@font-face" not in lines()


def test_the_first_font_that_drawings_are_laid_out_with_is_of_the_checkout():
    with style():
        name, *_ = mpl.rcParams["font.family"]
        path = Path(findfont(name, fallback_to_default=False))
    assert path.parent == FONTS


def test_every_colour_has_a_counterpart_in_the_dark():
    svg = lines()
    colours = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", re.sub("<style.*?</style>", "", svg)))
    assert colours
    for colour in colours:
        assert f': {colour}"]{{' in svg


def test_what_is_written_on_a_heat_map_keeps_its_colour():
    assert f"fill:{INK}" in style_of(heat_map(), "on it")


def test_what_is_written_beside_a_heat_map_changes_in_the_dark():
    assert f"fill: {INK}" in style_of(heat_map(), "beside it")


def test_white_becomes_the_ground_of_the_page():
    assert in_the_dark("#ffffff") == "#121212"


@pytest.mark.parametrize("part", ["temporal", "input", "residual"])
def test_parts_have_the_colours_of_their_words_in_the_dark(part):
    sheet = (ROOT / "book/_static/attnlib.css").read_text(encoding="utf-8")
    dark = sheet.partition('html[data-theme="dark"] {')[2].partition("}")[0]
    assert f"--attn-{part}-text: {in_the_dark(PART_COLOURS[part])};" in dark


@pytest.mark.parametrize("colour", [INK, "#666666", "#882255", "#332288", "#009e73", "#a06a00", "#c2185b"])
def test_what_is_written_can_be_read_in_the_dark(colour):
    assert contrast_in_the_dark(colour) >= 4.5


def test_a_pale_tint_becomes_a_dark_one():
    assert 1 < contrast_in_the_dark("#eeeeee") < 1.6


def test_a_hue_stays():
    red, green, blue = (int(in_the_dark("#882255")[place : place + 2], 16) for place in (1, 3, 5))
    assert red > blue > green


def test_equal_drawings_are_equal_bytes():
    assert lines() == lines()
