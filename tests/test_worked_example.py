"""The worked example of the decomposition prints what its page says."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "book" / "nine_terms.md"


def test_the_example_prints_what_the_page_says():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    example = doctest.DocTestParser().get_doctest(blocks[0], {}, PAGE.name, str(PAGE), 0)
    runner = doctest.DocTestRunner()
    runner.run(example)
    assert runner.summarize().failed == 0
