"""Docstrings, error messages and comments of attnlib are plain English, as the pages of the book are."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tables import beside

ROOT = Path(__file__).resolve().parents[2]
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "attnlib").rglob("*.py"))}
RULES = beside(__file__, "prose")
PAGE_RULES = beside(ROOT / "tests" / "notebooks" / "test_prose_style.py", "prose")
TICS = {pattern: "CONTRIBUTING.md, Write prose, has other words" for pattern in PAGE_RULES["tics"]}
TICS |= {pattern: advice for advice, pattern in RULES["tics"].items()}
ERRORS = re.compile(r"(?:Error|BadInput|CorruptFile|Altered|UnknownName|DataUnavailable|warn)$")
# An example of code, a literal, a role of Sphinx or a quotation is not prose.
NOT_PROSE = re.compile(
    r"^ *Example:$|^ *(?:>>>|\.\.\. ).*(?:\n *\S.*)*|``[^`]*``|:\w+:`[^`]*`|`[^`]*`|\"[^\"\n]*\"", re.M
)
SECTION = re.compile(r"^ *(?:Args|Attributes|Returns|Yields|Raises|Columns):$|^ +\**\w+(?:, \**\w+)*: ", re.M)
SENTENCE_ENDS = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!al)[.!?:;](?=\s)|\n\s*\n")


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring."""
    for node in ast.walk(tree):
        has_docstring = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if has_docstring and ast.get_docstring(node) is not None:
            yield node.body[0].lineno, node.body[0].value.value


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of what an error or a warning says; a value in braces is one word."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not ERRORS.search(ast.unparse(node.func)):
            continue
        for argument in node.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.lineno, argument.value
            elif isinstance(argument, ast.JoinedStr):
                pieces = [
                    part.value if isinstance(part, ast.Constant) else "Value" for part in argument.values
                ]
                yield argument.lineno, "".join(pieces)


def comments(source: str) -> Iterator[tuple[int, str]]:
    """First line and text of every comment; the lines of one are joined."""
    block, first, last = [], 0, -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or re.match(r"#:? *(?:noqa|fmt|pyright|type:)", token.string):
            continue
        line, column = token.start
        is_trailing = bool(token.line[:column].strip())
        if block and (line != last + 1 or is_trailing):
            yield first, " ".join(block)
            block = []
        if not block:
            first = line
        block.append(token.string.lstrip("#: "))
        last = line
    if block:
        yield first, " ".join(block)


def mistakes(source: str) -> list[str]:
    """``line: what is written, and what to write instead``."""
    tree = ast.parse(source)
    faults = []
    for first, text in (*docstrings(tree), *messages(tree), *comments(source)):
        prose = NOT_PROSE.sub(lambda match: re.sub(r"[^\n]+", "code", match[0]), text)
        prose = SECTION.sub(lambda match: "\n" * match[0].count("\n") + ".", prose)
        for sentence in SENTENCE_ENDS.split(prose):
            sentence = " ".join(sentence.split()).lstrip(".")
            for pattern, advice in TICS.items():
                starts_sentence = pattern.startswith("^")  # and then has a capital letter
                for match in re.finditer(pattern, sentence.strip(), 0 if starts_sentence else re.I):
                    faults.append(f"{first}: {match[0]!r} in {sentence.strip()[:70]!r}: {advice}")
    return faults


@pytest.mark.parametrize("name", FILES)
def test_a_module_is_written_in_plain_english(name):
    wrong = mistakes(FILES[name].read_text(encoding="utf-8"))
    assert not wrong, "\n".join(f"{name}:{line}" for line in wrong)


@pytest.mark.parametrize(("source", "count"), RULES["examples"])
def test_what_is_noticed(source, count):
    assert len(mistakes(source)) == count
