"""Parallel corpora: sentence pairs of published data, of the reader's own two files, and of one rule.

They are read in two ways. As a *task* (:func:`multi30k_en_fr` and its like, by name in
:mod:`companion.data.registry`) they are words with a vocabulary a side. As *text*
(:func:`read_translation`) they are the lines of the second paper's translation sets, cleaned as its sections
A.5 and A.8 say, what is left out counted in :attr:`ParallelText.dropped`; :mod:`companion.data.pieces` makes
pieces of them.
"""

import hashlib
import html
import math
import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from attnlib.errors import BadInput, CorruptFile, UnknownName
from attnlib.training.corpus import Corpus, Links, Task
from attnlib.training.vocabulary import Vocabulary
from companion.data.sources import Dataset, dataset, find, locate
from companion.data.text import Dropped, Tally, read_lines, read_parallel, read_text

EUROPARL = dataset("europarl")
GOLD_ALIGNMENTS = dataset("gold_alignments")
IWSLT14 = dataset("iwslt14")
MULTI30K = dataset("multi30k")
NEWS_COMMENTARY = dataset("news_commentary")
TATOEBA = dataset("tatoeba")
WordPair = tuple[list[str], list[str]]
Pair = tuple[str, str]  # source, target
PieceKind = Literal["unigram", "word"]


# -- words, and tasks of them --------------------------------------------------------------------------------

# The alternatives are tried in this order at every place; white space is what none of them takes.
_WORD = re.compile(
    r"""
      aujourd'hui                               # the one common French word with an apostrophe inside
    | (?: [cdjlmnst] | \w*qu ) ' (?=\w)         # French elision stays on its word: l' homme, qu' il, jusqu' à
    | ' (?: s | re | ve | ll | d | m | t ) \b   # English clitics begin with theirs: man 's, they 're, don 't
    | \d+ (?: [.,]\d+ )*                        # 3.5 and 1,000 are one word
    | \w+ (?: -\w+ )*                           # t-shirt and peut-être are one word
    | [^\w\s]                                   # every other mark by itself
    """,
    re.VERBOSE | re.IGNORECASE,
)


def tokenise(line: str, *, lowercase: bool = True) -> list[str]:
    """Split a line into words and punctuation marks by one regular expression for English, French and German.

    The line is first brought to Unicode's composed form (NFC) and typographic apostrophes to plain ones.

    >>> tokenise("L'homme d'à côté, qu'il voit.")
    ["l'", 'homme', "d'", 'à', 'côté', ',', "qu'", 'il', 'voit', '.']
    >>> tokenise("The man's T-shirt isn't $3.50!")
    ['the', 'man', "'s", 't-shirt', 'isn', "'t", '$', '3.50', '!']
    """
    line = unicodedata.normalize("NFC", line).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return _WORD.findall(line.lower() if lowercase else line)


@dataclass(frozen=True)
class TextOptions:
    """How text becomes ids; the fields are the options of the same names of :func:`parallel`."""

    min_count: int = 2
    max_words: int | None = None
    max_length: int | None = None
    lowercase: bool = True


def tokenise_pairs(lines: tuple[Sequence[str], Sequence[str]], options: TextOptions) -> list[WordPair]:
    """Words of each pair of lines, without the pairs that have an empty or too long side.

    Raises:
        BadInput: ``max_length`` is below 1.
    """
    longest = math.inf if options.max_length is None else options.max_length
    if longest < 1:
        raise BadInput(f"max_length must be at least 1, or None for any length; got {longest}")
    pairs = (
        (tokenise(source, lowercase=options.lowercase), tokenise(target, lowercase=options.lowercase))
        for source, target in zip(*lines, strict=True)
    )
    return [(a, b) for a, b in pairs if 0 < len(a) <= longest and 0 < len(b) <= longest]


def split_off(
    pairs: list[WordPair], n_train: int | None, n_held_out: int
) -> tuple[list[WordPair], list[WordPair]]:
    """The first ``n_train`` pairs to train on, and the last ``n_held_out``.

    Raises:
        BadInput: there are not so many, or a number is negative.
    """
    available = len(pairs) - n_held_out
    if n_held_out < 0 or available < 1 or (n_train is not None and not 1 <= n_train <= available):
        raise BadInput(
            f"cannot take {n_train or 'any'} pairs to train on and {n_held_out} to hold out from "
            f"{len(pairs)} pairs; ask for fewer"
        )
    return pairs[: available if n_train is None else n_train], pairs[available:]


