"""SCAN: commands to actions, all 20,910 pairs made from the grammar (no file is read)."""

import numpy as np

from attnlib.errors import BadInput
from attnlib.tasks.corpus import Corpus
from attnlib.tasks.scan_grammar import ACTIONS, COMMAND_WORDS, commands, interpret
from attnlib.tasks.task import Task
from attnlib.tasks.vocabulary import Vocabulary

_SPLIT = 0x5CA1


def scan(*, held_out_share: float = 0.2, n_train: int | None = None, seed: int = 0) -> Task:
    """Lake & Baroni's SCAN (arXiv 1711.00350) with a random split, by default 80 % to train on as theirs.

    The split is our own draw; their published one holds other commands in either part.

    Args:
        held_out_share: share of the 20,910 commands to hold out, rounded to whole commands.
        n_train: keep this many of the training commands; all when None. The held-out ones stay the same.
        seed: of the split.

    Raises:
        BadInput: the share is not between 0 and 1, or more training commands are asked for than there are.
    """
    pairs = [(words, interpret(words)) for words in commands()]
    n_held_out = round(held_out_share * len(pairs))
    available = len(pairs) - n_held_out
    if not (0 < n_held_out < len(pairs)) or seed < 0:
        raise BadInput(f"scan needs 0 < held_out_share < 1 and seed ≥ 0; got {held_out_share} and {seed}")
    if n_train is not None and not 1 <= n_train <= available:
        raise BadInput(f"n_train must lie in 1…{available}, the commands not held out; got {n_train}")
    order = np.random.default_rng([_SPLIT, seed]).permutation(len(pairs))
    held_out, train = order[:n_held_out], order[n_held_out:][:n_train]
    corpus = encode_commands(pairs)
    return Task(
        "scan", command_vocabulary(), action_vocabulary(), corpus.subset(train), corpus.subset(held_out)
    )


def command_vocabulary() -> Vocabulary:
    """The 13 words of commands, closed."""
    return Vocabulary.of(COMMAND_WORDS)


def action_vocabulary() -> Vocabulary:
    """The 6 actions, closed."""
    return Vocabulary.of(ACTIONS)


def encode_commands(pairs: list[tuple[tuple[str, ...], tuple[str, ...]]]) -> Corpus:
    """Pairs of a command's words and its actions, as ids."""
    source, target = command_vocabulary(), action_vocabulary()
    return Corpus.from_ids(
        [source.encode(words) for words, _ in pairs], [target.encode(actions) for _, actions in pairs]
    )


TASKS = {"scan": scan}
