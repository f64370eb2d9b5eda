"""Renew the archive's answers after an edit that cannot have changed them, by asking the code of both sides.

    git worktree add /tmp/before COMMIT     # where the answers were made
    python -m attnlib.experiments.renew --before /tmp/before --archive results/paper/models

An answer is kept under a hash of the code that computes it, and its model under one of the code that trains
it, so that any edit of this code makes it old. For every measure, the cheapest archived model of each kind,
whatever its sizes and numbers, is trained (a *witness*) and measured by the code before and by today's. Where
they agree to the last digit kept, for every witness of a measure, all of its answers by the code before get
the name of today's; where one differs, none of that measure does. Archived answers are not what is compared:
another processor gives a trained network other last digits.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import torch

from attnlib.errors import AttnlibError, BadInput
from attnlib.experiments.old_answers import Old, old_answers, witnesses
from attnlib.training.allocator import keep_freed_memory
from attnlib.training.archive import Archive
from attnlib.training.store import Store

# Run in the checkout before: keys of the specs on standard input by the code there.
_KEYS = """
import json, sys
from attnlib.recipes.recipe import RecipeSpec
from attnlib.training.keys import model_key
from attnlib.training.spec import ModelSpec
specs = map(json.loads, sys.stdin)
kinds = ((RecipeSpec if "recipe" in spec else ModelSpec, spec) for spec in specs)
print(*(model_key(kind.from_json(json.dumps(spec))) for kind, spec in kinds), sep="\\n")
"""


def renew(old: Iterable[Old], before: Path, store: Store, archive: str | Path) -> dict[str, str]:
    """Compare what the code before and today's find of the witnesses, and move what these vouch for.

    Args:
        old: of models that the code before has, see :func:`of_code_before`.
        before: folder of what the code before found of the witnesses, see :func:`answered_before`.
        store: the same trained models; without an archive, or it would be asked.

    Returns:
        measure → how many answers were renewed, or the first difference where none were.
    """
    old = list(old)
    chosen = witnesses(old)
    speaking = {witness.kind for witness in chosen}
    refused = {
        one.measure: f"not renewed: no witness for {one.asked.spec.setting}"
        for one in old
        if one.kind not in speaking
    }
    for witness in chosen:
        path = before / witness.file.name
        measured = json.loads(path.read_text(encoding="utf-8"))["measured"] if path.is_file() else {}
        if witness.name not in measured:
            refused[witness.measure] = "not renewed: the code before is not what this answer was made with"
        elif where := difference(measured[witness.name], witness.asked.answer(store)):
            refused[witness.measure] = f"not renewed: {witness.asked.spec.setting} differs: {where}"
    outcome = dict.fromkeys((one.measure for one in old), 0)
    for one in old:
        if one.measure not in refused:
            Archive(archive).move(one.file, one.name, one.asked.spec, one.today)
            outcome[one.measure] += 1
    return {measure: refused.get(measure, f"{number} renewed") for measure, number in outcome.items()}


def of_code_before(checkout: Path, old: Iterable[Old]) -> list[Old]:
    """Those whose model the code of another checkout would keep in the very file they are in."""
    old = list(old)
    lines = "\n".join(one.asked.spec.to_json() for one in old)
    keys = _python(checkout, "-c", _KEYS, input=lines, stdout=subprocess.PIPE).split()
    return [one for one, key in zip(old, keys, strict=True) if one.file.stem == key]


def answered_before(checkout: Path, old: Iterable[Old], profile: str, models: str, folder: Path) -> Path:
    """What the code of another checkout finds of the witnesses' models, trained where need be."""
    keys = dict.fromkeys(witness.file.stem for witness in witnesses(old))
    places = ["--archive", str(folder), "--models", str(Path(models).resolve())]
    _python(checkout, "-m", "attnlib.experiments.answer", *keys, "--profile", profile, *places)
    return folder


def _python(checkout: Path, *words: str, **options) -> str:
    """Run the code of a checkout.

    Raises:
        BadInput: it ended with an error, which is on standard error.
    """
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve())}
    done = subprocess.run([sys.executable, *words], cwd=checkout, env=environment, text=True, **options)
    if done.returncode != 0:
        raise BadInput(f"the code in {checkout} ended with {done.returncode}; see above")
    return done.stdout or ""


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
                print(f"{one.seconds:7.0f} s  {one.asked.spec.setting}: {one.measure}")
            return 0
        if not (old := of_code_before(options.before, old)):
            print(f"nothing to renew: no old answer is of the code in {options.before}")
            return 0
        with tempfile.TemporaryDirectory() as folder:
            before = answered_before(options.before, old, options.profile, options.models, Path(folder))
            outcome = renew(old, before, Store(options.models), options.archive)
    except AttnlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for measure, told in outcome.items():
        print(f"{measure}: {told}")
    return 1 if any("not renewed" in told for told in outcome.values()) else 0


if __name__ == "__main__":
    keep_freed_memory()
    sys.exit(main())
