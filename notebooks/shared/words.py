"""Networks on sentences drawn word by word, each word with one translation: what three chapters train."""

from collections.abc import Iterable
from typing import Protocol

from attnlib.errors import BadInput
from companion.runs.recipe import RecipeSpec


class WordByWord(Protocol):
    """Settings of such networks, as the configurations of the chapters have them."""

    words: int
    shortest: int
    longest: int
    n_train: int
    judged: int
    steps: int
    learning_rate: float


def spec_on_words(
    config: WordByWord, *, seed: int, shortest: int | None = None, **network: object
) -> RecipeSpec:
    """A network on the one-to-one task.

    Args:
        shortest: in place of the configuration's.
        network: further settings of the recipe; those that the chapters have in common are taken from
            ``config``.
    """
    options = {
        "n_words": config.words,
        "min_length": config.shortest if shortest is None else shortest,
        "max_length": config.longest,
        "n_train": config.n_train,
        "n_held_out": config.judged,
    }
    return RecipeSpec.of(
        "recurrent_sequences",
        seed=seed,
        task="one_to_one",
        options=tuple(options.items()),
        steps=config.steps,
        learning_rate=config.learning_rate,
        judged=config.judged,
        **network,
    )


def link_distances(
    links: Iterable[tuple[int, int]], source_length: int, *, reverse: bool = False
) -> list[int]:
    """Steps from reading a source word to writing its target word, for each link (target, source).

    Without attention everything passes through the last encoder state. A source of n words takes n steps, the
    end mark one more, and word s of the target is written in the decoder's step s + 1, places counted
    from 0. So word t is n − t steps away from the decoder's first state, and t + 1 where the words are read
    from the last to the first, which leaves the end mark last (Sutskever et al. 2014, section 3.3).

    >>> diagonal = [(i, i) for i in range(4)]  # this is an example
    >>> link_distances(diagonal, 4), link_distances(diagonal, 4, reverse=True)
    ([5, 5, 5, 5], [2, 4, 6, 8])

    Raises:
        BadInput: a link points beyond the source.
    """
    found = []
    for target, source in links:
        if not 0 <= source < source_length or target < 0:
            raise BadInput(f"link {(target, source)} points beyond a source of {source_length} words")
        found.append((source + 1 if reverse else source_length - source) + target + 1)
    return found
