"""Renew the archive's answers after an edit that cannot have changed them, by asking the code of both sides.

    git worktree add /tmp/before COMMIT     # where the answers were made
    python -m attnlib.experiments.renew --before /tmp/before --archive results/paper/models

An answer is kept under a hash of the code that computes it, and its model under one of the code that trains
it, so that any edit of this code makes it old. For every measure, the cheapest archived model of each
architecture, or of each recipe and its choices, is trained (a *witness*) and measured by the code before and
by today's. Where they agree to the last digit kept, for every witness of a measure, all of its answers by the
code before get the name of today's; where one differs, none of that measure does. Archived answers are not
what is compared: another processor gives a trained network other last digits.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from attnlib.errors import AttnlibError
from attnlib.experiments.answer import all_asks, name_of
from attnlib.experiments.asks import Ask, specs_of
from attnlib.files import write_text_atomic
from attnlib.recipes.recipe import RecipeSpec
from attnlib.training.archive import Archive, Spec
from attnlib.training.keys import model_key
from attnlib.training.store import Store


@dataclass(frozen=True)
class Old:
    """An archived answer to a question of today, by other code or of a model that other code trained."""

    asked: Ask
    file: Path  # in the archive
    name: str
    seconds: float  # that training its model took

    @property
    def today(self) -> str:
        """The name that today's code would give it."""
        return name_of(self.asked)

    @property
    def vouched(self) -> str:
        """What a witness speaks for: measure, settings and code, whatever was measured beside."""
        return re.sub(r",?with [^,)]+", "", self.name)


def old_answers(profile: str, archive: str | Path) -> list[Old]:
    """The answers in an archive that today's code would keep under another name or in another file."""
    files = _by_spec(archive)
    asks = [asked for own in all_asks(profile).values() for asked in own]
    today_of = {
        path.stem: model_key(spec)
        for spec in specs_of(asks)
        for path, _ in files.get(_identity(asdict(spec)), ())
    }
    found = []
    for asked in asks:
        today, place = name_of(asked), Archive(archive).path(asked.spec)
        for path, content in files.get(_identity(asdict(asked.spec)), ()):
            for name in content["measured"]:
                same = _question(name, today_of) == _question(today, {})
                if (
                    same
                    and (path, name) != (place, today)
                    and Archive(archive).get(asked.spec, today) is None
                ):
                    found.append(Old(asked, path, name, content["history"]["seconds"]))
    return found


