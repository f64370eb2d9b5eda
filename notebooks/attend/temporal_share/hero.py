"""The landing page's picture: how far attention moves when position, memory or word are exchanged.

``python -m notebooks.attend.temporal_share.hero`` draws it.
"""

from collections.abc import Iterator
from pathlib import Path

from attnlib.files import write_text_atomic
from companion.book.project import find_root
from companion.results.result import Result

PICTURE = Path("book/_story/hero.html")
MARKS = (0, 25, 50, 75, 100)  # per cent of the sentences that may change their word order
MOVED = {"temporal": "temporal_moves", "residual": "residual_moves", "input": "input_moves"}  # by an exchange
LEFT, RIGHT, TOP, BOTTOM = 52, 296, 34, 214
ALT = (
    "Three lines over the share of sentences that may change their word order, from none to all. "
    "They show how much of the attention moves when a part of the queries, or of the keys, is exchanged. "
    "For position it falls from {temporal[0]} to {temporal[1]} %. For memory it rises from {residual[0]} to "
    "{residual[1]} %, for the word from {input[0]} to {input[1]} %. "
    "Below, four words keep their order at the left; at the right their two phrases change places."
)
NAMES = {"temporal": "position", "residual": "memory", "input": "word"}
# Numbers at the left ends are above their lines, or below.
CLEAR = {"temporal": -9, "residual": -19, "input": 19}
NUDGED = {"temporal": -5, "residual": 5, "input": 0}  # labels of neighbours at the right end, apart


def attention_moved(result: Result) -> dict[str, list[dict]]:
    """Return how far attention moves at each setting of the dial, by the part that is exchanged."""
    settings = [result.values["by_task"][f"reordering_{mark}"]["AED"] for mark in MARKS]
    return {part: [setting[name] for setting in settings] for part, name in MOVED.items()}


def across(mark: float) -> float:
    return LEFT + (RIGHT - LEFT) * mark / 100


def up(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def line(part: str, intervals: list[dict]) -> Iterator[str]:
    points = [(across(mark), up(share["value"])) for mark, share in zip(MARKS, intervals, strict=True)]
    above = [(across(mark), up(share["high"])) for mark, share in zip(MARKS, intervals, strict=True)]
    below = [(across(mark), up(share["low"])) for mark, share in zip(MARKS, intervals, strict=True)]
    yield f'<path class="hero-band {part}" d="{path([*above, *reversed(below)])}z"/>'
    yield f'<path class="hero-line {part}" d="{path(points)}"/>'
    for x, y in points:
        yield f'<circle class="hero-point {part}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'


def words_in_order(middle: float, *, turned: bool) -> Iterator[str]:
    """Draw two phrases of two words above and below, with lines between them: side by side, or crossing."""
    above, below = BOTTOM + 58, BOTTOM + 96
    places = [middle + shift for shift in (-26, -12, 12, 26)]
    goals = places[2:] + places[:2] if turned else places
    for x, goal in zip(places, goals, strict=True):
        yield f'<path class="hero-wire" d="M{x} {above}L{goal} {below}"/>'
        yield f'<circle class="hero-word" cx="{x}" cy="{above}" r="3.5"/>'
        yield f'<circle class="hero-word" cx="{goal}" cy="{below}" r="3.5"/>'


def label(text: str, x: float, y: float, *, look: str = "quiet", anchor: str = "start") -> str:
    return f'<text class="{look}" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{text}</text>'


def hero(result: Result) -> str:
    """Return the figure as HTML with its SVG inside, which follows the theme."""
    lines = attention_moved(result)
    ends = {
        part: [round(100 * share["value"]) for share in (intervals[0], intervals[-1])]
        for part, intervals in lines.items()
    }
    middle = across(50)
    drawn = [f'<svg viewBox="0 0 460 330" role="img" aria-label="{ALT.format(**ends)}">']
    drawn.append(label("Attention moved by an exchange in queries or keys", 4, 16))
    for per_cent in (0, 50, 100):
        y = up(per_cent / 100)
        drawn.append(f'<path class="hero-grid" d="M{LEFT} {y:.0f}H{RIGHT}"/>')
        drawn.append(label(f"{per_cent} %", LEFT - 8, y + 5, anchor="end"))
    for part, intervals in lines.items():
        drawn += line(part, intervals)
        first, last = (up(share["value"]) for share in (intervals[0], intervals[-1]))
        strong = f"{part}-word strong"
        drawn.append(
            label(f"{NAMES[part]} {ends[part][1]} %", RIGHT + 12, last + 5 + NUDGED[part], look=strong)
        )
        drawn.append(label(f"{ends[part][0]} %", LEFT + 5, first + CLEAR[part], look=strong))
    for mark, word in ((0, "none"), (50, "half"), (100, "all")):
        drawn.append(label(word, across(mark), BOTTOM + 20, anchor="middle"))
    drawn.append(label("sentences that may change their word order", middle, BOTTOM + 40, anchor="middle"))
    kept, reversed_ = LEFT - 12, RIGHT + 30
    drawn += words_in_order(kept, turned=False)
    drawn += words_in_order(reversed_, turned=True)
    between = (kept + reversed_) / 2
    drawn.append(label("order kept → phrases reversed", between, BOTTOM + 82, anchor="middle"))
    return f'<figure class="hero-picture">{"".join(drawn)}</svg></figure>\n'


def main() -> None:
    root = find_root()
    write_text_atomic(root / PICTURE, hero(Result.load(root / "results" / "paper" / "temporal_share.json")))


if __name__ == "__main__":
    main()
