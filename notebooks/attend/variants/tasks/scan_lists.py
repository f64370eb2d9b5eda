"""An extended SCAN close to the diagonal: lists of commands of two words and two actions each."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from attnlib.errors import BadInput
from companion.data.by_rule import drawn_apart, task, task_by_rule
from companion.data.task import Links, Task
from notebooks.shared.tasks.synthetic import ACTION_OF, ACTIONS, COMMAND_WORDS, TURN_OF, interpret

Command = tuple[str, str]

TURNED: tuple[Command, ...] = tuple(product(ACTION_OF, TURN_OF))  # "walk left", the turn before the action
REPEATED: tuple[Command, ...] = tuple(product(ACTION_OF, ["twice"]))  # "walk twice", the action two times


def list_of_commands(commands: Sequence[Command], join: str) -> tuple[str, ...]:
    """Return the words of a list, with a join before the last command.

    >>> " ".join(list_of_commands([("walk", "left"), ("run", "twice"), ("jump", "left")], "and"))
    'walk left run twice and jump left'
    """
    *first, last = commands
    return (*(word for command in first for word in command), join, *last)


def places_of_actions(commands: Sequence[Command], join: str) -> list[int]:
    """Return the source place of each action of a list; "after" has the last command done first.

    >>> places_of_actions([("walk", "left"), ("run", "twice")], "and")
    [1, 0, 3, 3]
    >>> places_of_actions([("walk", "left"), ("run", "twice")], "after")
    [3, 3, 1, 0]
    """
    starts = [2 * number for number in range(len(commands) - 1)] + [2 * len(commands) - 1]
    by_command = [
        [start + 1, start] if command in TURNED else [start, start]
        for start, command in zip(starts, commands, strict=True)
    ]
    if join == "after":
        by_command = [by_command[-1], *by_command[:-1]]
    return [place for places in by_command for place in places]


@task(min_commands=2)
def scan_lists(
    *, after: float = 0.0, min_commands: int = 4, max_commands: int = 6, n_train: int = 10_000,
    n_held_out: int = 1_200, seed: int = 0,
) -> Task:  # fmt: skip
    """Lists of SCAN's commands, "and" before the last, with about as many actions as words::

        walk left jump twice and run right      LEFT WALK JUMP JUMP RIGHT RUN
        walk left jump twice after run right    RIGHT RUN LEFT WALK JUMP JUMP

    A command is an action with a turn, which comes before the action, or an action done twice; all twelve are
    equally frequent. Every one has two words and two actions, so that the position alone says which command
    comes next, and its second word which of its actions comes first. With probability ``after`` the join of a
    list is "after": its last command is then done first, and all others a command later. The number of
    commands is uniform between its two bounds. No list is in both parts.
    """
    if not 0 <= after <= 1:
        raise BadInput(f"after is {after}; it must lie between 0 and 1")
    every = [*TURNED, *REPEATED]
    lists = len(every) ** min_commands
    if 2 * n_held_out > lists:
        raise BadInput(
            f"{min_commands} commands make only {lists} lists, too few to hold out {n_held_out}; "
            f"take at most {lists // 2}, or more commands"
        )

    def drawn(draw: np.random.Generator) -> tuple[str, tuple[Command, ...]]:
        join = "after" if draw.random() < after else "and"
        number = draw.integers(min_commands, max_commands, endpoint=True)
        return join, tuple(every[command] for command in draw.integers(len(every), size=number))

    def worked(drawn_list: tuple[str, tuple[Command, ...]]) -> tuple[Sequence[str], list[str], Links]:
        join, commands = drawn_list
        in_order = [commands[-1], *commands[:-1]] if join == "after" else commands
        actions = [action for command in in_order for action in interpret(command)]
        links = frozenset((place, step) for step, place in enumerate(places_of_actions(commands, join)))
        return list_of_commands(commands, join), actions, links

    parts = drawn_apart(drawn, (0x5CA2, 0x5CA3), n_train, n_held_out, seed)
    return task_by_rule("scan_lists", COMMAND_WORDS, ACTIONS, parts, worked)


TASKS = {"scan_lists": scan_lists}
