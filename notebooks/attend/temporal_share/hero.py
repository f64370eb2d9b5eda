"""The landing page's picture: along the dial positions give way to memory. ``python -m notebooks.attend.temporal_share.hero`` draws it."""

from collections.abc import Iterator
from pathlib import Path

from attnlib.files import write_text_atomic
from companion.book.project import find_root
from companion.results.result import Result

PICTURE = Path("book/_story/hero.html")
MARKS = (0, 25, 50, 75, 100)  # per cent of the sentences that may change their word order
SHARES = {"temporal": "temporal_share", "residual": "residual_share"}
LEFT, RIGHT, TOP, BOTTOM = 52, 296, 34, 214
ALT = (
    "Two lines over the share of sentences that change their word order, from none to all. The share of word position in what "
    "decides where the network looks falls from {temporal[0]} to {temporal[1]} %; that of memory of the sentence rises from "
    "{residual[0]} to {residual[1]} %. Below, five words keep their order at the left and cross at the right."
)


def shares(result: Result) -> dict[str, list[dict]]:
    """The two shares at each mark of the dial, recurrent networks with attention, as intervals over networks."""
    marks = [result.values["by_task"][f"reordering_{mark}"]["AED"] for mark in MARKS]
    return {part: [mark[name] for mark in marks] for part, name in SHARES.items()}


def across(mark: float) -> float:
    return LEFT + (RIGHT - LEFT) * mark / 100


def up(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def line(part: str, intervals: list[dict]) -> Iterator[str]:
    points = [(across(mark), up(own["value"])) for mark, own in zip(MARKS, intervals, strict=True)]
    above = [(across(mark), up(own["high"])) for mark, own in zip(MARKS, intervals, strict=True)]
    below = [(across(mark), up(own["low"])) for mark, own in zip(MARKS, intervals, strict=True)]
    yield f'<path class="hero-band {part}" d="{path([*above, *reversed(below)])}z"/>'
    yield f'<path class="hero-line {part}" d="{path(points)}"/>'
    for x, y in points:
        yield f'<circle class="hero-point {part}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'


def words_in_order(middle: float, *, turned: bool) -> Iterator[str]:
    """Five words above, the same five below, and lines between them: side by side, or crossing."""
    above, below = BOTTOM + 58, BOTTOM + 96
    for place in range(5):
        x = middle + 15 * (place - 2)
        goal = middle + 15 * (2 - place) if turned else x
        yield f'<path class="hero-wire" d="M{x} {above}L{goal} {below}"/>'
        yield f'<circle class="hero-word" cx="{x}" cy="{above}" r="3.5"/>'
        yield f'<circle class="hero-word" cx="{goal}" cy="{below}" r="3.5"/>'


def hero(result: Result) -> str:
    """The figure as HTML with its SVG inside, which follows the theme."""
    lines = shares(result)
    ends = {part: [round(100 * own["value"]) for own in (line[0], line[-1])] for part, line in lines.items()}
    names = {"temporal": ("position", "in the sentence"), "residual": ("memory", "of the words so far")}
    drawn = [f'<svg viewBox="0 0 460 330" role="img" aria-label="{ALT.format(**ends)}">']
    drawn.append('<text class="quiet" x="4" y="16">What decides where the network looks</text>')
    for share in (0, 0.5, 1):
        drawn.append(f'<path class="hero-grid" d="M{LEFT} {up(share):.0f}H{RIGHT}"/>')
        drawn.append(f'<text class="quiet" x="{LEFT - 8}" y="{up(share) + 5:.0f}" text-anchor="end">{share:.0%}</text>'.replace("%<", " %<"))
    for part, intervals in lines.items():
        drawn += line(part, intervals)
        y = up(intervals[-1]["value"])
        name, about = names[part]
        drawn.append(f'<text class="{part}-word strong" x="{RIGHT + 12}" y="{y:.0f}">{name} {ends[part][1]} %</text>')
        drawn.append(f'<text class="{part}-word" x="{RIGHT + 12}" y="{y + 18:.0f}">{about}</text>')
        start = up(intervals[0]["value"])
        beside = start - 9 if part == "temporal" else start + 15
        drawn.append(f'<text class="{part}-word strong" x="{LEFT + 12}" y="{beside:.0f}">{ends[part][0]} %</text>')
    for mark, word in ((0, "none"), (50, "half"), (100, "all")):
        drawn.append(f'<text class="quiet" x="{across(mark):.0f}" y="{BOTTOM + 20}" text-anchor="middle">{word}</text>')
    drawn.append(f'<text class="quiet" x="{across(50):.0f}" y="{BOTTOM + 40}" text-anchor="middle">sentences that change their word order</text>')
    drawn += words_in_order(across(0) + 6, turned=False)
    drawn += words_in_order(across(100) - 6, turned=True)
    drawn.append(f'<text class="quiet" x="{across(50):.0f}" y="{BOTTOM + 82}" text-anchor="middle">order kept → turned</text>')
    return f'<figure class="hero-picture">{"".join(drawn)}</svg></figure>\n'


def main() -> None:
    root = find_root()
    write_text_atomic(root / PICTURE, hero(Result.load(root / "results" / "paper" / "temporal_share.json")))


if __name__ == "__main__":
    main()
