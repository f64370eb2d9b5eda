"""Synthetic tasks: relabelled sequences, number words, the reordering family, and SCAN."""

import string
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product

import numpy as np

from attnlib.errors import BadInput, check_known
from companion.data.by_rule import drawn_apart, task, task_by_rule
from companion.data.task import Links, Task, links_of_order
from notebooks.shared.invented_language import (
    HEADS,
    REVERSING_OPENINGS,
    STAYING_MODIFIERS,
    STAYING_OPENINGS,
    SWAPPING_MODIFIERS,
    TRANSLATIONS,
)

# Sequences drawn without a grammar, relabelled and permuted. In the one-to-one task (our name; a task of one
# diagonal, as in the introduction of Aitken et al. 2021) words A, B, C … become a, b, c … one for one:
# position alone says where to attend, on the diagonal. A fixed permutation for each length takes it off.

_STREAMS = 0x01E1, 0x01E2


def _relabelling(name: str, order_of: Callable[[int, int], np.ndarray], longest: int, about: str):
    @task(name, about)
    def make(
        *, n_words: int = 3, min_length: int = 15, max_length: int = longest, n_train: int = 10_000,
        n_held_out: int = 1_200, seed: int = 0,
    ) -> Task:  # fmt: skip
        if n_words > 26:
            raise BadInput(f"task {name}: n_words must be at most 26; got {n_words}")
        if 2 * n_held_out > n_words**min_length:
            # Keeps the rejection of shared sequences below one draw in two, whatever the length.
            raise BadInput(
                f"{n_words} words make only {n_words**min_length} sentences of length {min_length}, too few "
                f"to hold out {n_held_out}; take at most {n_words**min_length // 2}, or longer sentences"
            )

        def sentence(draw: np.random.Generator) -> str:
            length = draw.integers(min_length, max_length, endpoint=True)
            return "".join(string.ascii_uppercase[word] for word in draw.integers(n_words, size=length))

        orders = {length: order_of(length, seed).tolist() for length in range(min_length, max_length + 1)}
        links = {length: links_of_order(order) for length, order in orders.items()}
        return task_by_rule(
            name,
            string.ascii_uppercase[:n_words],
            string.ascii_lowercase[:n_words],
            drawn_apart(sentence, _STREAMS, n_train, n_held_out, seed),
            lambda words: (words, [words[i].lower() for i in orders[len(words)]], links[len(words)]),
        )

    return make


one_to_one = _relabelling(
    "one_to_one",
    lambda length, seed: np.arange(length),
    20,
    """Draw samples: a length uniform in ``min_length … max_length``, then every word uniform.

    No source sequence is in both ``train`` and ``held_out``. There are ``n_words`` source words, at most 26,
    and as many target words. Raises BadInput for a size that makes no sense, or so many held-out samples that
    nothing is left to train on.
    """,
)
permutation = _relabelling(
    "permutation",
    lambda length, seed: np.random.default_rng([0x9E12, seed, length]).permutation(length),
    15,
    """Each length has one permutation, drawn with the seed; target word i relabels source word order[i].

    By default there is one length, and so one permutation for all samples: with several, a decoder has to
    know the length, which attention by position alone cannot tell. Otherwise as :func:`one_to_one`.
    """,
)
reversal = _relabelling(
    "reversal", lambda length, seed: np.arange(length)[::-1], 20, "The last word first: the anti-diagonal."
)


# Number words.

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
    words: list[tuple[str, tuple[int, ...]]] = []  # a word, and the places of its digits
    for group, scale in enumerate(SCALES):
        hundreds, tens, ones = (int(digit) for digit in padded[3 * group : 3 * group + 3])
        first = 3 * group - MOST_DIGITS + len(str(number))
        if hundreds:
            words += [(UNITS[hundreds], (first,)), ("hundred", (first,))]
        if tens == 1:
            words.append((UNITS[10 + ones], (first + 1, first + 2)))
        else:
            words += [(TENS[tens], (first + 1,))] if tens else []
            words += [(UNITS[ones], (first + 2,))] if ones else []
        if scale and hundreds + tens + ones:
            words.append((scale, (first + 2,)))
    links = frozenset((place, i) for i, (_, places) in enumerate(words) for place in places)
    return tuple(word for word, _ in words), links


