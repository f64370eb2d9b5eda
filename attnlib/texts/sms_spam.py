"""The SMS Spam Collection (section A.9): 3,500 messages to train on, the others to judge on."""

from attnlib.errors import CorruptFile
from attnlib.texts.prepare import RawTexts
from attnlib.texts.source import Source, checksums
from attnlib.texts.words import WordRules
from companion.data.sources import dataset, locate
from companion.data.text import read_lines

SMS_SPAM = dataset("sms_spam")

_FILE = "sms.tsv"
_LABELS = {"ham": 0, "spam": 1}
N_TRAIN = 3_500  # A.9; how many were judged on it does not say


def read() -> RawTexts:
    """All 5,574 messages, one pool; many are repeats."""
    path, texts = locate(SMS_SPAM, _FILE), []
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
        checksums=checksums(SMS_SPAM, (_FILE,)),
        n_train=N_TRAIN,
    )


SOURCES = {"sms_spam": Source(SMS_SPAM, (_FILE,), read)}
