"""Amazon reviews of fewer than 400 words, negative against positive (section A.5).

The paper took all 25 domains of Blitzer et al.; at hand are 14 as prepared for FDU-MTL (tokenised, lower
case, with repeats inside and across its parts) and the 4 original ones of the ACL paper, which overlap. They
are one pool: 4,000 are judged on.
"""

import gzip
import re
import zlib

from attnlib.errors import CorruptFile
from attnlib.texts.prepare import RawText, RawTexts
from attnlib.texts.source import Source, checksums
from attnlib.texts.words import WordRules
from companion.data.sources import dataset, locate

AMAZON = dataset("amazon")

BELOW = 400  # "we only use sequences of length less than 400 words"
_FILES = tuple(file.name for file in AMAZON.files)
_REVIEW = re.compile(r"<review_text>\n(.*?)\n</review_text>", re.DOTALL)


def read() -> RawTexts:
    """The reviews of all files: FDU-MTL's lines, and the review texts of the original pseudo-XML."""
    texts: list[RawText] = []
    for name in _FILES:
        texts += _tokenised(name) if name.startswith("fdu-mtl/") else _original(name)
    return RawTexts(
        "amazon",
        ("negative", "positive"),
        texts,
        None,
        WordRules(html=True, below=BELOW),
        checksums=checksums(AMAZON, _FILES),
    )


def _tokenised(name: str) -> list[RawText]:
    texts = []
    # One of the files is not valid UTF-8: the few broken bytes become U+FFFD, which is no word character.
    for number, line in enumerate(_content(name).decode("utf-8", errors="replace").split("\n"), 1):
        if not line.strip():
            continue
        label, tab, text = line.partition("\t")
        if not tab or label not in ("0", "1"):
            raise CorruptFile(f"{name}, line {number}: expected 0 or 1, a tab and a text; got {line[:40]!r}")
        texts.append((text, int(label)))
    return texts


def _original(name: str) -> list[RawText]:
    label = int(name.endswith("positive.review"))
    return [(text, label) for text in _REVIEW.findall(_content(name).decode("latin-1"))]


def _content(name: str) -> bytes:
    path = locate(AMAZON, name)
    content = path.read_bytes()
    try:
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptFile(f"{path} is not a complete gzip file ({error}); get it again") from error


SOURCES = {"amazon": Source(AMAZON, _FILES, read)}
