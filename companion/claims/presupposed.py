"""What claims presuppose of networks, for figures: the limits themselves are in ``claims/*.yaml`` alone.

>>> holds("learned", token_accuracy=0.96), holds("learned", token_accuracy=0.94)
(True, False)
>>> holds("learned", gain_of_twice=0.0, bleu=12.0)
True
"""

from functools import cache

import yaml

from attnlib.errors import check_known
from companion.claims.model import PaperFields, SafeLoader
from companion.claims.verdicts import Presupposition
from companion.paths import ROOT


@cache
def presuppositions(paper: str) -> dict[str, tuple[Presupposition, ...]]:
    """Return what the claims of a file presuppose, by name.

    The experiment whose result has the numbers is left out: a figure has them at hand, and its code may be in
    a checkout without that experiment.
    """
    path = ROOT / "claims" / f"{paper}.yaml"
    content = yaml.load(path.read_text(encoding="utf-8"), SafeLoader)
    presupposed = {name: _limits(given) for name, given in content["presuppositions"].items()}
    alone = {"paper": content["paper"], "title": content["title"], "claims": []}
    return PaperFields.read(path.name, alone | {"presuppositions": presupposed}).presuppositions


def _limits(given: dict | list[dict]) -> list[dict]:
    """Return what is written under a name, one or a list, without the experiment of each."""
    entries = given if isinstance(given, list) else [given]
    return [{field: value for field, value in entry.items() if field != "experiment"} for entry in entries]


def holds(name: str, *, paper: str = "aitken2021", **numbers: float) -> bool:
    """Return True if numbers are as claims presuppose them.

    Args:
        name: of the presupposition, such as ``learned``.
        paper: the file of claims, without its ending.
        numbers: by the last word of the key that a result has them at, such as ``token_accuracy``.

    Raises:
        UnknownName: nothing has this name, or nothing under it is about such a number.
    """
    known = presuppositions(paper)
    check_known("presupposition", name, known)
    by_number = {
        key.rpartition(".")[2]: presupposition
        for presupposition in known[name]
        for key in presupposition.keys
    }
    for number in numbers:
        check_known(f"number of {name!r}", number, by_number)
    return all(by_number[number].holds(value) for number, value in numbers.items())
