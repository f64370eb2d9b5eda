"""Parallel corpora: sentence pairs of published data, of the reader's own files, and of one rule.

They are read in two ways. As a *task* (:func:`multi30k_en_fr` and its like, by name in
:mod:`companion.data.registry`) they are words with a vocabulary a side. As *text*
(:func:`read_translation`) they are the lines of the second paper's translation sets, cleaned as its sections
A.5 and A.8 say, what is left out counted in :attr:`ParallelText.dropped`;
:mod:`notebooks.shared.pieces` makes pieces of them.
"""

import html
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np

from attnlib.errors import BadInput, check_known
from attnlib.models.corpus import Corpus
from attnlib.models.vocabulary import Vocabulary
from companion.data.by_rule import task
from companion.data.own_text import (
    EMPTY,
    LONGEST,
    OwnText,
    Sizes,
    TextFacts,
    described,
    own_lines,
    own_text,
    split_off,
)
from companion.data.sources import Dataset, dataset, locate
from companion.data.task import Links, Task
from companion.data.text import Dropped, Tally, own_checksums, read_lines, read_parallel, unzipped
from companion.data.words import published_words, tokenise  # noqa: F401

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


@dataclass(frozen=True)
class TextOptions:
    """How text becomes ids; see :func:`parallel`."""

    min_count: int = 2
    max_words: int | None = None
    max_length: int | None = None
    lowercase: bool = True


def tokenise_pairs(lines: tuple[Sequence[str], Sequence[str]], options: TextOptions) -> list[WordPair]:
    """Words of each pair of published lines, without the pairs that have an empty or too long side."""
    longest = math.inf if options.max_length is None else options.max_length
    pairs = (
        tuple(published_words(side, lowercase=options.lowercase) for side in (source, target))
        for source, target in zip(*lines, strict=True)
    )
    return [(a, b) for a, b in pairs if 0 < len(a) <= longest and 0 < len(b) <= longest]


def _split_off(
    pairs: list[WordPair], n_train: int | None, n_held_out: int
) -> tuple[list[WordPair], list[WordPair]]:
    """The first ``n_train`` pairs to train on, and the last ``n_held_out``."""
    available = len(pairs) - n_held_out
    if available < (n_train or 1):
        raise BadInput(
            f"cannot take {n_train or 'any'} pairs to train on and {n_held_out} to hold out from "
            f"{len(pairs)} pairs; ask for fewer"
        )
    return pairs[: available if n_train is None else n_train], pairs[available:]


def _task(
    name: str,
    train: list[WordPair],
    held_out: list[WordPair],
    options: TextOptions,
    checksums: dict[str, str],
    gold: tuple[Links, ...] | None = None,
) -> Task:
    """A task whose open vocabularies are made from the training pairs alone."""
    if not held_out:
        raise BadInput(f"task {name} holds no pair out; ask for at least one")
    bounds = {"min_count": options.min_count, "max_words": options.max_words, "open": True}
    source = Vocabulary.from_sentences((words for words, _ in train), **bounds)
    target = Vocabulary.from_sentences((words for _, words in train), **bounds)

    def encoded(pairs: list[WordPair]) -> Corpus:
        sources = [source.encode(words) for words, _ in pairs]
        targets = [target.encode(words) for _, words in pairs]
        return Corpus.from_ids(sources, targets)

    return Task(name, source, target, encoded(train), encoded(held_out), checksums, gold)


def _parallel(data: Dataset, *names: str) -> tuple[list[str], list[str]]:
    return read_parallel(*(locate(data, name) for name in names))


# -- Multi30k, Tatoeba, Europarl -----------------------------------------------------------------------------


def _multi30k(language: str, about: str) -> Callable[..., Task]:
    parts = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
    names = [(f"{part}.en", f"{part}.{language}") for part in parts]

    def reads(**_: object) -> dict[str, str | None]:
        return MULTI30K.checksums(chain(*names))

    @task(f"multi30k_en_{language}", about, reads=reads, held_out_from_train=0)
    def make(
        *,
        n_train: int | None = None,
        held_out_from_train: int = 4_000,
        min_count: int = 2,
        max_words: int | None = None,
        max_length: int | None = None,
        lowercase: bool = True,
    ) -> Task:
        options = TextOptions(min_count, max_words, max_length, lowercase)
        pairs, *published = (tokenise_pairs(_parallel(MULTI30K, *pair), options) for pair in names)
        train, rest = _split_off(pairs, n_train, held_out_from_train)
        held_out = [*chain(*published), *rest]
        return _task(f"multi30k_en_{language}", train, held_out, options, reads())

    return make


