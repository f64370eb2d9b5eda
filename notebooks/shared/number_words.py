"""Numbers from digits to English words: two sides of unlike length, neither of which gives the other's::

    4 2 1 1 7        forty two thousand one hundred seventeen
    1 0 0 0 0 0 0    one million

How a digit is said depends on its place from the right, on the digit after it (one seven is "seventeen"), and
on whether it is zero, which is not said. There is no "and" and no hyphen.
"""

import numpy as np

from attnlib.errors import BadInput
from attnlib.training.corpus import Links, Task
from companion.data.by_rule import task, task_by_rule

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


@task()
def number_words(
    *, min_digits: int = 1, max_digits: int = 7, n_train: int = 20_000, n_held_out: int = 2_000, seed: int = 0
) -> Task:
    """Draw numbers without putting back: no number comes twice, in one part or in both.

    Each count of digits (zero has one) gets an equal share of the samples, as far as there are so many
    numbers; what the short ones leave goes to the longer ones. Of each count at most a fifth is held out: of
    the ten numbers of one digit, two. Both vocabularies are always complete, whatever the digits.
    """
    if max_digits > MOST_DIGITS:
        raise BadInput(f"max_digits must be at most {MOST_DIGITS}; got {max_digits}")
    lowest = {digits: 10 ** (digits - 1) * (digits > 1) for digits in range(min_digits, max_digits + 1)}
    room = {digits: 10**digits - first for digits, first in lowest.items()}
    drawn = {digits: np.array([], dtype=int) for digits in lowest}
    parts = []
    for stream, what, n, share in (
        (_HELD_OUT, "can be held out; got n_held_out", n_held_out, _HELD_OUT_SHARE),
        (_TRAIN, "are not held out; got n_train", n_train, 1),
    ):
        free = {digits: (room[digits] - len(drawn[digits])) // share for digits in room}
        if n > sum(free.values()):
            raise BadInput(
                f"of the numbers of {min_digits} to {max_digits} digits, {'at most ' * (share > 1)}"
                f"{sum(free.values())} {what}={n}: take fewer, or allow more digits"
            )
        for digits, count in _shared_out(n, free).items():
            draw, known = np.random.default_rng([stream, seed, digits]), drawn[digits]
            numbers = draw.choice(room[digits], size=count + len(known), replace=False) + lowest[digits]
            drawn[digits] = numbers[~np.isin(numbers, known)][:count]
        parts.append(np.random.default_rng([stream, seed]).permutation(np.concatenate(list(drawn.values()))))
    held_out, train = (part.tolist() for part in parts)
    return task_by_rule(
        "number_words", "0123456789", WORDS, (train, held_out), lambda number: (str(number), *spell(number))
    )


def _shared_out(n: int, room: dict[int, int]) -> dict[int, int]:
    """``n`` samples among the digit counts, as evenly as the room of each allows."""
    shares = {}
    # Those with the least room first, so that what they cannot take is left for the others.
    for place, digits in enumerate(sorted(room, key=room.__getitem__)):
        shares[digits] = min(n // (len(room) - place), room[digits])
        n -= shares[digits]
    return shares


TASKS = {"number_words": number_words}
