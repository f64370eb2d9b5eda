"""What was asked of runs alone and of two together, by the runs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attnlib.errors import NotMeasured
from attnlib.experiments.asks import Ask
from attnlib.recipes.recipe import RecipeSpec

if TYPE_CHECKING:
    from attnlib.training.store import Store

Answers = dict[tuple[RecipeSpec, ...], dict]  # what was asked of a run alone, or of two together


def gathered(asks: Iterable[Ask], store: "Store") -> Answers:
    """The answers that the store has or may find out, by the models asked together; one question to each."""
    found = {}
    for asked in asks:
        try:
            found[asked.spec, *asked.beside] = asked.answer(store)
        except NotMeasured:
            continue
    return found