def build(
    name: str,
    train: list[WordPair],
    held_out: list[WordPair],
    options: TextOptions,
    checksums: dict[str, str],
) -> Task:
    """A task whose open vocabularies are made from the training pairs alone.

    Raises:
        BadInput: there is nothing to hold out.
    """
    if not held_out:
        raise BadInput(f"task {name} holds no pair out; ask for at least one")
    source, target = (
        Vocabulary.from_sentences(
            (pair[side] for pair in train),
            min_count=options.min_count,
            max_words=options.max_words,
            open=True,
        )
        for side in (0, 1)
    )
    parts = (
        Corpus.from_ids([source.encode(a) for a, _ in part], [target.encode(b) for _, b in part])
        for part in (train, held_out)
    )
    return Task(name, source, target, *parts, checksums)


# -- lines of text -------------------------------------------------------------------------------------------

_SPLIT_SEED = 0  # the paper's 90-10 split of News Commentary is not published; ours is drawn from this


@dataclass(frozen=True)
class ParallelText:
    """Sentence pairs to train on and to judge on.

    Attributes:
        dropped: what the reader left out, counted by part and reason.
        kind: how the text becomes pieces, see :func:`companion.data.pieces.train_pieces`.
    """

    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    dropped: tuple[Dropped, ...]
    kind: PieceKind = "unigram"


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


# -- Multi30k ------------------------------------------------------------------------------------------------

_HELD_OUT = ("val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")


def multi30k_en_fr(
    *,
    n_train: int | None = None,
    held_out_from_train: int = 4_000,
    min_count: int = 2,
    max_words: int | None = None,
    max_length: int | None = None,
    lowercase: bool = True,
) -> Task:
    """English to French, words and punctuation as :func:`tokenise` splits them.

    Held out are the validation set, the three test sets and the end of the training set: typicality compares
    samples of equal source and target length, which takes more of them than the published sets have.

    Args:
        n_train: use this many training pairs from the beginning; all that are not held out when None.
        held_out_from_train: pairs at the end of the training set to hold out beside the published sets.
        min_count, max_words, max_length, lowercase: as for :func:`parallel`.

    Raises:
        DataUnavailable: the files are not at hand; the message says how to get them.
        CorruptFile: a file has the wrong checksum.
        BadInput: an option that cannot be used.
    """
    options = TextOptions(min_count, max_words, max_length, lowercase)
    return _multi30k_task("fr", n_train, held_out_from_train, options)


def multi30k_en_de(
    *,
    n_train: int | None = None,
    held_out_from_train: int = 4_000,
    min_count: int = 2,
    max_words: int | None = None,
    max_length: int | None = None,
    lowercase: bool = True,
) -> Task:
    """English to German; options and errors as for :func:`multi30k_en_fr`."""
    options = TextOptions(min_count, max_words, max_length, lowercase)
    return _multi30k_task("de", n_train, held_out_from_train, options)


def _multi30k_task(
    language: str, n_train: int | None, held_out_from_train: int, options: TextOptions
) -> Task:
    checksums: dict[str, str] = {}

    def pairs(part: str) -> list[WordPair]:
        names = [f"{part}.en", f"{part}.{language}"]
        lines = read_parallel(*(locate(MULTI30K, name) for name in names))
        checksums.update({f"multi30k/{name}": MULTI30K.file(name).sha256 for name in names})
        return tokenise_pairs(lines, options)

    train, rest = split_off(pairs("train"), n_train, held_out_from_train)
    held_out = [pair for part in _HELD_OUT for pair in pairs(part)]
    return build(f"multi30k_en_{language}", train, held_out + rest, options, checksums)


def _multi30k_text(source: str, target: str) -> ParallelText:
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


# -- Tatoeba -------------------------------------------------------------------------------------------------

