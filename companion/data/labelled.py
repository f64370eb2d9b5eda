"""Texts with one of two labels: from raw text to a task and its batches (Snell et al. 2021, A.5 and A.8).

There are two readings of raw text. ``"published"`` does what fits the counts of the paper's Table 9 and no
more: an HTML break leaves the word ``br``, and a text that is in both parts stays in both. ``"cleaned"``
mends that: HTML is taken out, a validation text that is trained on is left out, and where there is one pool
of texts its repeats are left out before it is split.

Texts are stored ragged, words alone. :func:`collate_labelled` adds the marks and the padding::

    tokens   <bos>  a  fine  film  <eos>  <pad>
    mask       1    1    1     1     1      0

The marks are positions like any other: the network may attend to them. That the paper's inputs carry two of
them shows in its random baseline for SST, 8.39 and 8.48 % (validation and training, Tables 5 and 7): the mean
of ⌈5 % L⌉ / L is 8.36 and 8.48 % with two marks to a sentence, 9.86 and 10.29 % with none.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnlib.errors import BadInput, check_known
from attnlib.models.corpus import pack
from attnlib.models.vocabulary import BOS, EOS, MARKS, PAD, UNK, Vocabulary
from companion.data.text import Dropped, Tally
from companion.data.words import words_alone

# -- raw text to words ---------------------------------------------------------------------------------------
# The paper says "at the word level" and no more. Runs of word characters fit the median lengths of its Table
# 9: 183 and 207 for 20 NG, 16 and 17 for SST, 181 and (its whole test part) 178 for IMDB, if the `br` of an
# HTML break counts as a word. AG News has 39 and 39 where 40 and 40 are printed, which we cannot explain.

_WORD = re.compile(r"\w+")
_WORD_WITHOUT_UNDERSCORE = re.compile(r"[^\W_]+")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
# AG News lost the ampersands of its entities ("Taliban #39;s", "quot;Fear quot;"), so they are not asked for.
_APOSTROPHE = re.compile(r"\s?&?#0?39;")
_ENTITY = re.compile(r"&?(?:#\d+|\b(?:quot|amp|lt|gt|nbsp));")
_TAG = re.compile(r"&?lt;/?[a-z]+&?gt;|<(?:/?[a-z]+|a href=[^>]*)>", re.IGNORECASE)

Reading = Literal["cleaned", "published"]


@dataclass(frozen=True)
class WordRules:
    """How the texts of one data set become words."""

    html: bool = False  # has breaks, tags or entities to be taken out
    split_underscores: bool = False  # ``_`` parts words (20 NG)
    mask_integers: bool = False  # an integer of two or more digits is read as <unk> (20 NG and AG News)
    below: int | None = None  # keep texts of fewer words than this (Amazon: 400)
    any_script: bool = False  # letters keep their marks, scripts without spaces are split (own)

    def words(self, text: str) -> list[str]:
        """The words of a text in lower case."""
        if self.any_script:
            return words_alone(text)
        return (_WORD_WITHOUT_UNDERSCORE if self.split_underscores else _WORD).findall(text.lower())


def without_html(text: str) -> tuple[str, int]:
    """The text with a blank for every break, tag and entity, and the number of breaks among them.

    An apostrophe written as an entity becomes one, so that ``Taliban #39;s`` reads as ``Taliban's`` does.
    """
    text, breaks = _BREAK.subn(" ", text)
    return _ENTITY.sub(" ", _TAG.sub(" ", _APOSTROPHE.sub("'", text))), breaks


def is_masked_integer(word: str) -> bool:
    """Whether a word is an integer of two or more digits, which A.8 maps to ``<unk>``."""
    return len(word) > 1 and word.isdecimal()


# -- texts and their batches ---------------------------------------------------------------------------------

N_MARKS = 2  # positions that collate_labelled adds to the words of a text
_WINDOW = 32  # batches: texts of about the same length are put together inside windows of this many
# Tells the stream of batches apart from other streams drawn with the same seed.
_STREAM = 0x1ABE


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Texts as flat ids of words; text i, of one word at least, is ``ids[offsets[i]:offsets[i+1]]``."""

    ids: Int[np.ndarray, " words"]
    offsets: Int[np.ndarray, " texts_and_one"]
    labels: Int[np.ndarray, " texts"]

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]], labels: Sequence[int]) -> "LabelledTexts":
        return cls(*pack(texts), np.asarray(labels, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def text(self, i: int) -> Int[np.ndarray, " words"]:
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> Int[np.ndarray, " texts"]:
        """Words in each text, marks not counted."""
        return np.diff(self.offsets)

    def subset(self, indices: Sequence[int] | Int[np.ndarray, " chosen"]) -> "LabelledTexts":
        return LabelledTexts.of([self.text(i) for i in indices], self.labels[np.asarray(indices, np.int64)])


@dataclass(frozen=True, eq=False)
class LabelledTask:
    name: str
    classes: tuple[str, str]  # of label 0 and label 1
    vocabulary: Vocabulary  # of the training texts; other words are read as <unk>
    train: LabelledTexts
    validation: LabelledTexts
    dropped: tuple[Dropped, ...]
    checksums: dict[str, str]  # sha256 of the content of each file read, by "dataset/file"


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """Texts as padded tensors with their marks; the mask is true on words and marks."""

    tokens: Int[Tensor, "batch length"]
    mask: Bool[Tensor, "batch length"]
    labels: Int[Tensor, " batch"]
    indices: Int[Tensor, " batch"]  # of the texts among theirs

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> "LabelledBatch":
        return LabelledBatch(*(getattr(self, field.name).to(device) for field in fields(self)))


def collate_labelled(
    texts: LabelledTexts, indices: Sequence[int] | Int[np.ndarray, " batch"]
) -> LabelledBatch:
    """Put marks around the texts ``indices`` and pad them to one length."""
    indices = np.asarray(indices, dtype=np.int64)
    lengths = texts.lengths[indices] + N_MARKS
    tokens = np.full((len(indices), int(lengths.max())), PAD, dtype=np.int64)
    for row, i in enumerate(indices):
        words = texts.text(i)
        tokens[row, 0], tokens[row, 1 : len(words) + 1], tokens[row, len(words) + 1] = BOS, words, EOS
    mask = np.arange(tokens.shape[1]) < lengths[:, None]
    return LabelledBatch(*(torch.from_numpy(a) for a in (tokens, mask, texts.labels[indices], indices)))


class LabelledBatches:
    """Training batches as a pure function of (texts, batch size, seed, step), so that a training can resume.

    Every epoch visits each text once: shuffled, put in order of length inside windows of 32 batches so that a
    batch has little padding, and the batches shuffled again. The last window may end in a smaller batch.
    """

    def __init__(self, texts: LabelledTexts, batch_size: int, *, seed: int):
        self.texts, self.batch_size, self.seed = texts, batch_size, seed
        # Only remembers: the order of an epoch is the same whenever it is asked for.
        self._epoch = lru_cache(maxsize=1)(self._draw)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return -(-len(self.texts) // self.batch_size)

    def __call__(self, step: int) -> LabelledBatch:
        return collate_labelled(self.texts, self.indices(step))

    def indices(self, step: int) -> Int[np.ndarray, " batch"]:
        epoch, place = divmod(step, len(self))
        return self._epoch(epoch)[place]

    def _draw(self, epoch: int) -> list[Int[np.ndarray, " batch"]]:
        draw = np.random.default_rng([_STREAM, self.seed, epoch])
        order = draw.permutation(len(self.texts))
        window = np.arange(len(order)) // (_WINDOW * self.batch_size)
        order = order[np.lexsort((self.texts.lengths[order], window))]
        batches = np.split(order, range(self.batch_size, len(order), self.batch_size))
        return [batches[i] for i in draw.permutation(len(batches))]


def judging_batches(texts: LabelledTexts, *, positions: int) -> Iterator[LabelledBatch]:
    """Every text once, in order of length, as many at a time as fit into ``positions`` with their padding.

    A text longer than that comes alone.
    """
    order = np.argsort(texts.lengths, kind="stable")
    first = 0
    while first < len(order):
        lengths = texts.lengths[order[first:]] + N_MARKS  # ascending, so the last of a batch is its longest
        fits = int(np.searchsorted(lengths * np.arange(1, len(lengths) + 1), positions, side="right"))
        last = first + max(1, fits)
        yield collate_labelled(texts, order[first:last])
        first = last


# -- raw texts to a task -------------------------------------------------------------------------------------

MIN_COUNT = 3  # "all words occurring less than 3 times in the training set" become <unk> (A.8)
# "at most 4000 examples" of a test set (A.8), and what Table 9 holds out where there is none
VALIDATION = 4_000
_SPLIT = 0x5117  # tells the shuffles here apart from other streams of the same seed
_MASKED = 0  # the entry of every masked integer

RawText = tuple[str, int]
Words = Int[np.ndarray, " words"]


@dataclass(frozen=True)
class RawTexts:
    """What a loader hands over; fields as of :class:`LabelledTask`, where nothing else is said."""

    name: str
    classes: tuple[str, str]
    train: Sequence[RawText]  # the whole pool where ``test`` is None
    test: Sequence[RawText] | None
    rules: WordRules
    dropped: tuple[Dropped, ...] = ()
    checksums: dict[str, str] = field(default_factory=dict)
    n_train: int | None = None  # by default; all that are not held out when None
    n_validation: int | None = VALIDATION  # by default, at most; a tenth of the pool when None


def prepare(
    raw: RawTexts,
    *,
    reading: Reading = "cleaned",
    n_train: int | None = None,
    n_validation: int | None = None,
    split_seed: int = 0,
) -> LabelledTask:
    """Make the task (Snell et al. 2021, sections A.5 and A.8); for ``reading`` see the module.

    Words seen fewer than three times in the training texts are read as ``<unk>``. The paper also keeps rarer
    words that GloVe knows; GloVe is not available here, so its vocabulary sizes cannot come out.

    Args:
        n_train, n_validation: train on this many texts and judge on that many at most, drawn with
            ``split_seed``, which no training's seed touches; the loader's defaults when None.

    Raises:
        UnknownName: there is no such reading.
        BadInput: fewer texts than asked for, or a part is left without one of the labels.
    """
    check_known("reading", reading, get_args(Reading))
    n_train, n_validation = n_train or raw.n_train, n_validation or raw.n_validation
    reader = _Reader(raw.rules, cleaned=reading == "cleaned")
    if raw.test is None:
        pool = _shuffled(raw.train, split_seed, 0)
        n_validation = n_validation or max(1, len(pool) // 10)
        both = reader.read(pool, "pool", n_train and n_train + n_validation, distinct=reader.cleaned)
        # Where there are not enough for both, it is the texts to judge on that are fewer.
        cut = max(0, min(n_validation, len(both) - (n_train or 1)))
        parts = {"train": both[cut:], "validation": both[:cut]}
    else:
        train = reader.read(_shuffled(raw.train, split_seed, 1) if n_train else raw.train, "train", n_train)
        known = {words.tobytes() for words, _ in train if reader.cleaned}
        pool = _shuffled(raw.test, split_seed, 2)
        parts = {"train": train, "validation": reader.read(pool, "validation", n_validation, known)}
    if n_train and len(parts["train"]) < n_train:
        raise BadInput(
            f"{raw.name} has {len(parts['train'])} texts to train on, not {n_train}; ask for fewer"
        )
    for part, texts in parts.items():
        if {label for _, label in texts} != {0, 1}:
            raise BadInput(
                f"{raw.name}: the {len(texts)} {part} texts must have both labels, {raw.classes[0]!r} and "
                f"{raw.classes[1]!r}; take more texts"
            )
    vocabulary, id_of_entry = _vocabulary(reader.entries, [words for words, _ in parts["train"]])
    corpora = []
    for part, texts in parts.items():
        corpora.append(
            LabelledTexts.of([id_of_entry[words] for words, _ in texts], [label for _, label in texts])
        )
        masked = sum(int((words == _MASKED).sum()) for words, _ in texts)
        unknown = int((corpora[-1].ids == UNK).sum()) - masked
        reader.tally.add(part, "words", "integers of two or more digits, read as <unk>", masked)
        reader.tally.add(
            part, "words", f"seen fewer than {MIN_COUNT} times in training, read as <unk>", unknown
        )
    dropped = tuple(sorted((*raw.dropped, *reader.tally.dropped())))
    return LabelledTask(raw.name, raw.classes, vocabulary, *corpora, dropped, raw.checksums)


class _Reader:
    """Turns texts into arrays of entries; each different word is one entry, in the order first seen."""

    def __init__(self, rules: WordRules, *, cleaned: bool):
        self.rules, self.cleaned, self.tally = rules, cleaned, Tally()
        self.entries: dict[str, int] = {MARKS[UNK]: _MASKED}

    def read(
        self,
        texts: Iterable[RawText],
        part: str,
        limit: int | None,
        known: Collection[bytes] = (),
        *,
        distinct: bool = False,
    ) -> list[tuple[Words, int]]:
        """The first texts up to a limit, without those that are known or, if ``distinct``, repeats."""
        seen, kept = set(known), []
        for text, label in texts:
            if len(kept) == limit:
                break
            words = self._words(text, part)
            if not len(words):
                self.tally.add(part, "texts", "no word in it")
            elif self.rules.below is not None and len(words) >= self.rules.below:
                self.tally.add(part, "texts", f"{self.rules.below} words or more")
            elif words.tobytes() in seen:
                self.tally.add(part, "texts", "a repeat of another one" if distinct else "trained on as well")
            else:
                kept.append((words, label))
                if distinct:
                    seen.add(words.tobytes())
        return kept

    def _words(self, text: str, part: str) -> Words:
        if self.cleaned and self.rules.html:
            text, breaks = without_html(text)
            self.tally.add(part, "HTML breaks", "read as blanks", breaks)
        words = self.rules.words(text)
        if self.rules.mask_integers:
            words = [MARKS[UNK] if is_masked_integer(word) else word for word in words]
        return np.array([self.entries.setdefault(word, len(self.entries)) for word in words], dtype=np.int32)


def _shuffled(texts: Sequence[RawText], seed: int, which: int) -> list[RawText]:
    return [texts[i] for i in np.random.default_rng([_SPLIT, seed, which]).permutation(len(texts))]


def _vocabulary(entries: dict[str, int], texts: list[Words]) -> tuple[Vocabulary, Words]:
    """The words of at least three occurrences, most frequent first; and the id of every entry."""
    counts = np.bincount(np.concatenate(texts), minlength=len(entries))
    counts[_MASKED] = 0
    words = list(entries)
    kept = sorted(np.flatnonzero(counts >= MIN_COUNT), key=lambda entry: (-counts[entry], words[entry]))
    ids = np.full(len(entries), UNK, dtype=np.int64)
    ids[kept] = np.arange(len(MARKS), len(MARKS) + len(kept))
    return Vocabulary.of((words[entry] for entry in kept), open=True), ids