multi30k_en_fr = _multi30k(
    "fr",
    """English to French, words and punctuation as :func:`tokenise` splits them.

    Held out are the validation set, the three test sets and ``held_out_from_train`` pairs at the end of the
    training set: typicality compares samples of equal source and target length, which takes more of them
    than the published sets have. Other options and errors as for :func:`parallel`.
    """,
)
multi30k_en_de = _multi30k("de", "English to German; options and errors as for :func:`multi30k_en_fr`.")


_TATOEBA_FILES = {"fr": ("fra-eng.zip", "fra.txt"), "de": ("deu-eng.zip", "deu.txt")}
_TATOEBA_HELD_OUT = 6_000


def _tatoeba_lines(archive: str, member: str, n_held_out: int, seed: int) -> tuple[list[Pair], int]:
    """Return the pairs of a file, those held out first, and how many these are.

    Many English sentences have several translations, and the file lists sentences by length. So English
    sentences are shuffled with ``seed``, and all translations of one, whatever its case, fall into the same
    part; the last of them may exceed ``n_held_out``.
    """
    (text,) = unzipped(locate(TATOEBA, archive), member)
    by_source: dict[str, list[Pair]] = {}
    for line in text.split("\n"):
        if "\t" in line:
            source, target = line.split("\t")[:2]
            by_source.setdefault(source.lower(), []).append((source, target))
    groups = list(by_source.values())
    order = np.random.default_rng([0x7A70, seed]).permutation(len(groups))
    lines = [pair for i in order for pair in groups[i]]
    ends = np.cumsum([len(groups[i]) for i in order])
    return lines, int(ends[min(np.searchsorted(ends, n_held_out), len(ends) - 1)])


def _tatoeba_reads(**_: object) -> dict[str, str | None]:
    return TATOEBA.checksums(["fra-eng.zip"])


@task(reads=_tatoeba_reads)
def tatoeba_en_fr(
    *,
    n_train: int | None = None,
    n_held_out: int = _TATOEBA_HELD_OUT,
    min_count: int = 2,
    max_words: int | None = None,
    max_length: int | None = None,
    lowercase: bool = True,
    seed: int = 0,
) -> Task:
    """English to French, words and punctuation as :func:`tokenise` splits them.

    English sentences are shuffled with ``seed``, and all translations of one, whatever its case, fall into
    the same part; the last of them may exceed ``n_held_out``. Other options and errors as for
    :func:`parallel`.
    """
    lines, held = _tatoeba_lines(*_TATOEBA_FILES["fr"], n_held_out, seed)
    if held + (n_train or 1) > len(lines):
        raise BadInput(
            f"cannot take {n_train or 'any'} pairs to train on and {n_held_out} to hold out from "
            f"{len(lines)}, all translations of a sentence together; ask for fewer"
        )
    last = None if n_train is None else held + n_train
    options = TextOptions(min_count, max_words, max_length, lowercase)
    held_out, train = (
        tokenise_pairs(tuple(zip(*part, strict=True)), options) for part in (lines[:held], lines[held:last])
    )
    return _task("tatoeba_en_fr", train, held_out, options, _tatoeba_reads())


_EUROPARL_FILES = ("train.de", "train.en")
_EUROPARL_GOLD = "de_en_100/German-English_WordAlignment.zip"


def _europarl_reads(**_: object) -> dict[str, str | None]:
    return EUROPARL.checksums(_EUROPARL_FILES) | GOLD_ALIGNMENTS.checksums([_EUROPARL_GOLD])


