"""Networks on sentences drawn word by word, each word with one translation: what three chapters train."""

from collections.abc import Iterable
from typing import Any

from attnlib.errors import BadInput
from attnlib.models.sequence_to_sequence import SequenceCell
from companion.results.config import BaseConfig, Positive, setting
from companion.runs.procedure import RunSpec


class WordsConfig(BaseConfig):
    """Settings of networks on such sentences."""

    seeds: Positive = setting(3, "networks of each kind")
    words: int = setting(10, "size of the vocabulary. A sentence of n words holds n · log2(words) bits")
    shortest: int = setting(4, "fewest words of a sentence")
    longest: int = setting(12, "most words of a sentence. All lengths between are equally frequent")
    n_train: Positive = setting(8_000, "sentences to train on")
    judged: Positive = setting(360, "held-out sentences, of all lengths together")
    steps: Positive = setting(120, "updates in training")
    learning_rate: float = setting(6e-3, "of Adam")

    def check(self) -> None:
        if not 3 <= self.shortest <= self.longest:
            raise BadInput(f"lengths from {self.shortest} to {self.longest}; expected 3 ≤ shortest ≤ longest")


class CoursesConfig(WordsConfig):
    """The same, where a network is looked at along its training."""

    cell: tuple[SequenceCell, ...] = setting(("gru",), "gru, lstm")
    width: Positive = setting(64, "of states and embeddings")
    snapshots: Positive = setting(5, "evaluations during training")


PAPER: dict[str, Any] = {  # of those that are looked at
    "cell": ("gru", "lstm"), "seeds": 5, "longest": 20, "n_train": 40_000, "judged": 1_700, "width": 128,
    "steps": 2_000, "snapshots": 20, "learning_rate": 2e-3,
}  # fmt: skip


def spec_on_words(
    config: WordsConfig, *, seed: int, shortest: int | None = None, **settings: object
) -> RunSpec:
    """A network on the one-to-one task; ``settings`` are those that chapters do not have in common."""
    options = {
        "n_words": config.words,
        "min_length": config.shortest if shortest is None else shortest,
        "max_length": config.longest,
        "n_train": config.n_train,
        "n_held_out": config.judged,
    }
    return RunSpec.of(
        "recurrent_sequences", seed=seed, task="one_to_one", options=tuple(options.items()),
        steps=config.steps, learning_rate=config.learning_rate, judged=config.judged, **settings,
    )  # fmt: skip


def link_distances(
    links: Iterable[tuple[int, int]], source_length: int, *, reverse: bool = False
) -> list[int]:
    """Steps from reading a source word to writing its target word, for each link (source, target).

    Without attention everything passes through the last encoder state. A source of n words takes n steps, the
    end mark one more, and word s of the target is written in the decoder's step s + 1, places counted
    from 0. So word t is n − t steps away from the decoder's first state, and t + 1 where the words are read
    from the last to the first, which leaves the end mark last (Sutskever et al. 2014, section 3.3).

    >>> diagonal = [(i, i) for i in range(4)]  # this is an example
    >>> link_distances(diagonal, 4), link_distances(diagonal, 4, reverse=True)
    ([5, 5, 5, 5], [2, 4, 6, 8])
    """
    distances = []
    for source, target in links:
        if not 0 <= source < source_length or target < 0:
            raise BadInput(f"link {(source, target)} points beyond a source of {source_length} words")
        distances.append((source + 1 if reverse else source_length - source) + target + 1)
    return distances
