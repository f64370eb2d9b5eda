"""20 Newsgroups, baseball against hockey: whole messages, headers and all (section A.5).

The headers stay because Table 9's median lengths are those of messages with their headers. They name the
group, so that a classifier may read the answer there.
"""

from attnlib.texts.prepare import RawText, RawTexts
from attnlib.texts.source import Source, archived_texts, checksums
from attnlib.texts.words import WordRules
from companion.data.sources import dataset

TWENTY_NEWSGROUPS = dataset("twenty_newsgroups")

_FILE = "20news-bydate-rec.sport.tar.gz"
_PARTS = {"20news-bydate-train": "train", "20news-bydate-test": "test"}
_LABELS = {"rec.sport.baseball": 0, "rec.sport.hockey": 1}


def read() -> RawTexts:
    """All 1,197 training and 796 test messages; they are in Latin-1."""
    parts: dict[str, list[RawText]] = {"train": [], "test": []}
    for name, text in archived_texts(TWENTY_NEWSGROUPS, _FILE, "latin-1"):
        part, group = name.split("/")[-3:-1]
        parts[_PARTS[part]].append((text, _LABELS[group]))
    return RawTexts(
        "twenty_newsgroups",
        ("baseball", "hockey"),
        parts["train"],
        parts["test"],
        WordRules(split_underscores=True, mask_integers=True),
        checksums=checksums(TWENTY_NEWSGROUPS, (_FILE,)),
    )


SOURCES = {"twenty_newsgroups": Source(TWENTY_NEWSGROUPS, (_FILE,), read)}