@task(reads=_europarl_reads, held_out_from_train=0)
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
    that typicality has samples. The hundred come lower-cased, with a space before every mark, and are split
    at spaces alone, which is what their links count; the rest as :func:`tokenise` does, lower-cased, of
    ``max_length`` words at most. Other options and errors as for :func:`parallel`.
    """
    options = TextOptions(min_count, max_words, max_length, lowercase=True)
    pairs = tokenise_pairs(_parallel(EUROPARL, *_EUROPARL_FILES), options)
    train, rest = _split_off(pairs, n_train, held_out_from_train)
    files = (f"German-English_WordAlignment/{name}" for name in ("test.de", "test.en", "de-en.wa"))
    texts = (text.split("\n") for text in unzipped(locate(GOLD_ALIGNMENTS, _EUROPARL_GOLD), *files))
    aligned, links = [], []
    for german, english, line in zip(*texts, strict=True):
        if german.strip() and english.strip():
            source, target = german.split(), english.split()
            positions = (map(int, link.split("-")) for link in line.split())
            aligned.append((source, target))
            # One of the file's 1,233 links points beyond the end of its sentence (the 63rd): nothing to keep.
            links.append(frozenset((s, t) for s, t in positions if s < len(source) and t < len(target)))
    parts = [*train, *aligned], [*aligned, *rest]
    return _task("europarl_de_en", *parts, options, _europarl_reads(), tuple(links))


# -- a reader's own files ------------------------------------------------------------------------------------


def _own_files(
    *, source: str | Path = "", target: str | Path = "", links: str | Path = "", **_: object
) -> dict[str, str]:
    files = {"source": source, "target": target, "links": links}
    return own_checksums(**{role: path for role, path in files.items() if path})


@task(reads=_own_files, n_held_out=0)
def parallel(
    *,
    source: str | Path = "",
    target: str | Path = "",
    links: str | Path = "",
    tokenizer: str = "",
    n_train: int | None = None,
    n_held_out: int | None = None,
    min_count: int = 2,
    max_words: int | None = None,
    max_length: int | None = LONGEST,
    lowercase: bool = True,
    seed: int = 0,
) -> Task:
    """Any parallel text of the reader's own: two line-parallel files, or one file with two sides.

    :mod:`attnlib.text_files` says which files are read, :mod:`companion.data.words` how lines become words.
    Pairs with an empty side are left out. Pairs are shuffled before some are held out, and pairs with equal
    sources stay on one side of the split. :attr:`Task.text` says what was made of the text.

    With a third file, of links, words are split at spaces alone, since that is what links count. Its lines
    hold pairs
    ``source-target`` of word positions counted from 0 (the Pharaoh format, which aligners write), all sure;
    an empty line says that nothing is known of this pair. As is usual for aligners, pairs with links are
    trained on with the rest; held out are first these (:attr:`Task.gold`), then some of the others, which
    alone ``n_train`` and
    ``n_held_out`` count.

    Args:
        source, target, links: paths of the files to translate from and to, and of their links, if any.
        tokenizer: how lines become words, one of :data:`companion.data.words.NAMES`; ``"words"`` by default.
        n_train: use this many of the shuffled pairs; all that are not held out when None.
        n_held_out: pairs to hold out; a tenth when None.
        min_count: words seen less often in the training pairs are read as ``<unk>``.
        max_words: keep at most this many words on each side, the most frequent ones; all when None.
        max_length: leave out pairs with more words than this on either side; None keeps all.
        lowercase: whether to fold case.
        seed: of the shuffle.

    Raises:
        BadInput: a path is missing, the files differ in length or are in another encoding, a link cannot be
        read
            or points beyond its sentence (each names the line), there are too few pairs, or no links, or more
            than a tenth of the words of a side are unknown.
        DataUnavailable: a file cannot be read.
        CorruptFile: a broken packed file, or one with another checksum.
    """
    sizes = Sizes(n_train=n_train, n_held_out=n_held_out, max_length=max_length, seed=seed)
    if links:
        if tokenizer not in ("", "spaces"):
            raise BadInput(f"links count words split at spaces; leave out tokenizer={tokenizer}")
        options = TextOptions(min_count, max_words, max_length, lowercase)
        return _aligned(source, target, links, options=options, sizes=sizes)
    text = own_text(
        source, target, tokenizer=tokenizer or "words", lowercase=lowercase, min_count=min_count,
        max_words=max_words, sizes=sizes,
    )  # fmt: skip
    return _task_of(text, "parallel", _own_files(source=source, target=target))


def _aligned(
    source: str | Path, target: str | Path, links: str | Path, *, options: TextOptions, sizes: Sizes
) -> Task:
    """The task of a text with links; errors as of :func:`parallel`."""
    sources, targets = read_parallel(source, target)
    lines = read_lines(links)
    if len(lines) != len(sources):
        raise BadInput(
            f"{links} has {len(lines)} lines, {source} {len(sources)}; a pair without links has an empty line"
        )
    tally = Tally()
    known: list[WordPair] = []
    gold: list[Links] = []
    others: list[WordPair] = []
    for number, (*pair, line) in enumerate(zip(sources, targets, lines, strict=True), 1):
        a, b = ((side.lower() if options.lowercase else side).split() for side in pair)
        links_of_pair = _links(line, len(a), len(b), f"{links}, line {number}")
        if not (a and b):
            tally.add("pool", "pairs", EMPTY)
        elif max(len(a), len(b)) > sizes.longest:
            tally.add("pool", "pairs", f"more than {sizes.longest} words on a side")
        elif links_of_pair:
            known.append((a, b))
            gold.append(links_of_pair)
        else:
            others.append((a, b))
    if not known:
        raise BadInput(f"{links} has no links; a line such as `0-0 1-2` aligns word 1 with word 2 (from 0)")
    train, rest = split_off(others, sizes) if others else ([], [])
    text = described(
        [*train, *known],
        [*known, *rest],
        tokenizer="spaces",
        min_count=options.min_count,
        max_words=options.max_words,
        seed=sizes.seed,
        n_pairs=len(sources),
        lines=list(zip(sources, targets, strict=True)),
        undone_lines={},
        dropped=tally.dropped(),
    )
    return _task_of(text, "aligned", _own_files(source=source, target=target, links=links), tuple(gold))


def _task_of(
    text: OwnText, name: str, checksums: dict[str, str], gold: tuple[Links, ...] | None = None
) -> Task:
    source, target = text.vocabularies
    parts = (
        Corpus.from_ids([source.encode(a) for a, _ in part], [target.encode(b) for _, b in part])
        for part in (text.train, text.held_out)
    )
    return Task(name, source, target, *parts, checksums, gold, text.facts)


def _links(line: str, source: int, target: int, place: str) -> Links:
    """Links of a line as (source position, target position)."""
    links = []
    for text in line.split():
        link = re.fullmatch(r"(\d+)-(\d+)", text, re.ASCII)
        i, j = map(int, link.groups()) if link else (source, target)
        if i >= source or j >= target:
            raise BadInput(
                f"{place}: {text!r} is no link of {source} and {target} words; write source-target positions "
                "from 0, such as 0-2 (words are split at spaces)"
            )
        links.append((i, j))
    return frozenset(links)


TASKS = {
    "aligned": parallel,
    **{
        make.__name__: make
        for make in (parallel, multi30k_en_fr, multi30k_en_de, tatoeba_en_fr, europarl_de_en)
    },
}


# -- lines of text -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParallelText:
    """Sentence pairs to train on and to judge on."""

    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    dropped: tuple[Dropped, ...]  #: what the reader left out, counted by part and reason
    #: how the text becomes pieces, see :func:`notebooks.shared.pieces.train_pieces`
    kind: PieceKind = "unigram"


@dataclass(frozen=True)
class _Set:
    """How a published set is read: a part is two parallel files, or one with a tab between two columns.

    A set of one archive names the file ``within`` it instead.
    """

    dataset: Dataset | None
    train: tuple[tuple[str, ...], ...] = ()  #: parts
    validation: tuple[str, ...] = ()  #: a part; a tenth of the others is drawn where there is none
    #: of IWSLT 2014, whose samples of the training set come in pieces and overlap: of pairs that are equal
    #: once their pieces are words again the first is kept, and none that is in the validation set; HTML
    #: escapes are read
    subwords: bool = False
    #: of Tatoeba, whose pairs are in an archive: name of the file there. English sentences are held out with
    #: all their translations
    within: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(name for part in (*self.train, self.validation) for name in part)


def _multi30k_set(source: str, target: str) -> _Set:
    """Captions of photographs; the published training and validation sets, whole."""
    train, validation = ((f"{part}.{source}", f"{part}.{target}") for part in ("train", "val"))
    return _Set(MULTI30K, (train,), validation)


_SETS = {
    # The text says English to German (A.5). Table 9's median validation lengths, 15 and 14 pieces, are those
    # of German and English in our pieces, and English to German has 14 and 15: so both directions are here.
    "multi30k_en_de": _multi30k_set("en", "de"),
    "multi30k_de_en": _multi30k_set("de", "en"),
    # TED talks: the two samples of the training set that are at hand, and the published validation set.
    "iwslt14_de_en": _Set(
        IWSLT14,
        (("lr_samples/first/train.de", "lr_samples/first/train.en"), ("lr_samples/sample.de+en",)),
        ("valid.de", "valid.en"),
        subwords=True,
    ),
    # Of no table of the paper, but at hand: captions in French, short sentences that learners wrote, debates.
    "multi30k_en_fr": _multi30k_set("en", "fr"),
    **{
        f"tatoeba_en_{language}": _Set(TATOEBA, ((archive,),), within=member)
        for language, (archive, member) in _TATOEBA_FILES.items()
    },
    "europarl_de_en": _Set(EUROPARL, (_EUROPARL_FILES,)),
    **{
        f"news_{pair.replace('-', '_')}": _Set(NEWS_COMMENTARY, ((f"news-commentary-v14.{pair}.tsv",),))
        for pair in ("it-pt", "en-nl", "en-pt")
    },
}
KNOWN_LEXICON = "known_lexicon"
OWN = "parallel_files"
NAMES = (*_SETS, KNOWN_LEXICON, OWN)


def read_translation(name: str, *, source: str = "", target: str = "") -> ParallelText:
    """The sentence pairs of one of :data:`NAMES`; the paths are for ``"parallel_files"`` alone.

    Raises UnknownName where there is no such set; other errors as for :func:`parallel`.
    """
    corpus = _set(name)
    if name == KNOWN_LEXICON:
        return ParallelText(*known_lexicon(), (), kind="word")
    return read_parallel_files(source, target) if name == OWN else _read(corpus)


def _read(corpus: _Set) -> ParallelText:
    tally = Tally()
    if corpus.within:
        lines, held = _tatoeba_lines(*corpus.files, corpus.within, _TATOEBA_HELD_OUT, seed=0)
        train = _without_empty(lines[held:], "train", tally)
        return ParallelText(train, _without_empty(lines[:held], "validation", tally), tally.dropped())
    if not corpus.validation:
        pairs = _pairs(corpus, corpus.train, "pool", str, tally)
        kept = [pair for pair in pairs if not any(map(purely_numerical, pair))]
        tally.add("pool", "pairs", "purely numerical", len(pairs) - len(kept))
        return ParallelText(*split_90_10(kept), tally.dropped())
    pairs = _pairs(corpus, corpus.train, "train", undo_bpe if corpus.subwords else str, tally)
    unescape = html.unescape if corpus.subwords else str
    validation = _pairs(corpus, (corpus.validation,), "validation", unescape, tally)
    if corpus.subwords:
        distinct, known = dict.fromkeys(pairs), set(validation)
        tally.add("train", "pairs", "already there", len(pairs) - len(distinct))
        pairs = tuple(pair for pair in distinct if pair not in known)
        tally.add("train", "pairs", "also in validation", len(distinct) - len(pairs))
    return ParallelText(pairs, validation, tally.dropped())


def _pairs(
    corpus: _Set, files: tuple[tuple[str, ...], ...], part: str, clean: Callable[[str], str], tally: Tally
) -> tuple[Pair, ...]:
    rows: list[tuple[str, ...]] = []
    for names in files:
        if len(names) == 2:
            rows += zip(*_parallel(corpus.dataset, *names), strict=True)
        else:
            rows += (tuple(line.split("\t")) for line in read_lines(locate(corpus.dataset, *names)))
    pairs = [tuple(map(clean, row)) for row in rows if len(row) == 2]
    tally.add(part, "lines", "not two columns", len(rows) - len(pairs))
    return _without_empty(pairs, part, tally)


def _without_empty(pairs: Iterable[Pair], part: str, tally: Tally) -> tuple[Pair, ...]:
    stripped = [(source.strip(), target.strip()) for source, target in pairs]
    kept = tuple(pair for pair in stripped if all(pair))
    tally.add(part, "pairs", "an empty side", len(stripped) - len(kept))
    return kept


def read_parallel_files(source: str | Path, target: str | Path) -> ParallelText:
    """A reader's own text as lines; see :func:`companion.data.own_text.own_lines`."""
    train, held_out, facts = own_lines(source, target)
    return ParallelText(tuple(train), tuple(held_out), facts.dropped)


