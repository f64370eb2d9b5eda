"""Sentence pairs of the second paper's translation sets as text, cleaned as sections A.5 and A.8 say.

What a reader leaves out is counted in :attr:`ParallelText.dropped`."""

import hashlib
import html
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from attnlib.errors import BadInput, UnknownName
from attnlib.texts.dropped import Dropped, Tally
from attnlib.texts.known_lexicon import known_lexicon
from attnlib.texts.pieces import Kind
from companion.data.sources import Dataset, dataset, find, locate
from companion.data.text import read_lines, read_parallel, read_text

IWSLT14 = dataset("iwslt14")
MULTI30K = dataset("multi30k")
NEWS_COMMENTARY = dataset("news_commentary")

Pair = tuple[str, str]  # source, target
_SPLIT_SEED = 0  # the paper's 90-10 split of News Commentary is not published; ours is drawn from this
_JOINT = re.compile(r"@@(?: |$)")  # subword-nmt ends a piece that the next one continues with @@


@dataclass(frozen=True)
class ParallelText:
    """Sentence pairs to train on and to judge on.

    Attributes:
        dropped: what the reader left out, counted by part and reason.
        kind: how the text becomes pieces, see :func:`attnlib.texts.pieces.train_pieces`.
    """

    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    dropped: tuple[Dropped, ...]
    kind: Kind = "unigram"


def undo_bpe(line: str) -> str:
    """A line of subword-nmt pieces with the words put together again, HTML escapes read.

    >>> undo_bpe("in kam@@ bo@@ dia , we &apos;re lei@@ sur@@ ely")
    "in kambodia , we 're leisurely"
    """
    return html.unescape(_JOINT.sub("", line))


def purely_numerical(line: str) -> bool:
    """Whether a line has digits and no letter (section A.5 removes such examples).

    >>> [purely_numerical(line) for line in ("1,200 – 30%", "G20", "…")]
    [True, False, False]
    """
    return any(sign.isdigit() for sign in line) and not any(sign.isalpha() for sign in line)


def _multi30k(source: str, target: str) -> ParallelText:
    """Captions of photographs; the published training and validation sets, whole."""
    tally = Tally()
    parts = [
        _without_empty(
            zip(*_parallel(MULTI30K, f"{part}.{source}", f"{part}.{target}"), strict=True),
            "train" if part == "train" else "validation",
            tally,
        )
        for part in ("train", "val")
    ]
    return ParallelText(*parts, tally.dropped())


_IWSLT14_FIRST = ("lr_samples/first/train.de", "lr_samples/first/train.en")
_IWSLT14_SECOND = "lr_samples/sample.de+en"
_IWSLT14_VALIDATION = ("valid.de", "valid.en")
_IWSLT14_FILES = (*_IWSLT14_FIRST, _IWSLT14_SECOND, *_IWSLT14_VALIDATION)


def _iwslt14() -> ParallelText:
    """TED talks: the two samples of the training set that are at hand, and the published validation set.

    The samples overlap; of pairs that are equal once their pieces are words again, the first is kept, and
    none that is in the validation set.
    """
    tally = Tally()
    first = zip(*_parallel(IWSLT14, *_IWSLT14_FIRST), strict=True)
    second = _split_at_tab(read_lines(locate(IWSLT14, _IWSLT14_SECOND)), "train", tally)
    train = _without_empty(((undo_bpe(a), undo_bpe(b)) for a, b in (*first, *second)), "train", tally)
    valid = zip(*_parallel(IWSLT14, *_IWSLT14_VALIDATION), strict=True)
    validation = _without_empty(((html.unescape(a), html.unescape(b)) for a, b in valid), "validation", tally)
    distinct = tuple(dict.fromkeys(train))
    tally.add("train", "pairs", "already there", len(train) - len(distinct))
    known = set(validation)
    kept = tuple(pair for pair in distinct if pair not in known)
    tally.add("train", "pairs", "also in validation", len(distinct) - len(kept))
    return ParallelText(kept, validation, tally.dropped())


def _news_commentary(source: str, target: str) -> ParallelText:
    """Newspaper commentary; purely numerical pairs are dropped, 90 % are trained on (section A.8)."""
    return read_news(locate(NEWS_COMMENTARY, _news_file(source, target)))


def _news_file(source: str, target: str) -> str:
    return f"news-commentary-v14.{source}-{target}.tsv"


def read_news(path: str | Path) -> ParallelText:
    """A file of News Commentary's format: a pair a line, source and target separated by a tab.

    Lines without exactly one tab and pairs with an empty side (the file puts such lines between documents)
    are dropped, and so are pairs of which a side is purely numerical.
    """
    tally = Tally()
    pairs = _without_empty(_split_at_tab(read_lines(path), "pool", tally), "pool", tally)
    kept = [pair for pair in pairs if not any(map(purely_numerical, pair))]
    tally.add("pool", "pairs", "purely numerical", len(pairs) - len(kept))
    return ParallelText(*split_90_10(kept), tally.dropped())


