"""Yelp reviews, at most two stars against at least four (section A.5), from the three samples at hand.

The paper's Table 9 counts 88,821 + 4,000 reviews where its text says 20,000; here are 17,478 with stars other
than three. They are one pool: 4,000 are judged on.
"""

import zipfile
from collections.abc import Iterator

from attnlib.errors import CorruptFile
from attnlib.texts.dropped import Tally
from attnlib.texts.prepare import RawTexts
from attnlib.texts.source import Source, checksums, csv_rows
from attnlib.texts.words import WordRules
from companion.data.sources import dataset, locate
from companion.data.text import read_text

YELP = dataset("yelp")

_ZIP, _MEMBER = "yelp.csv.zip", "yelp.csv"
_SAMPLES = ("dev.csv", "test.csv")  # columns: text, business category, "Review Stars: 4.0"
_STARS = {"1": 0, "2": 0, "4": 1, "5": 1}


def read() -> RawTexts:
    """All reviews but those of three stars."""
    tally, texts = Tally(), []
    for text, stars in _reviews():
        if stars in _STARS:
            texts.append((text, _STARS[stars]))
        else:
            tally.add("pool", "texts", "three stars")
    return RawTexts(
        "yelp",
        ("at most two stars", "at least four stars"),
        texts,
        None,
        WordRules(html=True),
        dropped=tally.dropped(),
        checksums=checksums(YELP, (_ZIP, *_SAMPLES)),
    )


def _reviews() -> Iterator[tuple[str, str]]:
    path = locate(YELP, _ZIP)
    try:
        with zipfile.ZipFile(path) as archive:
            content = archive.read(_MEMBER).decode("utf-8")
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
        raise CorruptFile(f"{path} holds no readable {_MEMBER} ({error}); get it again") from error
    header, *rows = csv_rows(content, path)
    text, stars = header.index("text"), header.index("stars")
    yield from ((row[text], row[stars]) for row in rows)
    for name in _SAMPLES:
        path = locate(YELP, name)
        for text, _, stars in csv_rows(read_text(path), path)[1:]:
            yield text, stars.removeprefix("Review Stars: ").removesuffix(".0")


SOURCES = {"yelp": Source(YELP, (_ZIP, *_SAMPLES), read)}
