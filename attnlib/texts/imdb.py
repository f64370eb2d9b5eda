"""IMDB film reviews: 25,000 to train on, 4,000 of the 25,000 test reviews to judge on (section A.5)."""

from attnlib.texts.prepare import RawText, RawTexts
from attnlib.texts.source import Source, archived_texts, checksums
from attnlib.texts.words import WordRules
from companion.data.sources import dataset

IMDB = dataset("imdb")

_FILE = "aclImdb_labeled.tar.gz"
_LABELS = {"neg": 0, "pos": 1}


def read() -> RawTexts:
    """The labelled reviews; the test part has 123 that are in the training part as well."""
    parts: dict[str, list[RawText]] = {"train": [], "test": []}
    for name, text in archived_texts(IMDB, _FILE, "utf-8"):
        _, part, folder, _ = name.split("/")  # aclImdb/train/pos/0_9.txt
        parts[part].append((text, _LABELS[folder]))
    return RawTexts(
        "imdb",
        ("negative", "positive"),
        parts["train"],
        parts["test"],
        WordRules(html=True),
        checksums=checksums(IMDB, (_FILE,)),
    )


SOURCES = {"imdb": Source(IMDB, (_FILE,), read)}