def own_facts(
    *, source: str | Path, target: str | Path, links: str | Path = "", tokenizer: str | None = None
) -> TextFacts:
    """What the task :func:`parallel` makes of a reader's own text; errors as there."""
    text = parallel(source=source, target=target, links=links, tokenizer=tokenizer or "").text
    assert text is not None  # every such task has it
    return text


def split_90_10(pairs: Sequence[Pair]) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """⌊0.9 n⌋ pairs to train on, as rounded in Table 9, and the others, drawn at random once and for all.

    Both are in the file's order. The paper's own split of News Commentary is not published.
    """
    if len(pairs) < 2:
        raise BadInput(f"{len(pairs)} sentence pairs cannot be split; give at least 2")
    order = np.random.default_rng(0).permutation(len(pairs))
    cut = len(pairs) * 9 // 10
    train, validation = (tuple(pairs[i] for i in sorted(part)) for part in (order[:cut], order[cut:]))
    return train, validation


def undo_bpe(line: str) -> str:
    """A line of subword-nmt pieces, which end in @@ inside a word, as words; HTML escapes are read.

    >>> undo_bpe("in kam@@ bo@@ dia , we &apos;re lei@@ sur@@ ely")
    "in kambodia , we 're leisurely"
    """
    return html.unescape(re.sub("@@(?: |$)", "", line))


