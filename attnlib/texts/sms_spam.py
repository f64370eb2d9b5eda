"""The SMS Spam Collection (section A.9): 3,500 messages to train on, the others to judge on."""

from attnlib.datasets.locate import locate
from attnlib.datasets.sms_spam import DATASET
from attnlib.datasets.text import read_lines
from attnlib.errors import CorruptFile
from attnlib.texts.prepare import RawTexts
from attnlib.texts.source import Source, checksums
from attnlib.texts.words import WordRules

_FILE = "sms.tsv"
_LABELS = {"ham": 0, "spam": 1}
N_TRAIN = 3_500  # A.9; how many were judged on it does not say


def read() -> RawTexts:
    """All 5,574 messages, one pool; many are repeats."""
    path, texts = locate(DATASET, _FILE), []
    for number, line in enumerate(read_lines(path), 1):
        label, tab, text = line.partition("\t")
        if not tab or label not in _LABELS:
            raise CorruptFile(
                f"{path}, line {number}: expected ham or spam, a tab and a text; got {line[:40]!r}"
            )
        texts.append((text, _LABELS[label]))
    return RawTexts(
        "sms_spam",
        ("ham", "spam"),
        texts,
        None,
        WordRules(html=True),
        checksums=checksums(DATASET, (_FILE,)),
        n_train=N_TRAIN,
    )


SOURCES = {"sms_spam": Source(DATASET, (_FILE,), read)}
