"""The one hand of the book's drawings: boxes, arrows and words, as SVG that follows the theme of its page.

A drawing is at most 340 units wide, so that it fits a telephone at full size; a page puts several side by
side. Its ink is ``currentColor``, its tints are variables of the book's style sheet, and its text is text in
the font of the page. There is one width of stroke; only the lines of attention are as thick as their weights.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import atan2, cos, hypot, sin
from typing import Literal
from xml.sax.saxutils import escape

Point = tuple[float, float]
Tone = Literal["ink", "muted", "temporal", "input", "residual", "highlight"]
Anchor = Literal["start", "middle", "end"]

STROKE = 1.5  # the width of every line but those of attention
TEXT, SMALL = 14, 12.5  # sizes of letters
TINT = 0.16  # opacity of a coloured box, on which ink keeps its contrast
WIDEST = 340  # units of a drawing, pixels on a telephone

# The value after the comma is for a drawing that is looked at outside of the book.
LINE_COLOURS: dict[Tone, str] = {
    "ink": "currentColor",
    "muted": "var(--pst-color-text-muted, #48566b)",
    "temporal": "var(--attn-temporal-text, #0067a1)",
    "input": "var(--attn-input-text, #b34f00)",
    "residual": "var(--attn-residual-text, #666666)",
    "highlight": "var(--attn-highlight, #882255)",
}
FILL_COLOURS: dict[Tone, str] = {
    "ink": "currentColor",
    "muted": "var(--pst-color-text-muted, #48566b)",
    "temporal": "var(--attn-temporal, #0072b2)",
    "input": "var(--attn-input, #d55e00)",
    "residual": "var(--attn-residual, #999999)",
    "highlight": "var(--attn-highlight, #882255)",
}
SUBSCRIPT = re.compile(r"([a-zα-ωΣ])_(?:\{([^}]*)\}|(\w))")


@dataclass(frozen=True)
class Box:
    """A rectangle by its centre, with the middles of its sides."""

    centre: Point
    width: float
    height: float

    @property
    def top(self) -> Point:
        return self.centre[0], self.centre[1] - self.height / 2

    @property
    def bottom(self) -> Point:
        return self.centre[0], self.centre[1] + self.height / 2

    @property
    def left(self) -> Point:
        return self.centre[0] - self.width / 2, self.centre[1]

    @property
    def right(self) -> Point:
        return self.centre[0] + self.width / 2, self.centre[1]


@dataclass(frozen=True)
class Words:
    """A line of text: where its baseline is anchored, its size, its tone, and the box that it must fit."""

    content: str
    at: Point
    size: float
    anchor: Anchor
    tone: Tone
    bold: bool
    room: Box | None
    ground: Tone | None


@dataclass
class Drawing:
    """A drawing under construction; `svg` returns it.

    Attributes:
        name: of the file, and of the drawing in a page.
        title: what it is, in a few words.
        description: what it shows, for those who do not see it.
        width: of the drawing in units, at most `WIDEST`.
        height: in units.
        words: every line of text, for tests of its room and contrast.
    """

    name: str
    title: str
    description: str
    width: float = WIDEST
    height: float = 200
    words: list[Words] = field(default_factory=list)
    _marks: list[str] = field(default_factory=list)

    def box(
        self, centre: Point, text: str = "", *, size: Point = (40, 32), tone: Tone = "ink", corner: float = 6,
        dashed: bool = False, letters: float = TEXT, bold: bool = False,
    ) -> Box:  # fmt: skip
        """Draw a rectangle with rounded corners and a text in its middle; a coloured one is tinted."""
        box = Box(centre, *size)
        left, top = box.left[0], box.top[1]
        tint = "none" if tone == "ink" else FILL_COLOURS[tone]
        fill = f'style="fill: {tint}; stroke: {LINE_COLOURS[tone]}" fill-opacity="{TINT}"'
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        frame = (
            f'x="{_number(left)}" y="{_number(top)}" width="{_number(size[0])}" height="{_number(size[1])}"'
        )
        self._marks.append(f'<rect {frame} rx="{_number(corner)}" {fill}{dashes}/>')
        if text:
            middle = (centre[0], centre[1] + letters * 0.35)
            ground = None if tone == "ink" else tone
            self.text(middle, text, size=letters, room=box, ground=ground, bold=bold)
        return box

    def text(
        self, at: Point, text: str, *, size: float = TEXT, anchor: Anchor = "middle", tone: Tone = "ink",
        bold: bool = False, room: Box | None = None, ground: Tone | None = None,
    ) -> None:  # fmt: skip
        """Write a line; ``h_t`` and ``s_{t−1}`` become letters with a subscript."""
        words = Words(text, at, size, anchor, tone, bold, room, ground)
        self.words.append(words)
        weight = ' font-weight="600"' if bold else ""
        place = f'x="{_number(at[0])}" y="{_number(at[1])}" text-anchor="{anchor}"'
        letters = f'font-size="{_number(size)}"{weight} stroke="none"'
        colour = f'style="fill: {LINE_COLOURS[tone]}"'
        self._marks.append(f"<text {place} {letters} {colour}>{_with_subscripts(words)}</text>")

    def arrow(
        self, start: Point, end: Point, *, tone: Tone = "ink", bend: float = 0, dashed: bool = False
    ) -> None:
        """Draw an arrow, straight or bent to its left by ``bend`` units at its middle."""
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        length = hypot(end[0] - start[0], end[1] - start[1])
        across = ((end[1] - start[1]) / length, -(end[0] - start[0]) / length)
        turn = (middle[0] + 2 * bend * across[0], middle[1] + 2 * bend * across[1])
        path = f"M{_pair(start)}L{_pair(end)}" if bend == 0 else f"M{_pair(start)}Q{_pair(turn)} {_pair(end)}"
        self._line(path + _tip(start if bend == 0 else turn, end), tone=tone, dashed=dashed)

    def route(self, *points: Point, tone: Tone = "ink", tip: bool = True, dashed: bool = False) -> None:
        """Draw an arrow along straight pieces."""
        path = "M" + "L".join(_pair(point) for point in points)
        self._line(path + (_tip(points[-2], points[-1]) if tip else ""), tone=tone, dashed=dashed)

    def line(self, start: Point, end: Point, *, tone: Tone = "ink", dashed: bool = False) -> None:
        """Draw a straight line without a tip."""
        self._line(f"M{_pair(start)}L{_pair(end)}", tone=tone, dashed=dashed)

    def attention(self, start: Point, end: Point, *, weight: float, tone: Tone = "ink") -> None:
        """Draw a line of attention, as thick as its weight from 0 to 1."""
        width, opacity = 0.8 + 4.2 * weight, 0.35 + 0.65 * weight
        path = f"M{_pair(start)}L{_pair(end)}"
        look = f'stroke-width="{_number(width)}" stroke-opacity="{opacity:.2f}"'
        self._marks.append(f'<path d="{path}" {look} style="stroke: {LINE_COLOURS[tone]}"/>')

    def area(self, points: Sequence[Point], *, tone: Tone, opacity: float) -> None:
        """Fill a polygon, without an outline."""
        path = "M" + "L".join(_pair(point) for point in points) + "z"
        fill = f'fill-opacity="{opacity:.2f}" stroke="none" style="fill: {FILL_COLOURS[tone]}"'
        self._marks.append(f'<path d="{path}" {fill}/>')

    def dot(self, centre: Point, *, radius: float = 4, tone: Tone = "ink") -> None:
        """Draw a filled point."""
        place = f'cx="{_number(centre[0])}" cy="{_number(centre[1])}" r="{_number(radius)}"'
        self._marks.append(f'<circle {place} stroke="none" style="fill: {LINE_COLOURS[tone]}"/>')

    def ring(self, centre: Point, *, radius: float, tone: Tone = "ink") -> None:
        """Draw a circle."""
        place = f'cx="{_number(centre[0])}" cy="{_number(centre[1])}" r="{_number(radius)}"'
        self._marks.append(f'<circle {place} style="stroke: {LINE_COLOURS[tone]}"/>')

    def _line(self, path: str, *, tone: Tone, dashed: bool) -> None:
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        colour = "" if tone == "ink" else f' style="stroke: {LINE_COLOURS[tone]}"'
        self._marks.append(f'<path d="{path}"{dashes}{colour}/>')

    def svg(self) -> str:
        """Return the drawing as an SVG file, which may as well stand inside a page."""
        size = f'viewBox="0 0 {_number(self.width)} {_number(self.height)}"'
        given = f'width="{_number(self.width)}" height="{_number(self.height)}"'
        title, about = f"drawing-{self.name}-title", f"drawing-{self.name}-about"
        look = (
            'fill="none" stroke="currentColor" stroke-linecap="round" stroke-linejoin="round" '
            f'stroke-width="{STROKE}" style="font-family: var(--pst-font-family-base, sans-serif)"'
        )
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" {size} {given} role="img"',
            f' aria-labelledby="{title} {about}" {look}>',
            f'<title id="{title}">{escape(self.title)}</title>',
            f'<desc id="{about}">{escape(self.description)}</desc>',
            *self._marks,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Return a text as it is read, its subscripts in the line.

    Example:
        >>> plain("s_{t−1} and h_t")
        'st−1 and ht'
    """
    return SUBSCRIPT.sub(lambda match: f"{match[1]}{match[2] or match[3]}", text)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _pair(point: Point) -> str:
    return f"{_number(point[0])} {_number(point[1])}"


def _tip(before: Point, end: Point) -> str:
    """Return the two strokes of an arrow's tip."""
    angle = atan2(end[1] - before[1], end[0] - before[0])
    sides = [(end[0] - 6 * cos(angle + turn), end[1] - 6 * sin(angle + turn)) for turn in (0.5, -0.5)]
    return f"M{_pair(sides[0])}L{_pair(end)}L{_pair(sides[1])}"


def _with_subscripts(words: Words) -> str:
    drop, small = _number(words.size * 0.25), _number(words.size * 0.78)
    content = escape(words.content)
    pieces: list[str] = []
    end, lowered = 0, False
    for match in SUBSCRIPT.finditer(content):
        before = content[end : match.start()] + match[1]
        pieces.append(f'<tspan dy="-{drop}">{before}</tspan>' if lowered else before)
        pieces.append(f'<tspan dy="{drop}" font-size="{small}">{match[2] or match[3]}</tspan>')
        end, lowered = match.end(), True
    rest = content[end:]
    pieces.append(f'<tspan dy="-{drop}">{rest}</tspan>' if lowered and rest else rest)
    return "".join(pieces)
