"""The parameters cell of a notebook, written from the settings of its experiment.

``Config`` says each setting once: its name, type and default in the field, its help under ``Attributes:`` in
the docstring. Several names may share an entry, and entries a line (``width: of states; steps: updates``).
The cell has the first sentence. A setting whose help begins with "set by the profile" is no parameter.

``python -m companion.book.parameters --write`` writes the cells; without ``--write`` it names those that
differ.
"""

import argparse
import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from attnlib.companion.figures import Figure, discover
from attnlib.companion.project import Project, find_root
from attnlib.errors import BadInput
from attnlib.experiments import registry

CELL = re.compile(
    r"(?P<head>^```\{code-cell\}[^\n]*\n:tags: \[parameters[^\n]*\n\n)(?P<source>.*?)(?=^```$)",
    re.MULTILINE | re.DOTALL,
)
OPENED = re.compile(r"open_page\([^)]*globals\(\)\)")
INTERNAL = "set by the profile"
WIDTH = 120


def documented(config: type) -> dict[str, str]:
    """Setting → its help, from ``Attributes:`` of the class and of those it is derived from.

    Raises:
        BadInput: a setting without help.
    """
    names = [field.name for field in fields(config)]
    known = "|".join(map(re.escape, names))
    entry = re.compile(rf"(?:^|(?<=[;.]) )((?:{known})(?:, (?:{known}))*): ", re.MULTILINE)
    found: dict[str, str] = {}
    for cls in reversed(config.__mro__):
        _, _, text = inspect.cleandoc(cls.__dict__.get("__doc__") or "").partition("Attributes:\n")
        entries = textwrap.dedent(text.split("\n\n")[0]).replace("\n    ", " ")
        parts = entry.split(entries)[1:]  # names, help, names, help, …
        for shared, told in zip(parts[::2], parts[1::2], strict=True):
            found |= dict.fromkeys(shared.split(", "), _without_markup(told).rstrip(".;"))
    if missing := [name for name in names if name not in found]:
        where = f"{config.__module__}.{config.__name__}"
        raise BadInput(f"{where}: no help for {', '.join(missing)} under `Attributes:` of its docstring")
    return {name: found[name] for name in names}


def _without_markup(text: str) -> str:
    return " ".join(re.sub(r":\w+:`~?([^`]+)`", r"\1", text).replace("``", "").split())


def cell(config: type, profiles: Mapping[str, object]) -> str:
    """The source of the parameters cell: None leaves a profile's own value, which the comment gives."""
    told = {name: text for name, text in documented(config).items() if not text.startswith(INTERNAL)}
    column = max(map(len, told)) + len(" = None  ")
    lines = ['profile = "quick"']
    for name, text in told.items():
        values = {profile: _plain(getattr(settings, name)) for profile, settings in profiles.items()}
        given = "; ".join(f"{profile}: {value}" for profile, value in values.items() if value)
        if len(set(values.values())) == 1:
            given = next(iter(values.values()))
        comment = f"{text.partition('. ')[0]}{f' [{given}]' if given else ''}"
        first, *rest = textwrap.wrap(
            comment, WIDTH - column - 2, break_long_words=False, break_on_hyphens=False
        )
        lines.append(f"{f'{name} = None':{column}}# {first}")
        lines += [f"{'':{column}}# {line}" for line in rest]
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
    today = cell(experiment.Config, experiment.PROFILES)
    return CELL.sub(lambda match: match["head"] + today, source, count=1)


def takes_globals(path: Path) -> bool:
    """Whether a notebook opens its page with ``globals()``, and so takes every setting as a parameter."""
    return bool(OPENED.search(path.read_text(encoding="utf-8")))


def main(arguments: list[str] | None = None) -> int:
    """Command line of this module; 1 where a cell differs and was not written."""
    parser = argparse.ArgumentParser(
        prog="python -m companion.book.parameters", description="Parameter cells."
    )
    parser.add_argument("figures", nargs="*", help="ids, such as primer/source_reversal (default: all)")
    parser.add_argument("--write", action="store_true", help="write the cells that differ")
    given = parser.parse_args(arguments)
    figures = discover(Project(find_root()))
    chosen = [figures[name] for name in given.figures]
    chosen = chosen or [figure for figure in figures.values() if takes_globals(figure.path)]
    differ = [figure for figure in chosen if written(figure) != figure.path.read_text(encoding="utf-8")]
    for figure in differ:
        if given.write:
            figure.path.write_text(written(figure), encoding="utf-8")
        print(f"{'written' if given.write else 'differs'}: {figure.path}")
    return int(bool(differ) and not given.write)


if __name__ == "__main__":
    raise SystemExit(main())
