"""Dates from the forms that people write to the one of ISO 8601, digit by digit::

    3 march 1 9 9 8                          1 9 9 8 - 0 3 - 0 3
    tuesday the 3 rd of march 1 9 9 8        1 9 9 8 - 0 3 - 0 3
    0 3 / 2 9 / 1 9 9 8                      1 9 9 8 - 0 3 - 2 9

A digit is a token, and so is a whole name. The target always has ten tokens; the source has six to eleven and
says the parts in an order of its own, which its form alone tells.
"""

from datetime import date

import numpy as np

from attnlib.errors import BadInput, UnknownName
from attnlib.training.corpus import Corpus, Links, Task
from attnlib.training.vocabulary import Vocabulary

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# Words in capitals stand for a part of the date, the others for themselves. With slashes the month comes
# first, with dots the day.
FORMS = (
    "DAY MONTH YEAR",
    "MONTH DAY TH , YEAR",
    "WEEKDAY the DAY TH of MONTH YEAR",
    "WEEKDAY , MONTH DAY , YEAR",
    "the DAY TH of MONTH , YEAR",
    "YEAR , MONTH DAY",
    "SHORT_WEEKDAY DAY SHORT_MONTH YEAR",
    "SHORT_MONTH DAY , YEAR",
    "MM / DD / YEAR",
    "DAY . M . YEAR",
)
FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
# Places of each part in the target.
_YEAR, _MONTH, _DAY = range(0, 4), range(5, 7), range(8, 10)
_PLACES = {
    "YEAR": _YEAR, "MONTH": _MONTH, "SHORT_MONTH": _MONTH, "M": _MONTH, "MM": _MONTH, "DAY": _DAY, "DD": _DAY,
}  # fmt: skip
# "may" is a long name and a short one.
_SOURCE_WORDS = tuple(
    dict.fromkeys(
        [*"0123456789,/.", "the", "of", "st", "nd", "rd", "th", *MONTHS, *WEEKDAYS]
        + [name[:3] for name in (*MONTHS, *WEEKDAYS)]
    )
)

# The held-out dates have a stream of their own, so they stay when n_train changes.
_HELD_OUT, _TRAIN = 0xDA71, 0xDA72


def write(day: date, form: str) -> tuple[tuple[str, ...], tuple[str, ...], Links]:
    """A date in one of ``FORMS``, in ISO form, and which target word comes from which source word.

    A digit of the target comes from the digit of its place. Where a month or a day is one word in the source
    (a name, or a digit without a zero before it), both of its digits come from that word. Hyphens have no
    link.

    >>> source, target, links = write(date(1998, 3, 29), "MONTH DAY TH , YEAR")
    >>> " ".join(source), "".join(target)
    ('march 2 9 th , 1 9 9 8', '1998-03-29')
    >>> sorted(links)
    [(0, 5), (1, 6), (2, 7), (3, 8), (5, 0), (6, 0), (8, 1), (9, 2)]

    Raises:
        UnknownName: no such form. BadInput: the date is not in 1900 … 2099.
    """
    if form not in FORMS:
        raise UnknownName("form of a date", form, FORMS)
    if not FIRST <= day <= LAST:
        raise BadInput(f"{day} is outside the years of this task; give a date from {FIRST} to {LAST}")
    parts = _parts(day)
    source: list[str] = []
    links: set[tuple[int, int]] = set()
    for word in form.split():
        said, places = parts.get(word, (word,)), _PLACES.get(word, ())
        for i, place in enumerate(places):
            links.add((place, len(source) + (i if len(said) == len(places) else 0)))
        source += said
    return tuple(source), tuple(day.isoformat()), frozenset(links)


def dates(*, n_train: int = 20_000, n_held_out: int = 2_000, seed: int = 0) -> Task:
    """Dates uniform in the 73,049 days of 1900 to 2099, each in a form uniform in the ten of ``FORMS``.

    The calendar is the real one, and weekdays are right. The held-out dates are all different, and none of
    them is trained on in any form. A training date may come again, mostly in another form.

    Args:
        n_train: training samples.
        n_held_out: held-out samples, at most half of the days.
        seed: of the draw.

    Raises:
        BadInput: a size that makes no sense.
    """
    days = (LAST - FIRST).days + 1
    if min(n_train, n_held_out) < 1 or n_held_out > days // 2 or seed < 0:
        raise BadInput(
            f"dates needs n_train ≥ 1, 1 ≤ n_held_out ≤ {days // 2} (half of the days), seed ≥ 0; "
            f"got {n_train=}, {n_held_out=}, {seed=}"
        )
    held_out_draw, train_draw = (np.random.default_rng([stream, seed]) for stream in (_HELD_OUT, _TRAIN))
    order = held_out_draw.permutation(days)
    held_out = _written(held_out_draw, order[:n_held_out])
    train = _written(train_draw, train_draw.choice(order[n_held_out:], size=n_train))
    source, target = Vocabulary.of(_SOURCE_WORDS), Vocabulary.of("0123456789-")
    corpora = (
        Corpus.from_ids(
            [source.encode(there) for there, _, _ in part], [target.encode(iso) for _, iso, _ in part]
        )
        for part in (train, held_out)
    )
    return Task("dates", source, target, *corpora, gold=tuple(links for _, _, links in held_out))


def _parts(day: date) -> dict[str, tuple[str, ...]]:
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    return {
        "YEAR": tuple(str(day.year)),
        "MONTH": (month,),
        "SHORT_MONTH": (month[:3],),
        "M": tuple(str(day.month)),
        "MM": tuple(f"{day.month:02}"),
        "DAY": tuple(str(day.day)),
        "DD": tuple(f"{day.day:02}"),
        "TH": (_ending(day.day),),
        "WEEKDAY": (weekday,),
        "SHORT_WEEKDAY": (weekday[:3],),
    }


def _ending(day: int) -> str:
    if day in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _written(draw: np.random.Generator, days: np.ndarray) -> list[tuple]:
    forms = draw.integers(len(FORMS), size=len(days))
    first = FIRST.toordinal()
    return [
        write(date.fromordinal(first + int(day)), FORMS[form]) for day, form in zip(days, forms, strict=True)
    ]


TASKS = {"dates": dates}