def split_90_10(pairs: Sequence[Pair]) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """⌊0.9 n⌋ pairs to train on and the others, drawn at random once and for all, each in the file's order.

    The rounding is that of Table 9 (52,070 and 5,786 of 57,856).

    Raises:
        BadInput: fewer than 2 pairs.
    """
    if len(pairs) < 2:
        raise BadInput(f"{len(pairs)} sentence pairs cannot be split; give at least 2")
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(pairs))
    cut = len(pairs) * 9 // 10
    train, validation = (tuple(pairs[i] for i in sorted(part)) for part in (order[:cut], order[cut:]))
    return train, validation


def read_parallel_files(source: str | Path, target: str | Path) -> ParallelText:
    """A reader's own two files, line i of one translating line i of the other; a tenth is held out."""
    if not str(source) or not str(target):
        raise BadInput(
            f"two parallel files are needed, source=PATH and target=PATH; got {source!r} and {target!r}"
        )
    tally = Tally()
    pairs = _without_empty(zip(*read_parallel(source, target), strict=True), "pool", tally)
    return ParallelText(*split_90_10(pairs), tally.dropped())


def _known_lexicon() -> ParallelText:
    """A corpus made by rule, for when no data is at hand: see :mod:`attnlib.texts.known_lexicon`."""
    train, validation = known_lexicon()
    return ParallelText(train, validation, (), kind="word")


@dataclass(frozen=True)
class _Set:
    """How a translation set is read, and which files of which data set it is made from."""

    read: Callable[[], ParallelText]
    dataset: Dataset | None = None
    files: tuple[str, ...] = ()


def _multi30k_set(source: str, target: str) -> _Set:
    files = tuple(f"{part}.{side}" for part in ("train", "val") for side in (source, target))
    return _Set(partial(_multi30k, source, target), MULTI30K, files)


def _news_set(source: str, target: str) -> _Set:
    return _Set(partial(_news_commentary, source, target), NEWS_COMMENTARY, (_news_file(source, target),))


_SETS = {
    # The text says English to German (A.5). Table 9's median validation lengths, 15 and 14 pieces, are those
    # of German and English in our pieces, and English to German has 14 and 15: so both directions are here.
    "multi30k_en_de": _multi30k_set("en", "de"),
    "multi30k_de_en": _multi30k_set("de", "en"),
    "iwslt14_de_en": _Set(_iwslt14, IWSLT14, _IWSLT14_FILES),
    "news_it_pt": _news_set("it", "pt"),
    "news_en_nl": _news_set("en", "nl"),
    "news_en_pt": _news_set("en", "pt"),
    "known_lexicon": _Set(_known_lexicon),
}
OWN = "parallel_files"
NAMES = (*_SETS, OWN)


def read_translation(name: str, *, source: str = "", target: str = "") -> ParallelText:
    """The sentence pairs of a set.

    Args:
        name: one of :data:`NAMES`.
        source, target: paths, for ``"parallel_files"`` alone.

    Raises:
        UnknownName: no such set.
        DataUnavailable: its files are not at hand; the message says how to get them.
        CorruptFile: a file has the wrong checksum.
        BadInput: the reader's files differ in length, are not UTF-8, or have fewer than 2 pairs.
    """
    _check_name(name)
    return read_parallel_files(source, target) if name == OWN else _SETS[name].read()


def translation_checksums(name: str, *, source: str = "", target: str = "") -> dict[str, str]:
    """sha256 of the content of each file that :func:`read_translation` reads, by "dataset/file".

    Where the checksum is known beforehand the file need not be there; errors as in :func:`read_translation`.
    """
    _check_name(name)
    if name == OWN:
        # By role and name, not by path: where the files lie on one machine is no part of a result.
        files = {"source": Path(source), "target": Path(target)}
        return {f"{role}/{path.name}": _sha256(path) for role, path in files.items()}
    dataset = _SETS[name].dataset
    return {
        f"{dataset.name}/{file}": dataset.file(file).sha256 or _sha256(locate(dataset, file))
        for file in _SETS[name].files
    }


def at_hand(name: str) -> bool:
    """Whether all files of a set are on this machine, unchecked; sets by rule or of the reader have none.

    Raises:
        UnknownName: no such set.
    """
    _check_name(name)
    if name == OWN or (dataset := _SETS[name].dataset) is None:
        return True
    return all(find(dataset, dataset.file(file)) for file in _SETS[name].files)


def _check_name(name: str) -> None:
    if name not in NAMES:
        raise UnknownName("translation set", name, NAMES)


def _parallel(dataset: Dataset, *names: str) -> tuple[list[str], list[str]]:
    return read_parallel(*(locate(dataset, name) for name in names))


def _without_empty(pairs: Iterable[Pair], part: str, tally: Tally) -> tuple[Pair, ...]:
    stripped = [(source.strip(), target.strip()) for source, target in pairs]
    kept = tuple(pair for pair in stripped if all(pair))
    tally.add(part, "pairs", "an empty side", len(stripped) - len(kept))
    return kept


def _split_at_tab(lines: Sequence[str], part: str, tally: Tally) -> list[Pair]:
    fields = [line.split("\t") for line in lines]
    pairs = [(row[0], row[1]) for row in fields if len(row) == 2]
    tally.add(part, "lines", "not two columns", len(lines) - len(pairs))
    return pairs


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_text(path).encode()).hexdigest()
