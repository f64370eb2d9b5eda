"""AG News, World against Business (section A.5): a third of training at hand, the test part whole."""

from attnlib.texts.prepare import RawText, RawTexts
from attnlib.texts.source import Source, checksums, csv_rows
from attnlib.texts.words import WordRules
from companion.data.sources import dataset, locate
from companion.data.text import read_text

AG_NEWS = dataset("ag_news")

_TRAIN, _TEST = "train_world_business_subset.csv", "test.csv"
_LABELS = {"1": 0, "3": 1}  # the file's classes World and Business; 2 is Sports, 4 is Sci/Tech


def read() -> RawTexts:
    """Title and description as one text: 20,477 of the paper's 60,000 training rows, all 3,800 test rows."""
    return RawTexts(
        "ag_news",
        ("World", "Business"),
        _texts(_TRAIN),
        _texts(_TEST),
        WordRules(html=True, mask_integers=True),
        checksums=checksums(AG_NEWS, (_TRAIN, _TEST)),
    )


def _texts(file: str) -> list[RawText]:
    path = locate(AG_NEWS, file)
    return [
        (f"{title} {description}", _LABELS[label])
        for label, title, description in csv_rows(read_text(path), path)
        if label in _LABELS
    ]


SOURCES = {"ag_news": Source(AG_NEWS, (_TRAIN, _TEST), read)}
