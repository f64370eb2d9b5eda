"""The form of a chapter: answer, setup, figure, why, how sure, ten lines of attnlib, takeaways, exercises."""

import ast
import doctest
import re
from pathlib import Path

import pytest

from companion.book.site import parted, words_to_read

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "notebooks").glob("*/*.md"))
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in FILES}
#: What a reader of a chapter of Parts I to IV has on its page; `parted` says what its audit has.
CHAPTERS = {name: parted(source)[0] for name, source in SOURCES.items() if "\naudits: " not in source}
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FOLD = re.compile(r"^(:{3,})\{dropdown\} (?!Answer)[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
OTHER_PAGES_FIGURE = re.compile(r"^<!-- book:figure ", re.MULTILINE)
LAST_SECTIONS = ["How sure this is", "In code", "Takeaways", "Exercises"]

every_chapter = pytest.mark.parametrize("chapter", CHAPTERS)


def cells(source: str) -> list[str]:
    return [match[1] for match in CELL.finditer(source)]


def section(source: str, title: str) -> str:
    """Return a section without its heading; empty where the page has none of this title."""
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", source, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


def folds_and_instruments(source: str) -> int:
    """Count the folds of cells and of prose, answers of exercises apart, and the instruments."""
    folded = sum("hide-cell" in cell for cell in cells(source))
    instruments = sum("page.instrument(" in cell for cell in cells(source))
    return folded + instruments + len(FOLD.findall(source))


def open_figures(source: str) -> int:
    """Count figures that no fold hides, those of other pages too."""
    drawn = sum(cell.count("page.show(") for cell in cells(source) if "hide-cell" not in cell)
    return drawn + len(OTHER_PAGES_FIGURE.findall(source))


def lines_of_code(examples: str) -> list[str]:
    return [line for line in examples.splitlines() if line.startswith((">>> ", "... "))]


def example_of(chapter: str) -> str:
    (example,) = re.findall(r"^```python\n(.*?)^```$", section(CHAPTERS[chapter], "In code"), re.M | re.S)
    return example


def test_the_chapters_are_about_twenty():
    assert 18 <= len(CHAPTERS) <= 22


@every_chapter
def test_a_chapter_is_short(chapter):
    words = words_to_read(CHAPTERS[chapter])
    assert words <= 1100, "move detail below '## Audit', or to a page of the audit part"


@every_chapter
def test_a_chapter_has_at_most_six_places_to_open(chapter):
    assert folds_and_instruments(CHAPTERS[chapter]) <= 6, "move some below '## Audit'"


@every_chapter
def test_a_chapter_has_at_most_three_open_figures(chapter):
    assert 1 <= open_figures(CHAPTERS[chapter]) <= 3, "move some below '## Audit'"


@every_chapter
def test_a_chapter_begins_with_its_question(chapter):
    after_title = CHAPTERS[chapter].split("\n# ", 1)[1].split("\n\n", 1)[1]
    first = " ".join(after_title.split("```{code-cell}")[0].split())
    question = re.match(r"\*\*[^*]+\?\*\* (?=\S)", first)
    assert question, "begin with the question in bold"


@every_chapter
def test_a_chapter_answers_its_question_at_once(chapter):
    after_title = CHAPTERS[chapter].split("\n# ", 1)[1].split("\n\n", 1)[1]
    first = " ".join(after_title.split("```{code-cell}")[0].split())
    question = re.match(r"\*\*[^*]+\?\*\* (?=\S)", first)
    assert len(first[question.end() :].split()) >= 20


@every_chapter
def test_the_setup_is_drawn_before_the_first_figure(chapter):
    source = CHAPTERS[chapter]
    above = source[: source.index("```{code-cell}")]
    assert ":::{drawing}" in above, "draw what is studied below the answer"
    shown = next(cell for cell in cells(source) if "page.show(" in cell)
    assert source.index(":::{drawing}") < source.index(shown)


@every_chapter
def test_a_chapter_ends_with_the_sections_that_all_have(chapter):
    titles = re.findall(r"^## (.*)", CHAPTERS[chapter], re.MULTILINE)
    assert titles[-len(LAST_SECTIONS) :] == LAST_SECTIONS


@every_chapter
def test_a_chapter_has_three_takeaways(chapter):
    assert len(re.findall(r"^\* ", section(CHAPTERS[chapter], "Takeaways"), re.MULTILINE)) == 3


@every_chapter
def test_one_exercise_is_to_predict_the_other_to_run(chapter):
    exercises = section(CHAPTERS[chapter], "Exercises")
    kinds = re.findall(r"^(?:\d\. )?\*\*(?:\d\. )?(Predict|Run)\.\*\*", exercises, re.MULTILINE)
    assert sorted(kinds) == ["Predict", "Run"]


@every_chapter
def test_either_exercise_has_its_answer(chapter):
    exercises = section(CHAPTERS[chapter], "Exercises")
    assert exercises.count("{dropdown} Answer") == 2


@every_chapter
def test_the_exercise_to_run_has_its_command(chapter):
    exercises = section(CHAPTERS[chapter], "Exercises")
    to_run = re.split(r"\bRun\.\*\*", exercises)[1]
    assert "attnlib run " in to_run.split("{dropdown} Answer")[0]


@every_chapter
def test_lines_of_code_fit_beside_the_contents(chapter):
    lines = [line for line in example_of(chapter).splitlines() if len(line) > 81]
    assert lines == [], "at a width of 1280 pixels a reader would have to move them sideways"


@every_chapter
def test_the_code_is_beside_its_equation(chapter):
    text = section(CHAPTERS[chapter], "In code")
    assert "$" in text.split("```python")[0], "show the equation that the lines compute"


@every_chapter
def test_the_code_has_about_ten_lines(chapter):
    code = lines_of_code(example_of(chapter))
    assert 4 <= len(code) <= 18


@every_chapter
def test_the_code_is_of_the_library(chapter):
    code = lines_of_code(example_of(chapter))
    assert any("attnlib" in line for line in code)


@every_chapter
def test_the_code_fits_the_page(chapter):
    assert max(map(len, example_of(chapter).splitlines())) <= 88, "longer lines are cut off on the page"


@every_chapter
def test_the_code_prints_what_the_chapter_says(chapter):
    example = doctest.DocTestParser().get_doctest(example_of(chapter), {}, chapter, None, 0)
    assert any(step.want for step in example.examples), "show what comes out"
    runner = doctest.DocTestRunner()
    runner.run(example)
    assert runner.summarize().failed == 0


@every_chapter
def test_the_code_needs_the_library_alone(chapter):
    """Readers run it as it is, without a checkout of the book."""
    code = "\n".join(line[4:] for line in lines_of_code(example_of(chapter)))
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).partition(".")[0]
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported <= {"attnlib", "torch", "math", "itertools"}


COUNTED = """# A

```{code-cell} python3
:tags: [hide-input]

page.show(a)
```

```{code-cell} python3
:tags: [hide-cell]

page.show(b)
```

```{code-cell} python3
page.instrument(c)
```

<!-- book:figure attend/rise -->

:::{dropdown} More
Text.
:::

:::{dropdown} Answer
Text.
:::
"""


def test_a_fold_of_a_cell_hides_its_figure():
    assert open_figures(COUNTED) == 2


def test_answers_are_no_folds():
    assert folds_and_instruments(COUNTED) == 3