def purely_numerical(line: str) -> bool:
    """Whether a line has digits and no letter (section A.5 removes such examples).

    >>> [purely_numerical(line) for line in ("1,200 – 30%", "G20", "…")]
    [True, False, False]
    """
    return any(sign.isdigit() for sign in line) and not any(sign.isalpha() for sign in line)


def translation_checksums(
    name: str, *, source: str | Path = "", target: str | Path = ""
) -> dict[str, str | None]:
    """The published sha256 of each file that :func:`read_translation` reads, None where nobody knows it.

    Nothing is read but the reader's own files, of ``"parallel_files"``.
    """
    if name == OWN:
        return own_checksums(source=source, target=target)
    translation_set = _set(name)
    if translation_set.dataset is None:
        return {}
    return translation_set.dataset.checksums(translation_set.files)


def available(name: str) -> bool:
    """Whether all files of a set are on this machine, unchecked; synthetic sets have none, nor own texts."""
    corpus = _set(name)
    return corpus.dataset is None or corpus.dataset.available(corpus.files)


def _set(name: str) -> _Set:
    check_known("translation set", name, NAMES)
    return _SETS.get(name, _Set(None))


# -- synthetic ----------------------------------------------------------------------------------------------
# Every source word has one translation. Words are drawn by Zipf's law, lengths evenly; some neighbours of the
# target are exchanged, so that attention has something to find:
#
#     source   s3 s0 s7 s1
#     target   t3 t7 t0 t1

N_WORDS = 40
SHORTEST, LONGEST = 3, 9  # words in a sentence
N_TRAIN, N_VALIDATION = 4_000, 200
EXCHANGED = 0.25  # chance that a word and the next change places
_LEXICON_SEED = 0x1E71C0


def known_lexicon() -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Pairs to train on and pairs to judge on, the same on every call."""
    draw = np.random.default_rng(_LEXICON_SEED)
    frequencies = 1 / np.arange(1, N_WORDS + 1)
    pairs = tuple(_drawn_pair(draw, frequencies / frequencies.sum()) for _ in range(N_TRAIN + N_VALIDATION))
    return pairs[:N_TRAIN], pairs[N_TRAIN:]


def _drawn_pair(draw: np.random.Generator, frequencies: np.ndarray) -> Pair:
    length = draw.integers(SHORTEST, LONGEST + 1)
    source = [f"s{word}" for word in draw.choice(N_WORDS, size=length, p=frequencies)]
    target = [word.replace("s", "t") for word in source]
    place = 0
    while place < length - 1:
        if draw.random() < EXCHANGED:
            target[place : place + 2] = reversed(target[place : place + 2])
            place += 1  # a word moves once
        place += 1
    return " ".join(source), " ".join(target)