_FILE, _MEMBER = "fra-eng.zip", "fra.txt"
_SPLIT = 0x7A70


def tatoeba_en_fr(
    *,
    n_train: int | None = None,
    n_held_out: int = 6_000,
    min_count: int = 2,
    max_words: int | None = None,
    max_length: int | None = None,
    lowercase: bool = True,
    seed: int = 0,
) -> Task:
    """English to French, words and punctuation as :func:`tokenise` splits them.

    Many English sentences have several translations, and the file lists sentences by length. So English
    sentences are shuffled, and all translations of one, whatever its case, fall into the same part.

    Args:
        n_train: training pairs; all that are not held out when None.
        n_held_out: held-out pairs, at least; the last sentence's translations may exceed it.
        min_count, max_words, max_length, lowercase: as for :func:`parallel`.
        seed: of the shuffle.

    Raises:
        DataUnavailable, CorruptFile: the file is not at hand, or is not what it should be.
        BadInput: an option that cannot be used.
    """
    options = TextOptions(min_count, max_words, max_length, lowercase)
    by_source: dict[str, list[tuple[str, str]]] = {}
    for source, target in _tatoeba_lines():
        by_source.setdefault(source.lower(), []).append((source, target))
    sources = list(by_source)
    order = np.random.default_rng([_SPLIT, seed]).permutation(len(sources))
    lines = [line for i in order for line in by_source[sources[i]]]
    first = int(np.searchsorted(np.cumsum([len(by_source[sources[i]]) for i in order]), n_held_out))
    held = sum(len(by_source[sources[i]]) for i in order[: first + 1])
    if n_held_out < 1 or held >= len(lines):
        raise BadInput(f"n_held_out is {n_held_out}; it must lie between 1 and {len(lines) - 1}")
    if n_train is not None and not 1 <= n_train <= len(lines) - held:
        raise BadInput(f"n_train is {n_train}; it must lie between 1 and {len(lines) - held}")
    last = len(lines) if n_train is None else held + n_train
    held_out, train = (
        tokenise_pairs(tuple(zip(*part, strict=True)), options) for part in (lines[:held], lines[held:last])
    )
    checksums = {f"tatoeba/{_FILE}": TATOEBA.file(_FILE).sha256}
    return build("tatoeba_en_fr", train, held_out, options, checksums)


def _tatoeba_lines() -> Iterator[tuple[str, str]]:
    path = locate(TATOEBA, _FILE)
    try:
        with zipfile.ZipFile(path) as archive:
            text = archive.read(_MEMBER).decode("utf-8")
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
        raise CorruptFile(f"{path} holds no readable {_MEMBER} ({error}); get it again") from error
    for line in text.split("\n"):
        source, tab, rest = line.partition("\t")
        if tab:
            yield source, rest.partition("\t")[0]


# -- Europarl, and sentences of it that were aligned by hand -------------------------------------------------

_ZIP, _FOLDER = "de_en_100/German-English_WordAlignment.zip", "German-English_WordAlignment"


def europarl_de_en(
    *,
    n_train: int | None = None,
    held_out_from_train: int = 1_000,
    min_count: int = 2,
    max_words: int | None = None,
    max_length: int | None = 40,
) -> Task:
    """German to English; the 100 aligned sentences are trained on with the rest, as is usual for aligners.

    Held out are first those 100 (:attr:`Task.gold` has their links), then the end of the 20,000 pairs, so
    that typicality has samples. An aligner is judged on sentences it was given, so the first hundred are not
    new to the model. They come lower-cased, with a space before every mark, and are split at spaces alone,
    which is what their links count; the rest as :func:`tokenise` does, lower-cased.
    20,000 pairs make a weak translator.

    Args:
        n_train: use this many of the Europarl pairs from the beginning; all that are not held out when None.
        held_out_from_train: Europarl pairs at the end to hold out.
        min_count, max_words: as for :func:`parallel`; max_length: the same of the Europarl pairs.

    Raises:
        DataUnavailable, CorruptFile: a file is not at hand, or is not what it should be.
        BadInput: an option that cannot be used.
    """
    options = TextOptions(min_count, max_words, max_length, lowercase=True)
    lines = read_parallel(*(locate(EUROPARL, name) for name in ("train.de", "train.en")))
    train, rest = split_off(tokenise_pairs(lines, options), n_train, held_out_from_train)
    aligned, links = _gold_pairs()
    checksums = {f"europarl/{name}": EUROPARL.file(name).sha256 for name in ("train.de", "train.en")}
    checksums[f"gold_alignments/{_ZIP}"] = GOLD_ALIGNMENTS.file(_ZIP).sha256
    task = build("europarl_de_en", [*train, *aligned], [*aligned, *rest], options, checksums)
    return Task(
        task.name, task.source_vocabulary, task.target_vocabulary, task.train, task.held_out, checksums, links
    )


