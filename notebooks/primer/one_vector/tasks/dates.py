"""Dates from the forms that people write to the one of ISO 8601, digit by digit::

    3 march 1 9 9 8                          1 9 9 8 - 0 3 - 0 3
    tuesday the 3 rd of march 1 9 9 8        1 9 9 8 - 0 3 - 0 3
    0 3 / 2 9 / 1 9 9 8                      1 9 9 8 - 0 3 - 2 9

A digit is a token, and so is a whole name. The target always has ten tokens; the source has six to eleven and
says the parts in an order of its own, which its form alone tells.
"""

from datetime import date

import numpy as np

from attnlib.errors import BadInput, check_known
from companion.data.by_rule import task, task_by_rule
from companion.data.task import Links, Task

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
_SOURCE_WORDS = dict.fromkeys(
    [*"0123456789,/.", "the", "of", "st", "nd", "rd", "th", *MONTHS, *WEEKDAYS]
    + [name[:3] for name in (*MONTHS, *WEEKDAYS)]
)


def write(day: date, form: str) -> tuple[tuple[str, ...], tuple[str, ...], Links]:
    """A date in one of ``FORMS``, in ISO form, and which target word comes from which source word.

    A digit of the target comes from the digit of its place. Where a month or a day is one word in the source
    (a name, or a digit without a zero before it), both of its digits come from that word. Hyphens have no
    link.

    >>> source, target, links = write(date(1998, 3, 29), "MONTH DAY TH , YEAR")
    >>> " ".join(source), "".join(target)
    ('march 2 9 th , 1 9 9 8', '1998-03-29')
    >>> sorted(links)
    [(0, 5), (0, 6), (1, 8), (2, 9), (5, 0), (6, 1), (7, 2), (8, 3)]
    """
    check_known("form of a date", form, FORMS)
    if not FIRST <= day <= LAST:
        raise BadInput(f"{day} is outside the years of this task; give a date from {FIRST} to {LAST}")
    month, weekday = MONTHS[day.month - 1], WEEKDAYS[day.weekday()]
    ending = "th" if day.day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    parts = {"YEAR": day.year, "M": day.month, "MM": f"{day.month:02}", "DAY": day.day, "DD": f"{day.day:02}"}
    names = {
        "MONTH": month, "SHORT_MONTH": month[:3], "WEEKDAY": weekday, "SHORT_WEEKDAY": weekday[:3],
        "TH": ending,
    }  # fmt: skip
    source: list[str] = []
    links: set[tuple[int, int]] = set()
    for word in form.split():
        tokens = str(parts[word]) if word in parts else [names.get(word, word)]
        places = _PLACES.get(word, ())
        for i, place in enumerate(places):
            links.add((len(source) + (i if len(tokens) == len(places) else 0), place))
        source += tokens
    return tuple(source), tuple(day.isoformat()), frozenset(links)


@task()
def dates(*, n_train: int = 20_000, n_held_out: int = 2_000, seed: int = 0) -> Task:
    """Dates uniform in the 73,049 days of 1900 to 2099, each in a form uniform in the ten of ``FORMS``.

    The calendar is the real one, and weekdays are right. The held-out dates are all different, and none of
    them is trained on in any form. A training date may come again, mostly in another form.
    """
    days = (LAST - FIRST).days + 1
    if n_held_out > days // 2:
        raise BadInput(f"n_held_out must be at most {days // 2}, half of the days; got {n_held_out}")
    # The held-out dates have a stream of their own, so they stay when n_train changes.
    held_out_draw, train_draw = (np.random.default_rng([stream, seed]) for stream in (0xDA71, 0xDA72))
    order = held_out_draw.permutation(days)
    held_out = order[:n_held_out], held_out_draw.integers(len(FORMS), size=n_held_out)
    train = train_draw.choice(order[n_held_out:], size=n_train), train_draw.integers(len(FORMS), size=n_train)
    parts = (list(zip(*part, strict=True)) for part in (train, held_out))
    return task_by_rule(
        "dates",
        _SOURCE_WORDS,
        "0123456789-",
        tuple(parts),
        lambda drawn: write(date.fromordinal(FIRST.toordinal() + int(drawn[0])), FORMS[drawn[1]]),
    )


TASKS = {"dates": dates}
