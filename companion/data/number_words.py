"""Numbers from digits to English words: two sides of unlike length, neither of which gives the other's::

    4 2 1 1 7        forty two thousand one hundred seventeen
    1 0 0 0 0 0 0    one million

How a digit is said depends on its place from the right, on the digit after it (one seven is "seventeen"), and
on whether it is zero, which is not said. There is no "and" and no hyphen.
"""

import numpy as np

from attnlib.errors import BadInput
from attnlib.training.corpus import Corpus, Links, Task
from attnlib.training.vocabulary import Vocabulary

# The number is the index.
UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
# The tens digit is the index.
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SCALES = ("million", "thousand", "")
MOST_DIGITS = 3 * len(SCALES)
WORDS = (*UNITS, *TENS[2:], "hundred", "thousand", "million")

# The held-out numbers have a stream of their own, so they stay when n_train changes.
_HELD_OUT, _TRAIN = 0x0D61, 0x0D62
# At most one number in so many of each digit count is held out, or short numbers could not be learned at all.
_HELD_OUT_SHARE = 5


def spell(number: int) -> tuple[tuple[str, ...], Links]:
    """The words of a number, and which digits each of them comes from.

    A word below twenty, and a word of tens, comes from its own digit, or from both if it says both
    ("seventeen"); "hundred" from the digit that says how many; "thousand" and "million" from the last digit
    of their group of three, where the group ends. A zero has no link, but for the number zero.

    >>> words, links = spell(417000)
    >>> " ".join(words)
    'four hundred seventeen thousand'
    >>> sorted(links)
    [(0, 0), (1, 0), (2, 1), (2, 2), (3, 2)]

    Raises:
        BadInput: the number is negative or has more than nine digits.
    """
    if not 0 <= number < 10**MOST_DIGITS:
        raise BadInput(f"{number} cannot be said; give a whole number from 0 to {10**MOST_DIGITS - 1:,}")
    if number == 0:
        return (UNITS[0],), frozenset({(0, 0)})
    padded = str(number).zfill(MOST_DIGITS)
    said: list[tuple[str, tuple[int, ...]]] = []  # a word, and the places of its digits
    for group, scale in enumerate(SCALES):
        hundreds, tens, ones = (int(digit) for digit in padded[3 * group : 3 * group + 3])
        first = 3 * group - MOST_DIGITS + len(str(number))
        if hundreds:
            said += [(UNITS[hundreds], (first,)), ("hundred", (first,))]
        if tens == 1:
            said.append((UNITS[10 + ones], (first + 1, first + 2)))
        else:
            said += [(TENS[tens], (first + 1,))] if tens else []
            said += [(UNITS[ones], (first + 2,))] if ones else []
        if scale and hundreds + tens + ones:
            said.append((scale, (first + 2,)))
    links = frozenset((i, place) for i, (_, places) in enumerate(said) for place in places)
    return tuple(word for word, _ in said), links


def number_words(
    *,
    min_digits: int = 1,
    max_digits: int = 7,
    n_train: int = 20_000,
    n_held_out: int = 2_000,
    seed: int = 0,
) -> Task:
    """Draw numbers without putting back: no number comes twice, in one part or in both.

    Each count of digits gets an equal share of the samples, as far as there are so many numbers; what the
    short ones leave goes to the longer ones. Of each count at most a fifth is held out: of the ten numbers
    of one digit, two. Both vocabularies are always complete, whatever the digits.

    Args:
        min_digits: of the shortest number; zero has one digit.
        max_digits: of the longest, at most 9.
        n_train: training samples.
        n_held_out: held-out samples.
        seed: of the draw.

    Raises:
        BadInput: a size that makes no sense, or more samples than there are numbers.
    """
    if min(min_digits, n_train, n_held_out) < 1 or not min_digits <= max_digits <= MOST_DIGITS or seed < 0:
        raise BadInput(
            f"number_words needs 1 ≤ min_digits ≤ max_digits ≤ {MOST_DIGITS}, n_train and n_held_out ≥ 1, "
            f"seed ≥ 0; got {min_digits=}, {max_digits=}, {n_train=}, {n_held_out=}, {seed=}"
        )
    of = f"numbers of {min_digits} to {max_digits} digits"
    room = {digits: _how_many(digits) // _HELD_OUT_SHARE for digits in range(min_digits, max_digits + 1)}
    if n_held_out > sum(room.values()):
        raise BadInput(
            f"of the {of}, at most {sum(room.values())} can be held out; got {n_held_out=}: hold out fewer, "
            "or allow more digits"
        )
    held_out = {
        digits: _draw(np.random.default_rng([_HELD_OUT, seed, digits]), digits, n, np.array([], dtype=int))
        for digits, n in _shared_out(n_held_out, room).items()
    }
    room = {digits: _how_many(digits) - len(numbers) for digits, numbers in held_out.items()}
    if n_train > sum(room.values()):
        raise BadInput(
            f"of the {of}, {sum(room.values())} are not held out; got {n_train=}: train on fewer, or "
            "allow more digits"
        )
    train = {
        digits: _draw(np.random.default_rng([_TRAIN, seed, digits]), digits, n, held_out[digits])
        for digits, n in _shared_out(n_train, room).items()
    }
    parts = [
        np.random.default_rng([stream, seed]).permutation(np.concatenate(list(part.values()))).tolist()
        for stream, part in ((_TRAIN, train), (_HELD_OUT, held_out))
    ]
    source, target = Vocabulary.of("0123456789"), Vocabulary.of(WORDS)
    corpora = (
        Corpus.from_ids(
            [source.encode(str(number)) for number in part],
            [target.encode(spell(number)[0]) for number in part],
        )
        for part in parts
    )
    return Task("number_words", source, target, *corpora, gold=tuple(spell(number)[1] for number in parts[1]))


def _how_many(digits: int) -> int:
    return 10**digits - _lowest(digits)


def _lowest(digits: int) -> int:
    return 0 if digits == 1 else 10 ** (digits - 1)


def _shared_out(n: int, room: dict[int, int]) -> dict[int, int]:
    """``n`` samples among the digit counts, as evenly as the room of each allows."""
    shares = {}
    # Those with the least room first, so that what they cannot take is left for the others.
    for place, digits in enumerate(sorted(room, key=room.__getitem__)):
        shares[digits] = min(n // (len(room) - place), room[digits])
        n -= shares[digits]
    return shares


def _draw(draw: np.random.Generator, digits: int, n: int, forbidden: np.ndarray) -> np.ndarray:
    """``n`` different numbers of so many digits, none of them forbidden (which all have as many)."""
    numbers = draw.choice(_how_many(digits), size=n + len(forbidden), replace=False) + _lowest(digits)
    return numbers[~np.isin(numbers, forbidden)][:n]


TASKS = {"number_words": number_words}