def _gold_pairs() -> tuple[list[WordPair], tuple[Links, ...]]:
    """The hand-aligned pairs, and their links as (target position, source position)."""
    path = locate(GOLD_ALIGNMENTS, _ZIP)
    try:
        with zipfile.ZipFile(path) as archive:
            german, english, alignments = (
                archive.read(f"{_FOLDER}/{name}").decode("utf-8-sig").split("\n")
                for name in ("test.de", "test.en", "de-en.wa")
            )
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
        raise CorruptFile(f"{path} cannot be read ({error}); get it again") from error
    pairs, links = [], []
    for source, target, line in zip(german, english, alignments, strict=True):
        if source.strip() and target.strip():
            pair = (source.split(), target.split())
            numbers = (map(int, link.split("-")) for link in line.split())
            found = ((to, come_from) for come_from, to in numbers)
            pairs.append(pair)
            # One of the file's 1,233 links points beyond the end of its sentence (the 63rd): nothing to keep.
            links.append(frozenset((t, s) for t, s in found if t < len(pair[1]) and s < len(pair[0])))
    return pairs, tuple(links)


# -- IWSLT 2014 ----------------------------------------------------------------------------------------------

_JOINT = re.compile(r"@@(?: |$)")  # subword-nmt ends a piece that the next one continues with @@
_IWSLT14_FIRST = ("lr_samples/first/train.de", "lr_samples/first/train.en")
_IWSLT14_SECOND = "lr_samples/sample.de+en"
_IWSLT14_VALIDATION = ("valid.de", "valid.en")
_IWSLT14_FILES = (*_IWSLT14_FIRST, _IWSLT14_SECOND, *_IWSLT14_VALIDATION)


def undo_bpe(line: str) -> str:
    """A line of subword-nmt pieces with the words put together again, HTML escapes read.

    >>> undo_bpe("in kam@@ bo@@ dia , we &apos;re lei@@ sur@@ ely")
    "in kambodia , we 're leisurely"
    """
    return html.unescape(_JOINT.sub("", line))


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


# -- News Commentary -----------------------------------------------------------------------------------------


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


def purely_numerical(line: str) -> bool:
    """Whether a line has digits and no letter (section A.5 removes such examples).

    >>> [purely_numerical(line) for line in ("1,200 – 30%", "G20", "…")]
    [True, False, False]
    """
    return any(sign.isdigit() for sign in line) and not any(sign.isalpha() for sign in line)


# -- a reader's own files ------------------------------------------------------------------------------------


