"""Prose that a native reader enjoys: CONTRIBUTING.md, "Write prose", as far as a program can check it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.tables import beside

ROOT = Path(__file__).resolve().parents[2]
FILES = [path for room in ("notebooks", "book", "claims") for path in sorted((ROOT / room).rglob("*.md"))]
FILES += [ROOT / "README.md", *sorted((ROOT / "claims").glob("*.yaml"))]  # what claims say is on pages
PAGES = {path.relative_to(ROOT).as_posix(): path for path in FILES}
RULES = beside(__file__, "prose")
BULLET = r"\s*(?:[-*#]+|\d+\.) "
ABBREVIATED = r"(?<!et al)(?<!e\.g)(?<!i\.e)"  # after which a full stop ends no sentence
SENTENCE_ENDS = re.compile(rf"{ABBREVIATED}[.!?][*_)]*\s+(?=[A-Z*_(\[])|\n\s*\n|\n(?={BULLET})")
NUMBER = re.compile(r"(?<![\w.,])[−+-]?\d[\d.,]*")


def texts_of(page: str, source: str) -> Iterator[tuple[int, str]]:
    """Line and text of what a reader sees: Markdown, captions and alternative texts, or words of claims."""
    if page.endswith(".yaml"):
        scalars = (event for event in yaml.parse(source) if isinstance(event, yaml.ScalarEvent))
        yield from ((event.start_mark.line + 1, event.value) for event in scalars if " " in event.value)
        return
    prose = source
    for pattern, word in RULES["not_prose"].items():
        prose = re.sub(f"(?ms){pattern}", lambda it, to=word: to + "\n" * it[0].count("\n"), prose)
    yield 1, prose
    for cell in re.finditer(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```$", source, re.M | re.S):
        first = source.count("\n", 0, cell.start(1))
        for call in ast.walk(ast.parse(cell[1])):
            if isinstance(call, ast.keyword) and call.arg in ("caption", "finding", "alt"):
                parts = (part for part in ast.walk(call.value) if isinstance(part, ast.Constant))
                yield first + call.lineno, "".join(str(part.value) for part in parts)


def sentences(page: str, source: str) -> Iterator[tuple[int, str]]:
    """Line and text of the sentences of a page."""
    for first, text in texts_of(page, source):
        begin = 0
        for end in [*(match.end() for match in SENTENCE_ENDS.finditer(text)), len(text)]:
            sentence = re.sub(rf"\A\s*(?:{BULLET})?[\s*_]*", "", text[begin:end])
            if re.search(r"[A-Za-z]{2}", sentence):
                yield first + text.count("\n", 0, end - len(sentence)), sentence
            begin = end


def mistakes(page: str, source: str) -> list[str]:
    """``file:line: what is wrong``: tics, house words, long sentences, and sentences with many numbers."""
    faults, full, total = [], [], 0
    free_of_house_words = page.startswith(tuple(RULES["free_of_house_words"]))
    for line, sentence in sentences(page, source):
        total += 1
        if free_of_house_words:
            faults += house_words(page, line, sentence)
        if len(NUMBER.findall(sentence)) > 3:
            full.append(f"{page}:{line}: more than three numbers: {sentence[:60]!r} …")
        for tic in RULES["tics"]:
            for match in re.finditer(tic.replace(" ", r"\s+"), sentence, re.I):
                at = line + sentence.count("\n", 0, match.start())
                faults.append(f"{page}:{at}: {' '.join(match[0].split())!r}")
    return faults + (full if len(full) > total / 10 else [])


def house_words(page: str, line: int, sentence: str) -> list[str]:
    """``file:line: what is wrong``: words of this house, by what to write instead, and too many words."""
    faults = []
    for instead, house in RULES["house"].items():
        for match in re.finditer(house.replace(" ", r"\s+"), sentence, re.I):
            at = line + sentence.count("\n", 0, match.start())
            faults.append(f"{page}:{at}: {' '.join(match[0].split())!r}, write: {instead}")
    words = len(re.findall(r"[\w’'-]+", sentence))
    if words > RULES["most_words"]:
        faults.append(f"{page}:{line}: {words} words: {sentence[:60]!r} …")
    return faults


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_written_in_plain_english(page):
    wrong = mistakes(page, PAGES[page].read_text(encoding="utf-8"))
    assert not wrong, "CONTRIBUTING.md, Write prose, has other words:\n" + "\n".join(wrong)


@pytest.mark.parametrize(("text", "tics"), RULES["examples"])
def test_what_is_found(text, tics):
    assert len(mistakes("page.md", text)) == tics


@pytest.mark.parametrize(("text", "words"), RULES["house_examples"])
def test_house_words_are_found(text, words):
    assert len(mistakes("claims/page.md", text)) == words


def test_a_sentence_of_36_words_is_too_long():
    assert mistakes("claims/page.md", f"One{' and one' * 17}.") == []
    assert len(mistakes("claims/page.md", f"One{' and one' * 18}.")) == 1


def test_a_mistake_is_named_with_its_line():
    assert mistakes("a.md", "# A\n\nGood {verdict}`x =\ny`.\nIt is at\nhand.") == ["a.md:5: 'at hand'"]
    claims = "claims:\n- id: at-hand\n  says: >-\n    What is said\n    is at hand.\n  place: Table 2\n"
    assert mistakes("a.yaml", claims) == ["a.yaml:3: 'at hand'"]
