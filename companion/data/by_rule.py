"""What tasks share: sizes that make sense, samples drawn so that none is in both parts, and their ids."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import wraps
from inspect import signature
from typing import TypeVar

import numpy as np

from attnlib.errors import BadInput
from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import Vocabulary
from companion.data.task import Links, Task

Words = Sequence[str]
Reads = Callable[..., dict[str, str | None]]
Sample = TypeVar("Sample", bound=Hashable)


def task(
    name: str = "", about: str = "", *, reads: Reads | None = None, **least: int
) -> Callable[[Callable[..., Task]], Callable[..., Task]]:
    """Makes a function a task, which refuses sizes below their least (1, a seed 0), and a min above its max.

    A function that is made inside another one is given its ``name`` and what it is ``about``. ``reads`` gives
    the checksums of the files that the task reads, of its options; without it the task is synthetic.
    """

    def decorated(make: Callable[..., Task]) -> Callable[..., Task]:
        make.__name__ = make.__qualname__ = name or make.__name__
        make.__doc__ = about or make.__doc__
        defaults = {option: parameter.default for option, parameter in signature(make).parameters.items()}

        @wraps(make)
        def checked(**options) -> Task:
            given = {
                option: value
                for option, value in (defaults | options).items()
                if type(value) is int and not isinstance(defaults.get(option), float)
            }
            for option, value in given.items():
                lowest = least.get(option, int(option != "seed"))
                most = given.get(option.replace("min_", "max_"), value)
                if not lowest <= value <= most:
                    bound = f"{lowest} … {most}" if value > most else f"at least {lowest}"
                    raise BadInput(f"task {make.__name__}: {option} must be {bound}; got {value}")
            return make(**options)

        checked.reads = reads
        return checked

    return decorated


def drawn_apart(
    draw_one: Callable[[np.random.Generator], Sample],
    streams: tuple[int, int],
    n_train: int,
    n_held_out: int,
    seed: int,
) -> tuple[list[Sample], list[Sample]]:
    """Samples to train on and samples to hold out, none of them in both.

    The held-out ones have a stream of their own, the first, so that they stay when ``n_train`` changes.
    """

    def drawn(stream: int, n: int, forbidden: frozenset[Sample]) -> list[Sample]:
        draw = np.random.default_rng([stream, seed])
        samples: list[Sample] = []
        while len(samples) < n:
            if (sample := draw_one(draw)) not in forbidden:
                samples.append(sample)
        return samples

    held_out = drawn(streams[0], n_held_out, frozenset())
    return drawn(streams[1], n_train, frozenset(held_out)), held_out


def task_by_rule(
    name: str,
    source_words: Iterable[str],
    target_words: Iterable[str],
    parts: tuple[Sequence[Sample], Sequence[Sample]],
    rule: Callable[[Sample], tuple[Words, Words, Links | None]],
) -> Task:
    """A task over closed vocabularies; ``rule`` gives source, target and links of a sample."""
    source, target = Vocabulary.of(source_words), Vocabulary.of(target_words)
    train, held_out = ([rule(sample) for sample in part] for part in parts)
    corpora = (
        Corpus.from_ids([source.encode(a) for a, _, _ in part], [target.encode(b) for _, b, _ in part])
        for part in (train, held_out)
    )
    gold = tuple(links for _, _, links in held_out)
    return Task(name, source, target, *corpora, gold=None if None in gold else gold)
