"""The parameters of a notebook: its cell, written from the settings, and what words of a command line mean.

``Config`` says each setting once: its name and type in the field, its default and description in
`companion.results.config.setting`. The cell has the first sentence of the description. A setting whose
description begins with "set by the profile" is no parameter.

``python -m companion.book.parameters FIGURE …`` writes the cells, without a name those of all figures.
"""

import re
import sys
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from attnlib.errors import BadInput, check_known
from companion.book.project import Figure, Project, discover, find, find_root
from companion.data.own_text import own_lines
from companion.data.text import read_parallel
from companion.results import registry
from companion.results.config import descriptions, path_fields, plain
from companion.results.request import Request
from companion.runs.command import errors_in_a_line

CELL = re.compile(
    r"(?P<head>^```\{code-cell\}[^\n]*\n:tags: \[parameters[^\n]*\n\n)(?P<source>.*?)(?=^```$)",
    re.MULTILINE | re.DOTALL,
)
INTERNAL = "set by the profile"
WIDTH = 120
FEWEST_PAIRS = 10


def parameters(config: type) -> dict[str, str]:
    """Return the descriptions of the settings that are for readers to choose."""
    return {name: text for name, text in descriptions(config).items() if not text.startswith(INTERNAL)}


def cell(config: type, profiles: Mapping[str, object]) -> str:
    """The source of the parameters cell: None leaves a profile's own value, which the comment gives."""
    help_texts = parameters(config)
    column = max(map(len, help_texts)) + len(" = None  ")
    lines = ['profile = "quick"']
    for name, text in help_texts.items():
        values = {profile: _plain(getattr(settings, name)) for profile, settings in profiles.items()}
        given = "; ".join(f"{profile}: {value}" for profile, value in values.items() if value)
        if len(set(values.values())) == 1:
            given = next(iter(values.values()))
        comment = f"{text.partition('. ')[0]}{f' [{given}]' if given else ''}"
        lines += textwrap.wrap(
            comment, WIDTH, break_long_words=False, break_on_hyphens=False,
            initial_indent=f"{f'{name} = None':{column}}# ", subsequent_indent=f"{'':{column}}# ",
        )  # fmt: skip
    return "\n".join(lines) + "\n"


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "" if value is None else str(value)


def written(figure: Figure) -> str:
    """The Markdown of a notebook with its parameters cell as `cell` has it."""
    source = figure.path.read_text(encoding="utf-8")
    experiment = registry.load(figure.experiment)
    if not CELL.search(source):
        raise BadInput(f"{figure.id} has no code cell whose tags begin with `parameters`; write an empty one")
    today = cell(experiment.Config, registry.book_profiles(experiment))
    return CELL.sub(lambda match: match["head"] + today, source, count=1)


@errors_in_a_line
def main(figures: list[str]) -> int:
    """Write the cells that differ, of some figures or all."""
    project = Project(find_root())
    for figure in [find(project, name) for name in figures] or discover(project).values():
        if (today := written(figure)) != figure.path.read_text(encoding="utf-8"):
            figure.path.write_text(today, encoding="utf-8")
            print(f"written: {figure.path}")
    return 0


def split_assignments(words: Iterable[str]) -> dict[str, str]:
    """``["task=scan", "seeds=0,1"]`` as ``{"task": "scan", "seeds": "0,1"}``.

    Raises BadInput: a word without ``=``, or one name twice.
    """
    assigned: dict[str, str] = {}
    for word in words:
        name, equals, value = map(str.strip, word.partition("="))
        if not equals or not name.isidentifier():
            raise BadInput(f"-p {word}: expected name=value, as in -p task=scan")
        if name in assigned:
            raise BadInput(f"-p {word}: {name!r} is given twice, as {assigned[name]!r} before")
        assigned[name] = value
    return assigned


def request_of(figure: str, profile: str, words: Iterable[str]) -> Request:
    """What ``attnlib run FIGURE --profile PROFILE -p WORD …`` asks for, every word checked and typed.

    This is the one place where parameters are read from text; whoever works on the figure later is handed the
    request.

    Raises:
        UnknownName: there is no such profile or parameter.
        BadInput: a value has the wrong type, or text files do not match or have next to nothing in them.
    """
    request = Request(figure, profile)
    given: dict[str, object] = split_assignments(words)
    if not given:
        return request
    if "profile" in given:
        raise BadInput(f"-p profile={given['profile']}: say --profile {given['profile']} instead")
    known = parameters(type(request.standard))
    for name in given:
        check_known("parameter", name, known)
    request = typed(request, given)
    if given.get("source") and given.get("target"):
        check_parallel(request.parameters["source"], request.parameters["target"])
    return request


def typed(request: Request, given: Mapping[str, object]) -> Request:
    """The request with parameters of the types that the settings have, paths as seen from here.

    Raises UnknownName, BadInput: a setting that the experiment cannot use.
    """
    paths = (name for name in path_fields(request.standard) if name in given)
    seen = {name: _seen_from_here(name, str(given[name])) for name in paths}
    config = plain(replace(request, parameters={**given, **seen}).config)
    return replace(request, parameters={name: config[name] for name in given})


def _seen_from_here(name: str, path: str) -> str:
    try:
        return str(Path(path).expanduser().resolve())
    except (ValueError, RuntimeError) as error:  # NUL, half a character, the home of a user who is none
        raise BadInput(f"{name}={path!a} is no path: {error}") from error


def check_parallel(source: str | Path, target: str | Path) -> None:
    """Refuse a reader's own text before any work is begun, also one with next to nothing in it."""
    lines = zip(*read_parallel(source, target), strict=True)
    pairs = sum(bool(a.strip() and b.strip()) for a, b in lines)
    if pairs < FEWEST_PAIRS:
        too_few = f"{source} and {target} have {pairs} pairs of lines with words on both sides"
        raise BadInput(f"{too_few}; at least {FEWEST_PAIRS} are needed, since a tenth is held out")


def own_text_sentences(request: Request) -> list[str]:
    """What is made of a reader's own text, in sentences; none where a request has no such text.

    Raises:
        BadInput, DataUnavailable, CorruptFile: as :func:`companion.data.parallel.parallel`.
    """
    if not request.parameters.keys() & {"data", "source"}:
        return []  # before anything that loads torch, which takes a second of every page

    from companion.data.labelled_sets import own_sentences
    from companion.data.parallel import own_facts

    config = request.config
    if isinstance(getattr(config, "data", None), Path):
        return own_sentences(config.data)
    if not request.parameters.get("source"):
        return []
    if not hasattr(config, "tokenizer"):  # a figure that learns pieces of its lines
        _, _, facts_of_lines = own_lines(config.source, config.target)
        return facts_of_lines.sentences
    links = getattr(config, "links", None) or ""
    facts = own_facts(source=config.source, target=config.target, links=links, tokenizer=config.tokenizer)
    return facts.sentences


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
