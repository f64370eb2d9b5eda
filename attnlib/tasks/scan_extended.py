"""Extended SCAN: many commands joined by "and" and "after" into one phrase."""

import numpy as np

from attnlib.errors import BadInput
from attnlib.tasks.scan import action_vocabulary, command_vocabulary, encode_commands
from attnlib.tasks.scan_grammar import JOINS, interpret, simple_commands
from attnlib.tasks.task import Task

# The held-out phrases have a stream of their own, so they stay when n_train changes.
_HELD_OUT, _TRAIN = 0xE5CA1, 0xE5CA2


def scan_extended(
    *,
    min_words: int = 10,
    max_words: int = 15,
    max_actions: int = 30,
    n_train: int = 20_000,
    n_held_out: int = 6_000,
    seed: int = 0,
) -> Task:
    """Our reading of the extended SCAN of Aitken et al. 2021 (arXiv 2110.15253); we lack its details.

    A phrase is drawn so: its number of words, joins counted, uniform in ``min_words … max_words``; then
    commands uniform among the 102 of SCAN without a join, and joins uniform, until that number is reached
    exactly (other draws are thrown away), and only if it stands for at most ``max_actions`` actions. Joins
    are read from left to right, see :func:`attnlib.tasks.scan_grammar.interpret`. No phrase is in both parts.

    Args:
        min_words: words in the shortest phrase, joins counted.
        max_words: words in the longest.
        max_actions: longest target. "around" with "thrice" makes 24 actions out of four words; the bound
            leaves fewer of those than SCAN has, and fills the cells of equal source and target length.
        n_train: training phrases.
        n_held_out: held-out phrases.
        seed: of the draw.

    Raises:
        BadInput: a size that makes no sense, or ``max_actions`` is below ``max_words``.
    """
    if min(min_words - 2, n_train, n_held_out) < 1 or min_words > max_words or seed < 0:
        raise BadInput(
            "scan_extended needs 3 ≤ min_words ≤ max_words, n_train and n_held_out ≥ 1, seed ≥ 0; "
            f"got {min_words=}, {max_words=}, {n_train=}, {n_held_out=}, {seed=}"
        )
    if max_actions < max_words:
        # Shorter targets exist (a bare verb takes one word and one join), but are hardly ever drawn.
        raise BadInput(f"max_actions must be at least max_words ({max_words}); got {max_actions}")
    sizes = (min_words, max_words, max_actions)
    held_out = _draw(np.random.default_rng([_HELD_OUT, seed]), n_held_out, sizes, frozenset())
    train = _draw(np.random.default_rng([_TRAIN, seed]), n_train, sizes, frozenset(held_out))
    parts = [
        encode_commands([(words, interpret(words)) for words in phrases]) for phrases in (train, held_out)
    ]
    return Task("scan_extended", command_vocabulary(), action_vocabulary(), *parts)


def _draw(
    draw: np.random.Generator, n: int, sizes: tuple[int, int, int], forbidden: frozenset[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    min_words, max_words, max_actions = sizes
    words_in = np.array([len(words) for words in simple_commands()])
    actions_in = np.array([len(interpret(words)) for words in simple_commands()])
    most = (max_words + 1) // 2
    phrases: list[tuple[str, ...]] = [()] * n
    # The number of words is settled before the tries: short phrases meet the bound on actions more often
    # and would otherwise crowd out the long ones.
    wanted = draw.integers(min_words, max_words, size=n, endpoint=True)
    missing = np.arange(n)
    while len(missing):
        chosen = draw.integers(len(words_in), size=(len(missing), most))
        joined = draw.integers(len(JOINS), size=(len(missing), most))
        reached = np.cumsum(words_in[chosen] + 1, axis=1) - 1
        fits = (reached == wanted[missing, None]) & (np.cumsum(actions_in[chosen], axis=1) <= max_actions)
        for row in np.flatnonzero(fits.any(axis=1)):
            count = int(fits[row].argmax()) + 1
            phrase = _join(chosen[row, :count], joined[row, 1:count])
            if phrase not in forbidden:
                phrases[missing[row]] = phrase
        missing = np.flatnonzero([not phrase for phrase in phrases])
    return phrases


def _join(chosen: np.ndarray, joined: np.ndarray) -> tuple[str, ...]:
    phrase = simple_commands()[chosen[0]]
    for command, join in zip(chosen[1:], joined, strict=True):
        phrase = (*phrase, JOINS[join], *simple_commands()[command])
    return phrase


TASKS = {"scan_extended": scan_extended}
