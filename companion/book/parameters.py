"""The parameters cell of a notebook, written from the settings of its experiment.

``Config`` says each setting once: its name, type and default in the field, its help under ``Attributes:`` in
the docstring. Several names may share an entry, and entries a line (``width: of states; steps: updates``).
The cell has the first sentence. A setting whose help begins with "set by the profile" is no parameter.

``python -m companion.book.parameters --write`` writes the cells; without ``--write`` it names those that
differ.
"""

import argparse
import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path

from attnlib.errors import BadInput, UnknownName
from companion.book.project import PROFILES, Figure, Project, discover, find, find_root
from companion.data.text import read_parallel
from companion.results import registry
from companion.results.config import path_fields, plain
from companion.results.request import Request

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


# A notebook's parameters: which there are, and what a word of the command line means for each of them.

TAG = "parameters"
FEWEST_PAIRS = 10


def parameters_cell(cells: Iterable[Mapping], notebook: str) -> Mapping:
    """The cell tagged ``parameters``.

    Raises:
        BadInput: there is none, or several; papermill would only warn, and run with the defaults.
    """
    tagged = [cell for cell in cells if TAG in cell.get("metadata", {}).get("tags", [])]
    if len(tagged) != 1:
        found = "no cell" if not tagged else f"{len(tagged)} cells"
        raise BadInput(
            f"{notebook} has {found} tagged `{TAG}`; exactly one is needed, for its parameters and defaults: "
            f"write {{code-cell}} with the line `:tags: [{TAG}]`"
        )
    return tagged[0]


def defaults(source: str, notebook: str) -> dict[str, object]:
    """The parameters that a cell assigns, with their defaults.

    >>> defaults('profile = "quick"\\ntask = None  # one of the tasks', "attend/x")
    {'profile': 'quick', 'task': None}

    Raises:
        BadInput: a line that is not ``name = literal``.
    """
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        raise BadInput(
            f"{notebook}: the parameters cell is not Python, line {error.lineno}: {error.msg}"
        ) from error
    found: dict[str, object] = {}
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            target, value = None, None
        if not isinstance(target, ast.Name):
            raise BadInput(f"{notebook}: line {node.lineno} of the parameters cell is not `name = value`")
        try:
            found[target.id] = ast.literal_eval(value)
        except ValueError as error:
            raise BadInput(
                f"{notebook}: the default of {target.id!r} in the parameters cell is not a plain value"
            ) from error
    return found


def split_assignments(words: Iterable[str]) -> dict[str, str]:
    """``["task=scan", "seeds=0,1"]`` as ``{"task": "scan", "seeds": "0,1"}``.

    Raises:
        BadInput: a word without ``=``, or one name twice.
    """
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise BadInput(f"-p {word}: expected name=value, as in -p task=scan")
        if name in found:
            raise BadInput(f"-p {word}: {name!r} is given twice, as {found[name]!r} before")
        found[name] = value.strip()
    return found


def check_known(names: Iterable[str], known: Iterable[str]) -> None:
    """Nothing when every name is a parameter of the notebook.

    Raises:
        UnknownName: for the first that is not, with the nearest.
    """
    known = tuple(known)
    for name in names:
        if name not in known:
            raise UnknownName("parameter", name, known)


def read_request(project: Project, name: str, profile: str, words: Iterable[str]) -> Request:
    """What ``attnlib run NAME --profile PROFILE -p WORD …`` asks for, every word checked and typed.

    Paths are seen from the caller's folder.

    Raises:
        UnknownName: a figure, profile or parameter that there is not.
        BadInput: a value of the wrong type; text files that do not match, or have next to nothing in them.
    """
    figure = find(project, name)
    if profile not in PROFILES:
        raise UnknownName("profile", profile, PROFILES)
    given: dict[str, object] = split_assignments(words)
    if not given:
        return Request(figure.id, profile)
    if "profile" in given:
        raise BadInput(f"-p profile={given['profile']}: say --profile {given['profile']} instead")
    check_known(given, (known for known in notebook_parameters(figure) if known != "profile"))
    for path in path_fields(Request(figure.id, profile).standard):
        if path in given:
            given[path] = str(Path(str(given[path])).expanduser().resolve())
    typed = plain(Request(figure.id, profile, given).config)
    if given.get("source") and given.get("target"):
        check_parallel(str(given["source"]), str(given["target"]))
    return Request(figure.id, profile, {name: typed[name] for name in given})


def notebook_parameters(figure: Figure) -> dict[str, object]:
    """The parameters of a figure's notebook with their defaults.

    Raises:
        BadInput: the notebook has not exactly one cell tagged ``parameters``, or it is not plain assignments.
    """
    import jupytext

    cell = parameters_cell(jupytext.read(figure.path).cells, figure.id)
    return defaults(cell["source"], figure.id)


def check_parallel(source: str | Path, target: str | Path) -> None:
    """Refuse a reader's two text files before any work is begun.

    Raises:
        BadInput: they differ in length, are not UTF-8, or have fewer than ten pairs of lines with words on
            both sides, of which a tenth is held out.
        DataUnavailable: a file cannot be read. CorruptFile: a broken gzip file.
    """
    pairs = sum(bool(a.strip() and b.strip()) for a, b in zip(*read_parallel(source, target), strict=True))
    if pairs < FEWEST_PAIRS:
        raise BadInput(
            f"{source} and {target} have {pairs} pairs of lines with words on both sides; at least "
            f"{FEWEST_PAIRS} are needed, since a tenth is held out"
        )


if __name__ == "__main__":
    raise SystemExit(main())