@task()
def number_words(
    *, min_digits: int = 1, max_digits: int = 7, n_train: int = 20_000, n_held_out: int = 2_000, seed: int = 0
) -> Task:
    """Numbers from digits to English words: two sides of unlike length, neither of which gives the other's::

        4 2 1 1 7        forty two thousand one hundred seventeen
        1 0 0 0 0 0 0    one million

    How a digit is said depends on its place from the right, on the digit after it (one seven is "seventeen"),
    and on whether it is zero, which is not said. There is no "and" and no hyphen. No number comes twice.

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
        most = sum(free.values())
        if n > most:
            number = f"at most {most}" if share > 1 else str(most)
            raise BadInput(
                f"of the numbers of {min_digits} to {max_digits} digits, {number} {what}={n}: take fewer, or "
                "allow more digits"
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


# The reordering family.

REACHES = ("both", "local", "global")


def translate(words: Sequence[str], reach: str = "both") -> tuple[tuple[str, ...], Links]:
    """The translation of a sentence, and which target word comes from which source word.

    ``reach`` says which signals count: those of ``"local"`` order, of ``"global"`` order, or ``"both"``.
    """
    check_known("reach", reach, REACHES)
    for word in words:
        check_known("word", word, TRANSLATIONS)
    modifiers, heads = words[1::2], words[2::2]
    openings = STAYING_OPENINGS | REVERSING_OPENINGS
    adjectives = STAYING_MODIFIERS | SWAPPING_MODIFIERS
    if (
        not words
        or words[0] not in openings
        or len(modifiers) != len(heads)
        or any(word not in adjectives for word in modifiers)
        or any(word not in HEADS for word in heads)
    ):
        raise BadInput(
            f"{' '.join(words)!r} is no sentence: an opening word, then a modifier and a head in turn"
        )
    phrases = [
        (place + 1, place) if reach != "global" and words[place] in SWAPPING_MODIFIERS else (place, place + 1)
        for place in range(1, len(words), 2)
    ]
    if reach != "local" and words[0] in REVERSING_OPENINGS:
        phrases.reverse()
    order = [0, *(place for phrase in phrases for place in phrase)]
    return tuple(TRANSLATIONS[words[place]] for place in order), links_of_order(order)


@task()
def reordering(
    *, p: float = 0.5, reach: str = "both", min_phrases: int = 5, max_phrases: int = 8, n_train: int = 10_000,
    n_held_out: int = 2_400, seed: int = 0,
) -> Task:  # fmt: skip
    """A synthetic bilingual grammar with a dial from one diagonal to an order a sample.

    A sentence is an opening word and then phrases of a modifier and a head::

        now  red fox  old owl      gau  rakko fimbo  ohto ulufo    staying words alone: word for word
        now  wild fox  old owl     gau  fimbo wikko  ohto ulufo    a swapping modifier follows its head
        once  wild fox  old owl    onga  ohto ulufo  fimbo wikko   a reversing opening reverses the phrases

    Every word has one translation. Order is signalled by the words alone: swapping modifiers reorder locally,
    as French adjectives do; a reversing opening word reorders the whole sentence.

    With probability 1 − p a sentence has staying words only and is translated word for word; with probability
    p each of its signals is drawn from both classes, half each. At p = 0 one diagonal fits all samples; with
    p grows how much the order depends on the sample. The ``reach`` ``"local"`` draws swapping modifiers only,
    ``"global"`` reversing openings only. The number of phrases is uniform between its two bounds. No sentence
    is in both parts.
    """
    check_known("reach", reach, REACHES)
    if not 0 <= p <= 1:
        raise BadInput(f"p is {p}; it must lie between 0 and 1")
    fewest = len(STAYING_OPENINGS) * (len(STAYING_MODIFIERS) * len(HEADS)) ** min_phrases
    if 2 * n_held_out > fewest:
        raise BadInput(
            f"{min_phrases} phrases make only {fewest} sentences without reordering, too few to hold out "
            f"{n_held_out}; take at most {fewest // 2}, or more phrases"
        )
    openings = [list(STAYING_OPENINGS), list(REVERSING_OPENINGS)]
    modifiers = [list(STAYING_MODIFIERS), list(SWAPPING_MODIFIERS)]
    heads = list(HEADS)

    def sentence(draw: np.random.Generator) -> tuple[str, ...]:
        reordered = draw.random() < p
        phrases = int(draw.integers(min_phrases, max_phrases, endpoint=True))
        signals = draw.integers(2, size=phrases + 1) * reordered
        signals[0] *= reach != "local"
        signals[1:] *= reach != "global"
        words = [openings[signals[0]][draw.integers(2)]]
        for signal in signals[1:]:
            words += [modifiers[signal][draw.integers(4)], heads[draw.integers(8)]]
        return tuple(words)

    return task_by_rule(
        "reordering",
        TRANSLATIONS,
        TRANSLATIONS.values(),
        drawn_apart(sentence, (0x4E01, 0x4E02), n_train, n_held_out, seed),
        lambda words: (words, *translate(words, reach)),
    )


# SCAN.

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
    for first, join, second in product(simple_commands(), JOINS, simple_commands()):
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
    """SCAN: commands and the actions that they stand for, made from the grammar; no file is read.

    Grammar and meanings are those of Lake & Baroni 2018, "Generalization without systematicity" (arXiv
    1711.00350, supplement), with a random split, by default 80 % to train on as theirs::

        C → S and S | S after S | S
        S → V twice | V thrice | V
        V → D[1] opposite D[2] | D[1] around D[2] | D | U
        D → U left | U right | turn left | turn right
        U → walk | look | run | jump

    ``D[1] opposite D[2]`` stands for "walk opposite left" or "turn opposite left". The grammar makes 102
    commands S and 102 + 2 · 102² = 20,910 commands C, all different.

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
    """An extended SCAN of ours; of that of Aitken et al. 2021 public pages tell no grammar.

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


TASKS = {
    make.__name__: make
    for make in (one_to_one, permutation, reversal, number_words, reordering, scan, scan_extended)
}
