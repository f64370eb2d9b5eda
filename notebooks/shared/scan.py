"""SCAN: commands and the actions that they stand for, made from the grammar; no file is read.

Grammar and meanings are those of Lake & Baroni 2018, "Generalization without systematicity" (arXiv
1711.00350, supplement)::

    C → S and S | S after S | S
    S → V twice | V thrice | V
    V → D[1] opposite D[2] | D[1] around D[2] | D | U
    D → U left | U right | turn left | turn right
    U → walk | look | run | jump

``D[1] opposite D[2]`` stands for "walk opposite left" or "turn opposite left". The grammar makes 102
commands S and 102 + 2 · 102² = 20,910 commands C, all different.
"""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from attnlib.errors import BadInput
from attnlib.training.corpus import Task
from companion.data.by_rule import task, task_by_rule

ACTION_OF = {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP"}
TURN_OF = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
TIMES_OF = {"twice": 2, "thrice": 3}
MANNERS = ("opposite", "around")
JOINS = ("and", "after")
COMMAND_WORDS = (*ACTION_OF, "turn", *TURN_OF, *MANNERS, *TIMES_OF, *JOINS)
ACTIONS = (*ACTION_OF.values(), *TURN_OF.values())


@cache
def simple_commands() -> tuple[tuple[str, ...], ...]:
    """The 102 commands S, the ones without a join, each as its words."""
    directed = [(verb, direction) for verb in (*ACTION_OF, "turn") for direction in TURN_OF]
    mannered = [(verb, manner, direction) for verb, direction in directed for manner in MANNERS]
    once = [*((verb,) for verb in ACTION_OF), *directed, *mannered]
    return tuple((*words, *times) for words in once for times in ((), *((word,) for word in TIMES_OF)))


def commands() -> Iterator[tuple[str, ...]]:
    """All 20,910 commands C, each as its words, in a fixed order."""
    yield from simple_commands()
    for first in simple_commands():
        for join in JOINS:
            for second in simple_commands():
                yield (*first, join, *second)


def interpret(words: Sequence[str]) -> tuple[str, ...]:
    """The actions that a command stands for.

    Any number of joins is allowed. They are read from left to right, each joining its command to everything
    before it: "and" puts the actions of its command behind, "after" in front. So "a and b after c" means
    c a b, and "a after b and c" means b a c. With one join this is SCAN's own meaning.
    """
    actions: tuple[str, ...] = ()
    join, start = "and", 0
    for place, word in enumerate([*words, "and"]):
        if word in JOINS:
            latest = _simple(tuple(words[start:place]), words)
            actions = actions + latest if join == "and" else latest + actions
            join, start = word, place + 1
    return actions


@cache
def _meanings() -> dict[tuple[str, ...], tuple[str, ...]]:
    return {words: _meaning(words) for words in simple_commands()}


def _simple(words: tuple[str, ...], whole: Sequence[str]) -> tuple[str, ...]:
    if words not in _meanings():
        raise BadInput(
            f"{' '.join(words)!r} is no SCAN command (in {' '.join(whole)!r}); one has a verb "
            f"({', '.join(ACTION_OF)}, turn), then perhaps opposite or around, left or right, twice or thrice"
        )
    return _meanings()[words]


def _meaning(words: tuple[str, ...]) -> tuple[str, ...]:
    if words[-1] in TIMES_OF:
        return _meaning(words[:-1]) * TIMES_OF[words[-1]]
    act = (ACTION_OF[words[0]],) if words[0] in ACTION_OF else ()
    if len(words) == 1:
        return act
    turn = (TURN_OF[words[-1]],)
    if "opposite" in words:
        return turn * 2 + act
    if "around" in words:
        return (turn + act) * 4
    return turn + act


Phrase = tuple[str, ...]


@task()
def scan(*, held_out_share: float = 0.2, n_train: int | None = None, seed: int = 0) -> Task:
    """Lake & Baroni's SCAN (arXiv 1711.00350) with a random split, by default 80 % to train on as theirs.

    The split is our own draw; their published one holds other commands in either part. ``held_out_share`` is
    of the 20,910 commands; ``n_train`` keeps so many of the others, all when None.
    """
    every = list(commands())
    n_held_out = round(held_out_share * len(every))
    available = len(every) - n_held_out
    if not 0 < n_held_out < len(every):
        raise BadInput(f"scan needs 0 < held_out_share < 1; got {held_out_share}")
    if n_train is not None and n_train > available:
        raise BadInput(f"n_train must lie in 1…{available}, the commands not held out; got {n_train}")
    order = np.random.default_rng([0x5CA1, seed]).permutation(len(every))
    return _task(
        "scan", [every[i] for i in order[n_held_out:][:n_train]], [every[i] for i in order[:n_held_out]]
    )


def _task(name: str, train: list[Phrase], held_out: list[Phrase]) -> Task:
    return task_by_rule(
        name, COMMAND_WORDS, ACTIONS, (train, held_out), lambda words: (words, interpret(words), None)
    )


@task(min_words=3)
def scan_extended(
    *, min_words: int = 10, max_words: int = 15, max_actions: int = 30, n_train: int = 20_000,
    n_held_out: int = 6_000, seed: int = 0,
) -> Task:  # fmt: skip
    """An extended SCAN of ours; the available text of Aitken et al. 2021 names no task.

    A phrase is drawn so: its number of words, joins counted, uniform in ``min_words … max_words``; then
    commands uniform among the 102 of SCAN without a join, and joins uniform, until that number is reached
    exactly (other draws are thrown away), and only if it stands for at most ``max_actions`` actions. Joins
    are read from left to right, see :func:`interpret`. No phrase is in both parts. "around" with "thrice"
    makes 24 actions out of four words; the bound on actions leaves fewer of those than SCAN has, and fills
    the cells of equal source and target length.
    """
    if max_actions < max_words:
        # Shorter targets exist (a bare verb takes one word and one join), but are hardly ever drawn.
        raise BadInput(f"max_actions must be at least max_words ({max_words}); got {max_actions}")
    simple = simple_commands()
    words_in = np.array([len(words) for words in simple])
    actions_in = np.array([len(interpret(words)) for words in simple])

    def drawn(stream: int, n: int, forbidden: frozenset[Phrase]) -> list[Phrase]:
        draw, most = np.random.default_rng([stream, seed]), (max_words + 1) // 2
        phrases: list[Phrase] = [()] * n
        # The number of words is settled before the tries: short phrases meet the bound on actions more often
        # and would otherwise crowd out the long ones.
        wanted = draw.integers(min_words, max_words, size=n, endpoint=True)
        missing = np.arange(n)
        while len(missing):
            chosen = draw.integers(len(simple), size=(len(missing), most))
            joined = draw.integers(len(JOINS), size=(len(missing), most))
            reached = np.cumsum(words_in[chosen] + 1, axis=1) - 1
            fits = (reached == wanted[missing, None]) & (np.cumsum(actions_in[chosen], axis=1) <= max_actions)
            for row in np.flatnonzero(fits.any(axis=1)):
                phrase = simple[chosen[row, 0]]
                for place in range(1, int(fits[row].argmax()) + 1):
                    phrase = (*phrase, JOINS[joined[row, place]], *simple[chosen[row, place]])
                if phrase not in forbidden:
                    phrases[missing[row]] = phrase
            missing = np.flatnonzero([not phrase for phrase in phrases])
        return phrases

    # The held-out phrases have a stream of their own, so they stay when n_train changes.
    held_out = drawn(0xE5CA1, n_held_out, frozenset())
    return _task("scan_extended", drawn(0xE5CA2, n_train, frozenset(held_out)), held_out)


TASKS = {"scan": scan, "scan_extended": scan_extended}
