"""What "Take attention apart" shows besides its network: learning curves, and pictures that do not move.

``python -m notebooks.shared.story`` writes both; a headless Chromium draws the pictures by the page's script.
"""

import json
import re
from pathlib import Path

import pandas as pd

from attnlib.files import write_text_atomic
from companion.book.project import find_root
from companion.results.result import Result

PAGE = Path("book/take_attention_apart.md")
SCRIPTS = Path("book/_files/instruments")
LEARNING = SCRIPTS / "story" / "learning.js"
PICTURES = Path("book/_story")
HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>Story</title>"
)


def learning(result: Result) -> dict:
    """Networks that learn to copy permutations: accuracy, and attention on the right word.

    The latter in multiples of uniform attention.
    """
    courses = pd.DataFrame(result.tables["courses"])
    learned = courses[(courses["kind"] == "permutation") & (courses["network"] == "learned")]
    steps = sorted(learned["steps"].unique().tolist())
    ways = {
        row["seed"]: row["way"]
        for row in result.tables["outcomes"]
        if (row["kind"], row["network"]) == ("permutation", "learned")
    }
    networks = []
    for seed, course in learned.sort_values("steps").groupby("seed", sort=True):
        weight = result.config["length"] * course["attention_right"]
        networks.append(
            {
                "way": ways[seed],
                "accuracy": [round(float(value), 3) for value in course["accuracy"]],
                "right": [float(f"{value:.3g}") for value in weight],
            }
        )
    return {"name": "learning", "judged": result.config["steps"], "steps": steps, "networks": networks}


def stage_of(page: str) -> str:
    """The HTML of the page's live picture."""
    return re.search(r"\{raw\} html\n(<div class=\"instrument story\".*?)```", page, re.DOTALL)[1]


def alone(root: Path) -> str:
    """The story as a page by itself: its stage, and a section for each step."""
    source = (root / PAGE).read_text(encoding="utf-8")
    steps = len(
        json.loads(re.search(r"<script type=\"application/json\">(.*?)</script>", source)[1])["right"]
    )
    sections = "".join(section_of(root, step) for step in range(1, steps + 1))
    return f"{HEAD}<section>{stage_of(source)}{sections}</section></html>"


def section_of(root: Path, step: int) -> str:
    """A step without its words: three options, an answer, and the picture that is kept of it, if any."""
    kept = root / PICTURES / f"{step}.html"
    picture = kept.read_text(encoding="utf-8") if kept.is_file() else ""
    options = "".join(f"<li>option {letter}</li>" for letter in "abc")
    question = f'<div class="story-question"><ul>{options}</ul></div>'
    answer = f'<div class="story-answer"><p>Answer {step}.</p></div>'
    return f"<section><h2>Step {step}</h2><p>…</p>{question}{answer}{picture}</section>"


def pictures(root: Path, folder: Path) -> list[str]:
    """The picture of each step as SVG, by the script of the page; ``folder`` is for the page that runs it."""
    from playwright.sync_api import sync_playwright

    from workflows.pdf import CHROMIUM

    (folder / "_static").mkdir()
    (folder / "_static" / "instruments").symlink_to(root / SCRIPTS)
    page_path = folder / "index.html"
    page_path.write_text(alone(root), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(page_path.as_uri())
        page.wait_for_selector(".stage[data-network]")
        steps = page.locator("section > section").count()
        drawn = [
            page.evaluate("step => Instruments.storyPicture(step)", step) for step in range(1, steps + 1)
        ]
        browser.close()
    return drawn


def main() -> None:
    from tempfile import TemporaryDirectory

    root = find_root()
    courses = learning(Result.load(root / "results" / "paper" / "permutation_copying.json"))
    text = json.dumps(courses, separators=(",", ":"))
    write_text_atomic(root / LEARNING, f"// Made by notebooks/shared/story.py.\nInstruments.give({text});\n")
    with TemporaryDirectory() as folder:
        drawn = pictures(root, Path(folder))
    (root / PICTURES).mkdir(exist_ok=True)
    for step, picture in enumerate(drawn, 1):
        figure = f'<figure class="story-picture">{picture}</figure>\n'
        write_text_atomic(root / PICTURES / f"{step}.html", figure)


if __name__ == "__main__":
    main()
