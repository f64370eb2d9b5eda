"""Answers that an edit of the code has made old, and which of them are to be made again as witnesses."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from attnlib.experiments.answer import all_asks, name_of
from attnlib.experiments.asks import Ask, specs_of
from attnlib.recipes.recipe import RecipeSpec
from attnlib.training.archive import Archive, Spec
from attnlib.training.keys import model_key


@dataclass(frozen=True)
class Old:
    """An archived answer to a question of today, by other code or of a model that other code trained.

    Attributes:
        listed: whether an experiment lists it; what follows from answers, it asks without listing.
        seconds: that training its model took.
    """

    asked: Ask
    file: Path
    name: str
    seconds: float
    listed: bool = True

    @property
    def today(self) -> str:
        """The name that today's code would give it."""
        return name_of(self.asked)

    @property
    def measure(self) -> str:
        """Measure, settings and code, whatever was measured beside."""
        return re.sub(r",?with [^,)]+", "", self.name)

    @property
    def kind(self) -> tuple[str, ...]:
        """What a witness speaks for: the measure, and all in the specs that may lead to other code."""
        return self.measure, *map(_choices, (self.asked.spec, *self.asked.beside))


def _choices(spec: Spec) -> str:
    """A recipe or an architecture with its settings but for numbers: those are sizes, the others choices."""
    recipe = isinstance(spec, RecipeSpec)
    settings = asdict(spec.resolved) | {"recipe": spec.recipe} if recipe else asdict(spec)
    chosen = {name: value for name, value in settings.items() if not _numbers(value)}
    return json.dumps(chosen, sort_keys=True, default=str)


def _numbers(value: object) -> bool:
    """A number or several; neither a truth value nor an empty list."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(_numbers, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def old_answers(profile: str, archive: str | Path) -> list[Old]:
    """The answers in an archive that today's code would keep under another name or in another file."""
    files = _by_spec(archive)
    asks = [asked for own in all_asks(profile).values() for asked in own]
    listed = {spec: _identity(spec) for spec in specs_of(asks)}
    today_of = {path.stem: model_key(spec) for spec, own in listed.items() for path, _ in files.get(own, ())}
    found = [
        Old(asked, path, name, content["history"]["seconds"])
        for asked in asks
        if Archive(archive).get(asked.spec, name_of(asked)) is None
        for path, content in files.get(listed[asked.spec], ())
        for name in content["measured"]
        if _question(name, today_of) == _question(name_of(asked), {})
    ]
    # What an experiment asked further, following answers: the same measures of the same recipes.
    known = {name_of(a): a for a in asks if isinstance(a.spec, RecipeSpec) and not a.beside}
    for path, content in (each for own in files.keys() - set(listed.values()) for each in files[own]):
        if "recipe" in content["spec"]:
            spec = RecipeSpec.from_json(json.dumps(content["spec"]))
            found += [
                Old(replace(known[name], spec=spec), path, name, content["history"]["seconds"], listed=False)
                for name in content["measured"].keys() & known
                if model_key(spec) != path.stem and Archive(archive).get(spec, name) is None
            ]
    return found


def _by_spec(archive: str | Path) -> dict[str, list[tuple[Path, dict]]]:
    """The files of an archive by what their models were made from, the code left out."""
    found = defaultdict(list)
    for path in sorted(Path(archive).glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        found[json.dumps(content["spec"], sort_keys=True)].append((path, content))
    return found


def _identity(spec: Spec) -> str:
    return json.dumps(asdict(spec), sort_keys=True)


def _question(name: str, today_of: dict[str, str]) -> str:
    """Measure, settings, and what it was measured beside, by the keys of today."""
    question = name.rpartition("-")[0]
    return re.sub(r"with ([^,)]+)", lambda match: f"with {today_of.get(match[1], match[1])}", question)


def witnesses(old: Iterable[Old]) -> list[Old]:
    """Of every kind the cheapest model among those that are listed."""
    cheapest: dict[tuple[str, ...], Old] = {}
    for one in sorted(old, key=lambda one: (one.seconds, str(one.asked.spec))):
        if one.listed:
            cheapest.setdefault(one.kind, one)
    return list(cheapest.values())
