"""From labelled raw texts to a task: words, repeats, sizes, split, vocabulary, and what is left out.

Two readings. ``"published"`` does what fits the counts of the paper's Table 9 and no more: an HTML break
leaves the word ``br``, and a text that is in both parts stays in both. ``"cleaned"`` mends that: HTML is
taken out, a validation text that is trained on is left out, and where there is one pool of texts its repeats
are left out before it is split.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
from jaxtyping import Int

from attnlib.errors import BadInput, UnknownName
from attnlib.tasks.vocabulary import MARKS, UNK, Vocabulary
from attnlib.texts.dropped import Dropped, Tally
from attnlib.texts.labelled import LabelledTask, LabelledTexts
from attnlib.texts.words import Reading, WordRules, is_masked_integer, without_html

MIN_COUNT = 3  # "all words occurring less than 3 times in the training set" become <unk> (A.8)
VALIDATION = (
    4_000  # "at most 4000 examples" of a test set (A.8), and what Table 9 holds out where there is none
)
_SPLIT = 0x5117  # tells the shuffles here apart from other streams of the same seed

RawText = tuple[str, int]
Words = Int[np.ndarray, " words"]


@dataclass(frozen=True)
class RawTexts:
    """What a loader hands over.

    Attributes:
        name: of the data set.
        classes: what label 0 and label 1 stand for.
        train: texts with their labels; the whole pool where ``test`` is None.
        test: the data set's own test part; None where it has none.
        rules: how a text becomes words.
        dropped: what the loader itself left out.
        checksums: see :class:`~attnlib.texts.labelled.LabelledTask`.
        n_train: texts to train on by default; all that are not held out when None.
        n_validation: texts to judge on by default, at most; a tenth of the pool when None.
    """

    name: str
    classes: tuple[str, str]
    train: Sequence[RawText]
    test: Sequence[RawText] | None
    rules: WordRules
    dropped: tuple[Dropped, ...] = ()
    checksums: dict[str, str] = field(default_factory=dict)
    n_train: int | None = None
    n_validation: int | None = VALIDATION


def prepare(
    raw: RawTexts,
    *,
    reading: Reading = "cleaned",
    n_train: int | None = None,
    n_validation: int | None = None,
    split_seed: int = 0,
) -> LabelledTask:
    """Make the task (Snell et al. 2021, sections A.5 and A.8).

    Words seen fewer than three times in the training texts are read as ``<unk>``. The paper also keeps rarer
    words that GloVe knows; GloVe is not at hand, so its vocabulary sizes cannot come out.

    Args:
        reading: see the module.
        n_train: train on this many texts, drawn with ``split_seed``; the loader's default when None.
        n_validation: judge on this many at most; the loader's default when None.
        split_seed: of every draw of texts; has nothing to do with the seed of a training.

    Raises:
        UnknownName: there is no such reading.
        BadInput: fewer texts than asked for, or a part is left without one of the labels.
    """
    if reading not in get_args(Reading):
        raise UnknownName("reading", reading, get_args(Reading))
    n_train = raw.n_train if n_train is None else n_train
    n_validation = raw.n_validation if n_validation is None else n_validation
    if (n_train is not None and n_train < 1) or (n_validation is not None and n_validation < 1):
        raise BadInput(f"n_train is {n_train} and n_validation {n_validation}; expected at least 1 of each")
    reader = _Reader(raw.rules, cleaned=reading == "cleaned")
    if raw.test is None:
        pool = _shuffled(raw.train, split_seed, 0)
        if n_validation is None:
            n_validation = max(1, len(pool) // 10)
        both = list(reader.read(pool, "pool", distinct=reader.cleaned, limit=_total(n_train, n_validation)))
        # Where there are not enough for both, it is the texts to judge on that are fewer.
        cut = max(0, min(n_validation, len(both) - (n_train or 1)))
        validation, train = both[:cut], both[cut:]
    else:
        pool = raw.train if n_train is None else _shuffled(raw.train, split_seed, 1)
        train = list(reader.read(pool, "train", distinct=False, limit=n_train))
        pool = _shuffled(raw.test, split_seed, 2)
        validation = list(
            reader.read(pool, "validation", distinct=False, limit=n_validation, trained_on=train)
        )
    if n_train is not None and len(train) < n_train:
        raise BadInput(f"{raw.name} has {len(train)} texts to train on, not {n_train}; ask for fewer")
    for part, texts in (("train", train), ("validation", validation)):
        if {label for _, label in texts} != {0, 1}:
            raise BadInput(
                f"{raw.name}: the {len(texts)} {part} texts must have both labels, {raw.classes[0]!r} and "
                f"{raw.classes[1]!r}; take more texts"
            )
    vocabulary, id_of_entry = _vocabulary(reader.entries, [words for words, _ in train])
    parts = []
    for part, texts in (("train", train), ("validation", validation)):
        ids = [id_of_entry[words] for words, _ in texts]
        parts.append(LabelledTexts.of(ids, [label for _, label in texts]))
        unknown = int((parts[-1].ids == UNK).sum())
        masked = sum(int((words == _MASKED).sum()) for words, _ in texts)
        reader.tally.add(part, "words", "integers of two or more digits, read as <unk>", masked)
        reader.tally.add(
            part, "words", f"seen fewer than {MIN_COUNT} times in training, read as <unk>", unknown - masked
        )
    dropped = tuple(sorted((*raw.dropped, *reader.tally.dropped())))
    return LabelledTask(raw.name, raw.classes, vocabulary, *parts, dropped, raw.checksums)


_MASKED = 0  # the entry of every masked integer


class _Reader:
    """Turns texts into arrays of entries; each different word is one entry, in the order first seen."""

    def __init__(self, rules: WordRules, *, cleaned: bool):
        self.rules, self.cleaned, self.tally = rules, cleaned, Tally()
        self.entries: dict[str, int] = {MARKS[UNK]: _MASKED}

    def read(
        self,
        texts: Iterable[RawText],
        part: str,
        *,
        distinct: bool,
        limit: int | None,
        trained_on: Sequence[tuple[Words, int]] = (),
    ) -> Iterator[tuple[Words, int]]:
        """Words and label of the texts that are kept, at most ``limit`` of them."""
        seen = {words.tobytes() for words, _ in trained_on} if self.cleaned else set()
        repeated = "a repeat of another one" if distinct else "trained on as well"
        kept = 0
        for text, label in texts:
            if kept == limit:
                return
            words = self._words(text, part)
            if not len(words):
                self.tally.add(part, "texts", "no word in it")
            elif self.rules.below is not None and len(words) >= self.rules.below:
                self.tally.add(part, "texts", f"{self.rules.below} words or more")
            elif words.tobytes() in seen:
                self.tally.add(part, "texts", repeated)
            else:
                if distinct:
                    seen.add(words.tobytes())
                kept += 1
                yield words, label

    def _words(self, text: str, part: str) -> Words:
        if self.cleaned and self.rules.html:
            text, breaks = without_html(text)
            self.tally.add(part, "HTML breaks", "read as blanks", breaks)
        entries = self.entries
        words = self.rules.words(text)
        if self.rules.mask_integers:
            words = [MARKS[UNK] if is_masked_integer(word) else word for word in words]
        return np.array([entries.setdefault(word, len(entries)) for word in words], dtype=np.int32)


def _shuffled(texts: Sequence[RawText], seed: int, which: int) -> list[RawText]:
    return [texts[i] for i in np.random.default_rng([_SPLIT, seed, which]).permutation(len(texts))]


def _total(n_train: int | None, n_validation: int) -> int | None:
    return None if n_train is None else n_train + n_validation


def _vocabulary(entries: dict[str, int], texts: list[Words]) -> tuple[Vocabulary, Words]:
    """The words of at least three occurrences, most frequent first; and the id of every entry."""
    counts = np.bincount(np.concatenate(texts), minlength=len(entries))
    counts[_MASKED] = 0
    words = list(entries)
    kept = sorted(np.flatnonzero(counts >= MIN_COUNT), key=lambda entry: (-counts[entry], words[entry]))
    ids = np.full(len(entries), UNK, dtype=np.int64)
    ids[kept] = np.arange(len(MARKS), len(MARKS) + len(kept))
    return Vocabulary.of((words[entry] for entry in kept), open=True), ids
