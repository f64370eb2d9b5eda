"""A figure's SVG as pages show it: small, in the font of the page, and with colours for the dark.

A picture in a page sees neither the page's style sheet nor fonts that the page brings. It does see the
fonts of the system, which the book's pages are set in, and whether its element is dark (the property
``color-scheme``). Programs that know neither, such as Inkscape, show it as on white paper.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from companion.book.dark import in_the_dark

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# The fonts of the pages, as the theme names them: --pst-font-family-base-system.
PAGE_FONTS = "-apple-system, BlinkMacSystemFont, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})")
FONT = re.compile(r"font-family: [^;]*; ?")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TURNED_BY_NOTHING = re.compile(r"rotate\(-?0 [^)]*\)")
BORDER = 1.0  # points at the edge of a heat map, where its frame is
# A letter with a rim, which matplotlib draws twice.
RIM = (
    r'(<path d="([^"]*)" style="(fill: #\w+); stroke: #ffffff; stroke-width: [\d.]+)" ?/>'
    r'\s*<path d="\2" style="\3" ?/>'
)


@dataclass(frozen=True)
class Box:
    """Where a heat map is, in points."""

    left: float
    top: float
    right: float
    bottom: float

    def has(self, x: float, y: float) -> bool:
        """Return True if a point is inside, its border left out."""
        across = self.left + BORDER < x < self.right - BORDER
        return across and self.top + BORDER < y < self.bottom - BORDER


def for_pages(svg: str) -> str:
    """Return the drawing for pages and for download.

    Args:
        svg: as matplotlib writes it, its text as text.
    """
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(svg)
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    root.set("font-family", PAGE_FONTS)
    for text in root.iter(f"{{{SVG}}}text"):
        text.set("style", FONT.sub("", text.get("style", "")))
        if TURNED_BY_NOTHING.fullmatch(text.get("transform", "")):
            del text.attrib["transform"]
    for element in _on_heat_maps(root):  # their cells keep their colours, and so does what is written on them
        element.set("style", COLOUR.sub(r"\1:\2", element.get("style", "")))
    rules = Element(f"{{{SVG}}}style")
    rules.text = dark_rules(element.get("style", "") for element in root.iter())
    root.insert(0, rules)
    return _hundredths(ElementTree.tostring(root, encoding="unicode")) + "\n"


def dark_rules(styles: Iterable[str]) -> str:
    """Return the style sheet that gives each colour its counterpart where the picture's element is dark."""
    colours = sorted({match for style in styles for match in COLOUR.findall(style)})
    rules = [
        f'[style*="{property_}: {colour}"]{{{property_}:{in_the_dark(colour)}!important}}'
        for property_, colour in colours
    ]
    return f"@media (prefers-color-scheme: dark){{{''.join(rules)}}}"


def _on_heat_maps(root: Element) -> Iterator[Element]:
    """Yield the elements of texts, frames and arrows that are on a heat map."""
    for axes in root.iter(f"{{{SVG}}}g"):
        images = axes.findall(f"{{{SVG}}}g/{{{SVG}}}image") if axes.get("id", "").startswith("axes_") else []
        for group in axes if images else ():
            points = list(_points(group))
            if points and all(any(_box(image).has(*point) for image in images) for point in points):
                yield from group.iter()


def _box(image: Element) -> Box:
    """Return where an image is; matplotlib writes it upside down, and turns it by a transform."""
    left, top = float(image.get("x", "0")), -float(image.get("y", "0"))
    return Box(left, top, left + float(image.get("width", "0")), top + float(image.get("height", "0")))


def _points(group: Element) -> Iterator[tuple[float, float]]:
    """Yield the points of paths, and the beginnings of texts and marks."""
    for element in group.iter():
        numbers = list(map(float, NUMBER.findall(element.get("d", ""))))
        yield from zip(numbers[::2], numbers[1::2], strict=False)
        if "x" in element.attrib:
            yield float(element.get("x", "0")), float(element.get("y", "0"))
        elif element.get("transform", "").startswith("translate("):
            x, y, *_ = map(float, NUMBER.findall(element.get("transform", "")))
            yield x, y


def _hundredths(svg: str) -> str:
    """Return the drawing with hundredths of a point, finer than any screen, and outlined letters once."""

    def shorter(place: re.Match) -> str:
        cut = re.sub(r"(\.\d\d)\d+", r"\1", place[2])
        return place[1] + re.sub(r"\s*([A-Z])\s*", r"\1", cut.strip())

    return re.sub(RIM, r'\1; paint-order: stroke"/>', re.sub(r'( (?:x|y|d)=")([^"]*)', shorter, svg))
