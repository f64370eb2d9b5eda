"""Five families of tasks that the suite has not, each with an order that something else decides.

The suite's findings were made on its own tasks. These are for asking whether they hold on others. What
decides where a target word comes from is the place in its sentence in :func:`addition`, one word of the
sentence in :func:`selective_copying`, the word itself in :func:`lookup`, and all words together in
:func:`sorting`. In :func:`counting` a target word comes from no single place.
"""

import string
from collections.abc import Sequence

import numpy as np

from attnlib.errors import BadInput
from companion.data.by_rule import drawn_apart, task, task_by_rule
from companion.data.task import Links, Task, links_of_order

MOST_LETTERS = 26


def _check_letters(name: str, n_words: int) -> None:
    if n_words > MOST_LETTERS:
        raise BadInput(f"task {name}: n_words must be at most {MOST_LETTERS}; got {n_words}")


def _check_enough(sentences: int, n_held_out: int) -> None:
    """Refuse to hold out more than half of all sentences, which would leave too few to train on."""
    if 2 * n_held_out > sentences:
        raise BadInput(
            f"there are only {sentences} sentences of this kind, too few to hold out {n_held_out}; "
            f"take at most {sentences // 2}, or longer sentences"
        )


# Sorting: the order depends on all words of a sentence together.


def in_order(letters: Sequence[str]) -> list[int]:
    """Return the places of letters in the order of the alphabet, equal ones as they come.

    >>> in_order("CAB"), in_order("BAB")
    ([1, 2, 0], [1, 0, 2])
    """
    return sorted(range(len(letters)), key=lambda place: letters[place])


@task()
def sorting(
    *, n_words: int = 10, length: int = 10, n_train: int = 10_000, n_held_out: int = 1_200, seed: int = 0
) -> Task:
    """Letters, each drawn uniform, and the same in the order of the alphabet::

        C A D A        a a c d

    Which letter comes next depends on all the others, so that each sentence has an order of its own.
    """
    _check_letters("sorting", n_words)
    _check_enough(n_words**length, n_held_out)
    letters = string.ascii_uppercase[:n_words]

    def sentence(draw: np.random.Generator) -> str:
        return "".join(letters[word] for word in draw.integers(n_words, size=length))

    def sorted_letters(sentence: str) -> tuple[str, list[str], Links]:
        order = in_order(sentence)
        return sentence, [sentence[place].lower() for place in order], links_of_order(order)

    parts = drawn_apart(sentence, (0x5047, 0x5048), n_train, n_held_out, seed)
    return task_by_rule("sorting", letters, letters.lower(), parts, sorted_letters)


# Counting: what is written stands at no place of the source.


@task()
def counting(
    *, n_words: int = 5, length: int = 12, n_train: int = 10_000, n_held_out: int = 1_200, seed: int = 0
) -> Task:
    """How often each letter of the alphabet comes in a sentence of letters drawn uniform::

        B A C A A      3 1 1        with three letters

    A count is at no place of the source: its letters may be anywhere, and a zero comes from none.
    """
    _check_letters("counting", n_words)
    _check_enough(n_words**length, n_held_out)
    letters = string.ascii_uppercase[:n_words]
    counts = [str(count) for count in range(length + 1)]

    def sentence(draw: np.random.Generator) -> str:
        return "".join(letters[word] for word in draw.integers(n_words, size=length))

    def counted(sentence: str) -> tuple[str, list[str], Links]:
        places = {letter: target for target, letter in enumerate(letters)}
        links = frozenset((source, places[letter]) for source, letter in enumerate(sentence))
        return sentence, [str(sentence.count(letter)) for letter in letters], links

    parts = drawn_apart(sentence, (0xC047, 0xC048), n_train, n_held_out, seed)
    return task_by_rule("counting", letters, counts, parts, counted)


# Copying with a selector: one word decides among a few fixed orders.

SELECTORS = ("first", "last", "odd", "even")


