"""The page for those who carry on: its examples are run, in their order, as they are printed."""

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "book" / "inside.md"


def test_the_examples_of_the_page_print_what_it_says():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    examples = doctest.DocTestParser().get_doctest("".join(blocks), {}, "inside.md", str(PAGE), 0)
    runner = doctest.DocTestRunner()
    runner.run(examples)
    assert runner.summarize().failed == 0


def test_the_files_that_the_page_names_exist():
    named = set(
        re.findall(
            r"`((?:attnlib|companion|notebooks|tests|analysis)/[\w/.]+)`", PAGE.read_text(encoding="utf-8")
        )
    )
    missing = [
        name for name in named if not (ROOT / name).exists() and not (ROOT / "attnlib" / name).exists()
    ]
    assert len(named) > 10
    assert missing == []