def _by_spec(archive: str | Path) -> dict[str, list[tuple[Path, dict]]]:
    """The files of an archive by what their models were made from, the code left out."""
    found = defaultdict(list)
    for path in sorted(Path(archive).glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        found[_identity(content["spec"])].append((path, content))
    return found


def _identity(spec: dict) -> str:
    return json.dumps(spec, sort_keys=True)


def _question(name: str, today_of: dict[str, str]) -> str:
    """Measure, settings, and what it was measured beside, by the keys of today."""
    question = name.rpartition("-")[0]
    return re.sub(r"with ([^,)]+)", lambda match: f"with {today_of.get(match[1], match[1])}", question)


def witnesses(old: Iterable[Old]) -> list[Old]:
    """For every measure, the cheapest model of each architecture, or of each recipe and its choices."""
    cheapest: dict[tuple, Old] = {}
    for one in sorted(old, key=lambda one: (one.seconds, str(one.asked.spec))):
        cheapest.setdefault((one.vouched, *_branches(one.asked.spec)), one)
    return list(cheapest.values())


def _branches(spec: Spec) -> tuple[str, ...]:
    """What may lead to other code: numbers are sizes, names are choices."""
    if not isinstance(spec, RecipeSpec):
        return (spec.architecture,)
    return spec.recipe, *(value for value in asdict(spec.resolved).values() if isinstance(value, str))


def renew(old: Iterable[Old], before: Path, store: Store, archive: str | Path) -> dict[str, str]:
    """Compare what the code before and today's find of the witnesses, and rename what these vouch for.

    Args:
        old: see :func:`old_answers`.
        before: folder of what the code before found of the witnesses, see :func:`answered_before`.
        store: the same trained models; without an archive, or it would be asked.

    Returns:
        what was vouched for → how many answers were renewed, or the first difference where none were.
    """
    old = list(old)
    refused: dict[str, str] = {}
    for witness in witnesses(old):
        path = before / witness.file.name
        measured = json.loads(path.read_text(encoding="utf-8"))["measured"] if path.is_file() else {}
        if witness.name not in measured:
            refused[witness.vouched] = "not renewed: the code before is not what this answer was made with"
        elif where := difference(measured[witness.name], witness.asked.answer(store)):
            refused[witness.vouched] = f"not renewed: {witness.asked.spec.setting} differs: {where}"
    outcome = dict.fromkeys((one.vouched for one in old), 0)
    for one in old:
        if one.vouched not in refused:
            _move(one, Archive(archive))
            outcome[one.vouched] += 1
    return {vouched: refused.get(vouched, f"{number} renewed") for vouched, number in outcome.items()}


def _move(one: Old, archive: Archive) -> None:
    """Put an answer where today's code looks for it; a file that is left without answers goes."""
    content = json.loads(one.file.read_text(encoding="utf-8"))
    answer = content["measured"].pop(one.name)
    if one.file == archive.path(one.asked.spec) or content["measured"]:
        _write(one.file, content)
    else:
        one.file.unlink()
    place = archive.path(one.asked.spec)
    there = json.loads(place.read_text(encoding="utf-8")) if place.is_file() else content | {"measured": {}}
    there["measured"][one.today] = answer
    _write(place, there)


def _write(path: Path, content: dict) -> None:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    write_text_atomic(path, text + "\n")


def answered_before(checkout: Path, old: Iterable[Old], profile: str, models: str, folder: Path) -> Path:
    """What the code of another checkout finds of the witnesses' models, trained where need be."""
    keys = dict.fromkeys(witness.file.stem for witness in witnesses(old))
    command = [sys.executable, "-m", "attnlib.experiments.answer", *keys, "--profile", profile]
    command += ["--archive", str(folder), "--models", str(Path(models).resolve())]
    subprocess.run(command, cwd=checkout, env=os.environ | {"PYTHONPATH": str(checkout)}, check=True)
    return folder


def difference(before: object, after: object, place: str = "") -> str:
    """The first place at which two answers differ, with both values; empty where they are equal."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        parts = ((before[key], after[key], f"{place}.{key}") for key in before)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        parts = ((*pair, f"{place}[{i}]") for i, pair in enumerate(zip(before, after, strict=True)))
    else:
        return "" if before == after else f"{place.removeprefix('.')} was {before}, is {after}"
    return next(filter(None, (difference(*part) for part in parts)), "")


def main(arguments: list[str] | None = None) -> int:
    """Parse, renew, and say what was renewed and what was not; exit code 1 where something differs."""
    parser = argparse.ArgumentParser(
        prog="python -m attnlib.experiments.renew",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--profile", default="paper", help="whose experiments ask (default: paper)")
    parser.add_argument(
        "--before",
        type=Path,
        help="a checkout of the code that gave the answers; without one, the witnesses are listed",
    )
    parser.add_argument("--archive", required=True, help="folder of answers")
    parser.add_argument("--models", default="build/models", help="folder of trained models")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    try:
        old = old_answers(options.profile, options.archive)
        if options.before is None:
            for one in witnesses(old):
                print(f"{one.seconds:7.0f} s  {one.asked.spec.setting}: {one.vouched}")
            return 0
        with tempfile.TemporaryDirectory() as folder:
            before = answered_before(options.before, old, options.profile, options.models, Path(folder))
            outcome = renew(old, before, Store(options.models), options.archive)
    except AttnlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for vouched, told in outcome.items():
        print(f"{vouched}: {told}")
    return 1 if any("not renewed" in told for told in outcome.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