def selected(selector: str, letters: int) -> list[int]:
    """Return the source places of the half that a selector asks for; the selector itself is at place 0.

    >>> selected("first", 4), selected("last", 4), selected("odd", 4), selected("even", 4)
    ([1, 2], [3, 4], [1, 3], [2, 4])
    """
    places = list(range(1, letters + 1))
    halves = {
        "first": places[: letters // 2],
        "last": places[letters // 2 :],
        "odd": places[::2],
        "even": places[1::2],
    }
    return halves[selector]


@task(length=2)
def selective_copying(
    *, n_words: int = 10, length: int = 16, n_train: int = 10_000, n_held_out: int = 1_200, seed: int = 0
) -> Task:
    """A selector and letters, and the half of the letters that it asks for::

        first A B C D      a b
        even A B C D       b d

    There are four fixed orders, and the first word of a sentence says which of them it has.
    """
    _check_letters("selective_copying", n_words)
    if length % 2:
        raise BadInput(f"task selective_copying: length must be even; got {length}")
    _check_enough(len(SELECTORS) * n_words**length, n_held_out)
    letters = string.ascii_uppercase[:n_words]
    orders = {selector: selected(selector, length) for selector in SELECTORS}
    links = {selector: links_of_order(order) for selector, order in orders.items()}

    def sentence(draw: np.random.Generator) -> tuple[str, ...]:
        selector = SELECTORS[draw.integers(len(SELECTORS))]
        return (selector, *(letters[word] for word in draw.integers(n_words, size=length)))

    def copied(sentence: tuple[str, ...]) -> tuple[Sequence[str], list[str], Links]:
        selector = sentence[0]
        return sentence, [sentence[place].lower() for place in orders[selector]], links[selector]

    parts = drawn_apart(sentence, (0x5E1E, 0x5E1F), n_train, n_held_out, seed)
    return task_by_rule("selective_copying", (*SELECTORS, *letters), letters.lower(), parts, copied)


# Lookup: a word says by itself at which step it is written.

VALUES = 10


@task()
def lookup(*, keys: int = 10, n_train: int = 10_000, n_held_out: int = 1_200, seed: int = 0) -> Task:
    """Words of a key and a value, all keys in a random order, and the values in the order of their keys::

        C4 A7 B7       7 7 4

    Step j asks for the word with the j-th key, wherever it stands. A query that knows the time alone, and
    keys that know their word alone, are enough.
    """
    _check_letters("lookup", keys)
    letters = string.ascii_uppercase[:keys]
    values = string.digits[:VALUES]
    _check_enough(VALUES**keys, n_held_out)

    def sentence(draw: np.random.Generator) -> tuple[str, ...]:
        order = draw.permutation(keys)
        drawn = draw.integers(VALUES, size=keys)
        return tuple(f"{letters[key]}{values[value]}" for key, value in zip(order, drawn, strict=True))

    def looked_up(sentence: tuple[str, ...]) -> tuple[Sequence[str], list[str], Links]:
        order = in_order([word[0] for word in sentence])
        return sentence, [sentence[place][1] for place in order], links_of_order(order)

    words = [f"{letter}{value}" for letter in letters for value in values]
    parts = drawn_apart(sentence, (0x100C, 0x100D), n_train, n_held_out, seed)
    return task_by_rule("lookup", words, values, parts, looked_up)


# Addition: the place alone says which two digits are needed.

PLUS = "+"


@task(digits=1)
def addition(*, digits: int = 6, n_train: int = 20_000, n_held_out: int = 1_200, seed: int = 0) -> Task:
    """Two numbers of equally many digits, and their sum from the ones upwards::

        3 8 + 4 7      5 8 0

    A digit of the sum needs the two digits of its place, wherever a carry comes from. One order, with two
    source words to each target word, fits all sentences.
    """
    _check_enough(10 ** (2 * digits), n_held_out)

    def sentence(draw: np.random.Generator) -> tuple[int, int]:
        first, second = draw.integers(10**digits, size=2)
        return int(first), int(second)

    def added(numbers: tuple[int, int]) -> tuple[list[str], list[str], Links]:
        first, second = (str(number).zfill(digits) for number in numbers)
        total = str(sum(numbers)).zfill(digits + 1)
        return [*first, PLUS, *second], list(reversed(total)), links

    links = frozenset(
        (place, step) for step in range(digits) for place in (digits - 1 - step, 2 * digits - step)
    )
    parts = drawn_apart(sentence, (0xADD1, 0xADD2), n_train, n_held_out, seed)
    return task_by_rule("addition", (*string.digits, PLUS), string.digits, parts, added)


TASKS = {make.__name__: make for make in (sorting, counting, selective_copying, lookup, addition)}
