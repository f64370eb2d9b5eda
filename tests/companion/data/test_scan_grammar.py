import pytest

from attnlib.errors import BadInput, DataUnavailable
from companion.data.scan import ACTIONS, COMMAND_WORDS, commands, interpret, simple_commands
from companion.data.sources import dataset, locate
from companion.data.text import read_lines

SCAN = dataset("scan")

LEFT, RIGHT, WALK, LOOK, RUN, JUMP = "I_TURN_LEFT", "I_TURN_RIGHT", "I_WALK", "I_LOOK", "I_RUN", "I_JUMP"


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("walk", [WALK]),
        ("turn left", [LEFT]),
        ("jump right", [RIGHT, JUMP]),
        ("run thrice", [RUN] * 3),
        ("turn opposite right", [RIGHT, RIGHT]),
        ("look opposite left twice", [LEFT, LEFT, LOOK] * 2),
        ("turn around left", [LEFT] * 4),
        ("walk around right thrice", [RIGHT, WALK] * 12),
        ("jump twice and walk", [JUMP, JUMP, WALK]),
        ("jump twice after walk", [WALK, JUMP, JUMP]),
        ("walk and look and run", [WALK, LOOK, RUN]),
        ("walk and look after run", [RUN, WALK, LOOK]),
        ("walk after look and run", [LOOK, WALK, RUN]),
        ("walk after look after run", [RUN, LOOK, WALK]),
        ("walk after look and run after jump left", [LEFT, JUMP, LOOK, WALK, RUN]),
    ],
)
def test_meanings_worked_by_hand(command, actions):
    assert list(interpret(command.split())) == actions


def test_the_grammar_makes_as_many_commands_as_were_published():
    every = list(commands())
    assert len(simple_commands()) == 102
    assert len(every) == len(set(every)) == 20_910
    assert {word for command in every for word in command} == set(COMMAND_WORDS)
    assert {action for command in every for action in interpret(command)} == set(ACTIONS)
    assert max(len(interpret(command)) for command in every) == 48


def test_the_pairs_are_the_published_ones():
    try:
        lines = read_lines(locate(SCAN, "tasks.txt"))
    except DataUnavailable as error:
        pytest.skip(f"data: {error}")
    published = {tuple(line.removeprefix("IN: ").split(" OUT: ")) for line in lines}
    assert len(published) == 20_910
    assert published == {(" ".join(command), " ".join(interpret(command))) for command in commands()}


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("fly", "fly"),
        ("turn", "turn"),
        ("walk opposite", "walk opposite"),
        ("walk and", ""),
        ("and walk", ""),
        ("", ""),
        ("walk twice twice", "walk twice twice"),
        ("walk left and left walk", "left walk"),
    ],
)
def test_words_that_do_not_follow_the_grammar_are_refused(command, named):
    with pytest.raises(BadInput, match=f"'{named}' is no SCAN command"):
        interpret(command.split())