def parallel(
    *,
    source: str | Path = "",
    target: str | Path = "",
    n_train: int | None = None,
    n_held_out: int | None = None,
    min_count: int = 2,
    max_words: int | None = None,
    max_length: int | None = None,
    lowercase: bool = True,
) -> Task:
    """Any two line-parallel UTF-8 text files, plain or gzip; the last lines are held out.

    Pairs with an empty side are dropped.

    Args:
        source: path of the file to translate from.
        target: path of the file to translate to.
        n_train: use this many pairs from the beginning; all that are not held out when None.
        n_held_out: pairs at the end to hold out; a tenth when None.
        min_count: words seen less often in the training pairs are read as ``<unk>``.
        max_words: keep at most this many words on each side, the most frequent ones; all when None.
        max_length: drop pairs with more words than this on either side; None keeps all.
        lowercase: whether to fold case.

    Raises:
        BadInput: a path is missing, the files differ in length or are not UTF-8 (either names the line), or
            have too few pairs.
        DataUnavailable: a file cannot be read.
        CorruptFile: a broken gzip file.
    """
    if not str(source) or not str(target):
        raise BadInput(f"parallel needs source=PATH and target=PATH; got {source!r} and {target!r}")
    options = TextOptions(min_count, max_words, max_length, lowercase)
    pairs = tokenise_pairs(read_parallel(source, target), options)
    if n_held_out is None:
        n_held_out = len(pairs) // 10
    train, held_out = split_off(pairs, n_train, n_held_out)
    # By role and name, not by path: where the files lie on one machine is no part of a result.
    files = (("source", Path(source)), ("target", Path(target)))
    checksums = {f"{role}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for role, path in files}
    return build("parallel", train, held_out, options, checksums)


_LINK = re.compile(r"(\d+)-(\d+)", re.ASCII)


def aligned(
    *,
    source: str | Path = "",
    target: str | Path = "",
    links: str | Path = "",
    n_train: int | None = None,
    n_held_out: int | None = None,
    min_count: int = 2,
    max_words: int | None = None,
    max_length: int | None = None,
    lowercase: bool = True,
) -> Task:
    """Two line-parallel files of words separated by spaces, and a third with the links of some of the lines.

    A line of ``links`` holds pairs ``source-target`` of word positions counted from 0, separated by spaces
    (the Pharaoh format, which aligners write); an empty line says that nothing is known of this pair. All
    links count as sure. As is usual for aligners, pairs with links are trained on with the rest, and the
    networks never see the links. Held out are first the pairs with links (:attr:`Task.gold`), then the last
    of the others. Words are split at spaces alone, since that is what links count. Pairs with an empty side
    are dropped.

    Args:
        source: path of the file to translate from, UTF-8, plain or gzip.
        target: path of the file to translate to.
        links: path of the file of links.
        n_train: use this many of the pairs without links from the beginning; all that are not held out when
            None.
        n_held_out: pairs without links at the end to hold out; a tenth of them when None.
        min_count, max_words, max_length, lowercase: as for :func:`parallel`.

    Raises:
        BadInput: a path is missing, the files differ in length or are not UTF-8, a link cannot be read or
            points beyond its sentence (each names the line), or no line has links.
        DataUnavailable: a file cannot be read.
        CorruptFile: a broken gzip file.
    """
    paths = {"source": source, "target": target, "links": links}
    if missing := [role for role, path in paths.items() if not str(path)]:
        raise BadInput(f"aligned needs source=, target= and links=PATH; without {', '.join(missing)}")
    options = TextOptions(min_count, max_words, max_length, lowercase)
    known, others = _read_aligned(source, target, links, options)
    if n_held_out is None:
        n_held_out = len(others) // 10
    train, rest = split_off(others, n_train, n_held_out) if others else ([], [])
    pairs = [pair for pair, _ in known]
    checksums = {
        f"{role}/{Path(path).name}": hashlib.sha256(Path(path).read_bytes()).hexdigest()
        for role, path in paths.items()
    }
    task = build("aligned", [*train, *pairs], [*pairs, *rest], options, checksums)
    sides = task.source_vocabulary, task.target_vocabulary, task.train, task.held_out
    return Task(task.name, *sides, checksums, gold=tuple(own for _, own in known))


def _read_aligned(
    source: str | Path, target: str | Path, links: str | Path, options: TextOptions
) -> tuple[list[tuple[WordPair, Links]], list[WordPair]]:
    """Pairs with links, and the others."""
    longest = math.inf if options.max_length is None else options.max_length
    sources, targets = read_parallel(source, target)
    lines = read_lines(links)
    if len(lines) != len(sources):
        raise BadInput(
            f"{links} has {len(lines)} lines and {source} has {len(sources)}; a pair without links has an "
            "empty line"
        )
    known, others = [], []
    for number, (*pair, line) in enumerate(zip(sources, targets, lines, strict=True), 1):
        a, b = ((side.lower() if options.lowercase else side).split() for side in pair)
        own = _links(line, len(a), len(b), f"{links}, line {number}")
        if not (0 < len(a) <= longest and 0 < len(b) <= longest):
            continue
        if own:
            known.append(((a, b), own))
        else:
            others.append((a, b))
    if not known:
        raise BadInput(f"{links} has no links; a line such as `0-0 1-2` aligns word 1 with word 2 (from 0)")
    return known, others


def _links(line: str, source: int, target: int, place: str) -> Links:
    """Links of a line as (target position, source position)."""
    found = []
    for text in line.split():
        link = _LINK.fullmatch(text)
        if link is None:
            raise BadInput(f"{place}: {text!r} is no link; write source-target positions from 0, such as 0-2")
        i, j = map(int, link.groups())
        if i >= source or j >= target:
            raise BadInput(
                f"{place}: link {text} points beyond its sentences of {source} and {target} words "
                "(positions count from 0, words are split at spaces)"
            )
        found.append((j, i))
    return frozenset(found)


def read_parallel_files(source: str | Path, target: str | Path) -> ParallelText:
    """A reader's own two files, line i of one translating line i of the other; a tenth is held out."""
    if not str(source) or not str(target):
        raise BadInput(
            f"two parallel files are needed, source=PATH and target=PATH; got {source!r} and {target!r}"
        )
    tally = Tally()
    pairs = _without_empty(zip(*read_parallel(source, target), strict=True), "pool", tally)
    return ParallelText(*split_90_10(pairs), tally.dropped())


# -- made by rule --------------------------------------------------------------------------------------------
# The dictionary is known: every source word has one translation. Words are drawn by Zipf's law, sentence
# lengths evenly; the target is the translated sentence with some neighbours exchanged, so that attention has
# something to find:
#
#     source   s3 s0 s7 s1
#     target   t3 t7 t0 t1

N_WORDS = 40
SHORTEST, LONGEST = 3, 9  # words in a sentence
N_TRAIN, N_VALIDATION = 4_000, 200
EXCHANGED = 0.25  # chance that a word and the next change places
_LEXICON_SEED = 0x1E71C0


def translation_of(word: str) -> str:
    """The one right translation of a source word.

    >>> translation_of("s17")
    't17'
    """
    return f"t{word.removeprefix('s')}"


def known_lexicon(
    n_train: int = N_TRAIN, n_validation: int = N_VALIDATION
) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Pairs to train on and pairs to judge on, the same on every call."""
    draw = np.random.default_rng(_LEXICON_SEED)
    frequencies = 1 / np.arange(1, N_WORDS + 1)
    pairs = tuple(_drawn_pair(draw, frequencies / frequencies.sum()) for _ in range(n_train + n_validation))
    return pairs[:n_train], pairs[n_train:]


def _drawn_pair(draw: np.random.Generator, frequencies: np.ndarray) -> Pair:
    length = draw.integers(SHORTEST, LONGEST + 1)
    source = [f"s{word}" for word in draw.choice(N_WORDS, size=length, p=frequencies)]
    target = [translation_of(word) for word in source]
    place = 0
    while place < length - 1:
        if draw.random() < EXCHANGED:
            target[place : place + 2] = reversed(target[place : place + 2])
            place += 1  # a word moves once
        place += 1
    return " ".join(source), " ".join(target)


def _known_lexicon() -> ParallelText:
    """A corpus made by rule, for when no data is at hand."""
    train, validation = known_lexicon()
    return ParallelText(train, validation, (), kind="word")


# -- by name -------------------------------------------------------------------------------------------------

TASKS = {
    "parallel": parallel,
    "aligned": aligned,
    "multi30k_en_fr": multi30k_en_fr,
    "multi30k_en_de": multi30k_en_de,
    "tatoeba_en_fr": tatoeba_en_fr,
    "europarl_de_en": europarl_de_en,
}


@dataclass(frozen=True)
class _Set:
    """How a translation set is read, and which files of which data set it is made from."""

    read: Callable[[], ParallelText]
    dataset: Dataset | None = None
    files: tuple[str, ...] = ()


def _multi30k_set(source: str, target: str) -> _Set:
    files = tuple(f"{part}.{side}" for part in ("train", "val") for side in (source, target))
    return _Set(partial(_multi30k_text, source, target), MULTI30K, files)


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


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_text(path).encode()).hexdigest()
