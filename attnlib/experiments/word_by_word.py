"""Networks on sentences drawn word by word, each word with one translation: what three chapters train."""

from typing import Protocol

from attnlib.recipes.recipe import RecipeSpec


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
