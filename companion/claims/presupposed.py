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
    """Return what the claims of a file presuppose, by name."""
    path = ROOT / "claims" / f"{paper}.yaml"
    content = yaml.load(path.read_text(encoding="utf-8"), SafeLoader)
    named = {name: content[name] for name in ("paper", "title", "presuppositions")}
    return PaperFields.read(path.name, named | {"claims": []}).presuppositions


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
    by_number = {key.rpartition(".")[2]: each for each in known[name] for key in each.keys}
    for number in numbers:
        check_known(f"number of {name!r}", number, by_number)
    return all(by_number[number].holds(value) for number, value in numbers.items())
