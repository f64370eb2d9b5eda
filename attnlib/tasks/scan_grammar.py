"""The SCAN commands and what they mean.

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

from attnlib.errors import BadInput

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

    >>> interpret("turn opposite left after jump twice".split())
    ('I_JUMP', 'I_JUMP', 'I_TURN_LEFT', 'I_TURN_LEFT')

    Raises:
        BadInput: the words do not follow the grammar.
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
