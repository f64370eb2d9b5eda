"""The Stanford Sentiment Treebank, whole sentences, under two filters of its five labels.

The text (section A.5) removes label 3 of 1 … 5 and sets 1 or 2 against 4 or 5. Table 9's counts, 5,130 and
1,421, are those of the sentences whose label counted from **0** is 1, 2 or 4: the same filter on labels off
by one, so that "negative" is negative and neutral, and "positive" very positive. ``sst`` is what the counts
say, ``sst_as_text`` what the text says (6,920 and 1,821).
"""

from functools import partial

from attnlib.errors import CorruptFile
from attnlib.texts.dropped import Tally
from attnlib.texts.prepare import RawText, RawTexts
from attnlib.texts.source import Source, checksums
from attnlib.texts.words import WordRules
from companion.data.sources import dataset, locate
from companion.data.text import read_lines

SST = dataset("sst")

_FILES = {"train": "stsa.fine.train", "validation": "stsa.fine.test"}
_CLASSES = ("very negative", "negative", "neutral", "positive", "very positive")
# Labels of the file, counted from 0, that make label 0 and label 1.
FILTERS = {"sst": ((1, 2), (4,)), "sst_as_text": ((0, 1), (3, 4))}


def read(name: str) -> RawTexts:
    """Training and test sentences that pass the filter ``name``; the development part is not used."""
    tally = Tally()
    train, test = (_texts(name, part, tally) for part in _FILES)
    return RawTexts(
        name,
        tuple(" or ".join(_CLASSES[label] for label in side) for side in FILTERS[name]),
        train,
        test,
        WordRules(),
        dropped=tally.dropped(),
        checksums=checksums(SST, tuple(_FILES.values())),
    )


def _texts(name: str, part: str, tally: Tally) -> list[RawText]:
    path = locate(SST, _FILES[part])
    kept = {label: side for side, labels in enumerate(FILTERS[name]) for label in labels}
    texts = []
    for number, line in enumerate(read_lines(path), 1):
        label, blank, sentence = line.partition(" ")
        if not blank or label not in ("0", "1", "2", "3", "4"):
            raise CorruptFile(
                f"{path}, line {number}: expected a label 0 … 4 and a sentence; got {line[:40]!r}"
            )
        if int(label) in kept:
            texts.append((sentence, kept[int(label)]))
        else:
            tally.add(part, "texts", f"label {int(label)} counted from 0, {_CLASSES[int(label)]}")
    return texts


SOURCES = {name: Source(SST, tuple(_FILES.values()), partial(read, name)) for name in FILTERS}
