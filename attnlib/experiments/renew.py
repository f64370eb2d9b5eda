"""Renew the archive's answers after an edit that cannot have changed them, by asking the code of both sides.

    git worktree add /tmp/before COMMIT     # where the answers were made
    python -m attnlib.experiments.renew --before /tmp/before --archive results/paper/models

An answer is kept under a hash of the code that computes it, so that any edit of this code makes it old. For
every measure, the cheapest archived model of each architecture is trained (a *witness*) and measured by the
code before and by today's. Where they agree to the last digit kept, for every witness of a measure, all of
its answers by the code before get the name of today's; where one differs, none of that measure does. Archived
answers are not what is compared: another processor gives a trained network other last digits.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from attnlib.errors import AttnlibError
from attnlib.experiments.answer import all_asks, name_of
from attnlib.experiments.asks import Ask
from attnlib.files import write_text_atomic
from attnlib.recipes.recipe import RecipeSpec
from attnlib.training.archive import Archive
from attnlib.training.keys import model_key
from attnlib.training.store import Store


@dataclass(frozen=True)
class Old:
    """An archived answer to a question of today, under the name of other code."""

    asked: Ask
    name: str
    seconds: float  # that training its model took

    @property
    def today(self) -> str:
        """The name that today's code would give it."""
        return name_of(self.asked)


def old_answers(profile: str, archive: str | Path) -> list[Old]:
    """The answers in an archive that stand under a name of other code than today's."""
    kept = Archive(archive)
    found = []
    for asks in all_asks(profile).values():
        path = kept.path(asks[0].spec)
        if not path.is_file():
            continue
        content = json.loads(path.read_text(encoding="utf-8"))
        for asked in asks:
            today = name_of(asked)
            question = today.rpartition("-")[0]
            found += [
                Old(asked, name, content["history"]["seconds"])
                for name in content["measured"]
                if name != today and name.rpartition("-")[0] == question
            ]
    return found


def witnesses(old: Iterable[Old]) -> list[Old]:
    """For every name of an answer, the cheapest model of each architecture or recipe."""
    cheapest: dict[tuple[str, str], Old] = {}
    for one in sorted(old, key=lambda one: (one.seconds, str(one.asked.spec))):
        spec = one.asked.spec
        cheapest.setdefault(
            (one.name, spec.recipe if isinstance(spec, RecipeSpec) else spec.architecture), one
        )
    return list(cheapest.values())


def renew(old: Iterable[Old], before: Archive, store: Store, archive: str | Path) -> dict[str, str]:
    """Compare what the code before and today's find of the witnesses, and rename what these vouch for.

    Args:
        old: see :func:`old_answers`.
        before: what the code before found of the witnesses, see :func:`answered_before`.
        store: the same trained models; without an archive, or it would be asked.

    Returns:
        old name → today's name for what was renewed, or the first difference for what was not.
    """
    old = list(old)
    outcome = {one.name: one.today for one in old}
    for witness in witnesses(old):
        earlier = before.get(witness.asked.spec, witness.name)
        if earlier is None:
            outcome[witness.name] = "not renewed: the code before is not what this answer was made with"
        elif where := difference(earlier, witness.asked.answer(store)):
            outcome[witness.name] = f"not renewed: {witness.asked.spec.setting} differs: {where}"
    renamed = defaultdict(dict)
    for one in old:
        if outcome[one.name] == one.today:
            renamed[Archive(archive).path(one.asked.spec)][one.name] = one.today
    for path, names in renamed.items():
        content = json.loads(path.read_text(encoding="utf-8"))
        content["measured"] = {names.get(name, name): answer for name, answer in content["measured"].items()}
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        write_text_atomic(path, text + "\n")
    return outcome


def answered_before(checkout: Path, old: Iterable[Old], profile: str, models: str, folder: Path) -> Archive:
    """What the code of another checkout finds of the witnesses' models, trained where need be."""
    keys = dict.fromkeys(model_key(witness.asked.spec) for witness in witnesses(old))
    command = [sys.executable, "-m", "attnlib.experiments.answer", *keys, "--profile", profile]
    command += ["--archive", str(folder), "--models", str(Path(models).resolve())]
    subprocess.run(command, cwd=checkout, check=True)
    return Archive(folder)


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
                print(f"{one.seconds:7.0f} s  {one.asked.spec.setting}: {one.name}")
            return 0
        with tempfile.TemporaryDirectory() as folder:
            before = answered_before(options.before, old, options.profile, options.models, Path(folder))
            outcome = renew(old, before, Store(options.models), options.archive)
    except AttnlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for before, after in outcome.items():
        print(f"{before} → {after}")
    return 1 if any("not renewed" in after for after in outcome.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
