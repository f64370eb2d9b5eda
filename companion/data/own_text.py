"""A reader's own parallel text: read, cleaned, split into words and parts, and described in sentences.

Whatever is done to the text is said (:attr:`TextFacts.sentences`): what was left out and undone, how it was
split into words and parts, how large the vocabularies are and how many words are unknown. A text that
networks could learn nothing from is refused before any of them is trained.
"""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from attnlib.errors import BadInput, check_known
from attnlib.models.vocabulary import MARKS, Vocabulary
from attnlib.text_traces import undone
from companion.data.text import Dropped, Tally, read_parallel
from companion.data.words import NAMES, Tokenizer, learned_pieces, share_unspaced, tokenizer_of

SIDES = ("source", "target")
LONGEST = 100  # words on a side; attention takes memory by the product of both
MOST_UNKNOWN = 0.1  # of the words; above it a figure would be about the mark of an unknown word
_FEWEST_KEPT = 0.5  # of the pairs, where long ones are left out
_FEWEST_JUDGED = 100  # words of which a share is judged by itself
_FEWEST_MISREAD, _MOST_MISREAD = 5, 0.9  # lines, and their share of those beyond ASCII
_UNSPACED = 0.3  # share of the letters from which on a side is said to have no spaces
EMPTY = "an empty side"
_SPLIT = 0x0FEE  # tells the order of the pairs apart from other streams of the same seed
# What reading UTF-8 as Latin-1 or Windows-1252 makes of letters beyond ASCII, such as Ã¼ for ü.
_MISREAD = re.compile(
    "[\u00c2-\u00f4][\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u2122]"
)

Words = list[str]
WordPair = tuple[Words, Words]
Pair = tuple[str, str]  # source, target


@dataclass(frozen=True, kw_only=True)
class TextFacts:
    """What was made of a reader's own text, for the reader to judge."""

    tokenizer: str
    n_pairs: int  #: pairs of lines in the files
    n_train: int
    n_held_out: int
    seed: int  #: that pairs were shuffled with
    min_count: int  #: words seen less often in training are unknown
    vocabulary: dict[str, int]  #: side → different words, the four marks left out
    unknown: dict[tuple[str, str], float]  #: side and part → share of its words that are unknown
    undone: dict[str, dict[str, int]]  #: side → what was taken back → in how many lines
    unspaced: dict[str, float]  #: side → share of its letters that are of scripts without spaces
    dropped: tuple[Dropped, ...]  #: what was left out

    @property
    def sentences(self) -> list[str]:
        """The facts, for a terminal or a page."""
        sentences = [self._parts(), self._words(), self._left_out()]
        for side, traces in self.undone.items():
            sentences += [f"Undone in {n:,} {side} lines: {what}." for what, n in traces.items()]
        if self.tokenizer in ("words", "unicode"):
            for side, share in self.unspaced.items():
                if share >= _UNSPACED:
                    sentences.append(
                        f"The {side} is written without spaces ({share:.0%} of its letters), so that its "
                        "characters are taken for words; tokenizer=sentencepiece learns larger pieces."
                    )
        return sentences

    def _parts(self) -> str:
        return (
            f"Your text has {self.n_pairs:,} pairs of lines: {self.n_train:,} to train on and "
            f"{self.n_held_out:,} held out. They were shuffled with seed {self.seed} before the split, and "
            "pairs with equal sources are on one side of it."
        )

    def _words(self) -> str:
        sides = []
        for side in SIDES:
            shares = [
                f"{self.unknown[side, part]:.1%} of those {part}" for part in ("trained on", "held out")
            ]
            sides.append(f"{self.vocabulary[side]:,} {side} words ({' and '.join(shares)} are unknown)")
        seldom = f"occurs fewer than {self.min_count} times" if self.min_count > 1 else "does not occur"
        return (
            f"Vocabulary, by tokenizer={self.tokenizer}: {', '.join(sides)}. A word is unknown if it "
            f"{seldom} in training."
        )

    def _left_out(self) -> str:
        listed = [f"{dropped.count:,} {dropped.what} ({dropped.why})" for dropped in self.dropped]
        return f"Left out: {', '.join(listed)}." if listed else "No pair is left out, whatever its length."


@dataclass(frozen=True, kw_only=True)
class LineFacts:
    """The same of a text that is learned in pieces of its lines, which a figure makes itself."""

    n_train: int
    n_held_out: int
    seed: int
    characters: dict[str, int]  #: side → different characters in training
    unknown: dict[str, float]  #: side → share of the held-out characters that training does not have
    dropped: tuple[Dropped, ...]  #: what was left out, and what was undone

    @property
    def sentences(self) -> list[str]:
        """The facts, for a terminal or a page."""
        sides = [
            f"{self.characters[side]:,} different {side} characters ({self.unknown[side]:.1%} of those "
            "held out are not among them)"
            for side in SIDES
        ]
        changes = [f"{dropped.count:,} {dropped.what} ({dropped.why})" for dropped in self.dropped]
        return [
            f"Your text has {self.n_train:,} pairs of lines to train on and {self.n_held_out:,} held out. "
            f"They were shuffled with seed {self.seed} before the split, and pairs with equal sources are on "
            "one side of it.",
            f"Pieces are learned of the training lines, which have {' and '.join(sides)}.",
            f"Left out or undone: {', '.join(changes) or 'nothing'}.",
        ]


@dataclass(frozen=True, kw_only=True)
class OwnText:
    """A reader's text as words, with what was made of it."""

    train: list[WordPair]
    held_out: list[WordPair]
    vocabularies: tuple[Vocabulary, Vocabulary]
    facts: TextFacts


def clean_pairs(
    source: str | Path, target: str | Path, tally: Tally, *, undo: bool = True
) -> tuple[list[Pair], dict[str, dict[str, int]]]:
    """Read two files, take back what tools did to them, and leave out pairs with an empty side.

    Returns:
        The pairs, and what was undone, by side, with the number of lines.

    Raises:
        BadInput: the files do not match, are in another encoding, or one has two columns and none is named.
        DataUnavailable, CorruptFile: a file cannot be read.
    """
    sides = read_parallel(source, target)
    for side, path, lines in zip(SIDES, (source, target), sides, strict=True):
        _check_misread(lines, side, path)
    traces: dict[str, dict[str, int]] = {side: {} for side in SIDES}
    if undo:
        cleaned = [undone(lines) for lines in sides]
        sides = cleaned[0][0], cleaned[1][0]
        traces = dict(zip(SIDES, (counts for _, counts in cleaned), strict=True))
    stripped = [(a.strip(), b.strip()) for a, b in zip(*sides, strict=True)]
    pairs = [pair for pair in stripped if all(pair)]
    tally.add("pool", "pairs", EMPTY, len(stripped) - len(pairs))
    return pairs, traces


def _check_misread(lines: Sequence[str], side: str, path: str | Path) -> None:
    """Refuse text that was converted from a wrong encoding, or lost its letters to U+FFFD."""
    beyond = [line for line in lines if not line.isascii()]
    replaced = sum("\ufffd" in line for line in beyond)
    if replaced > MOST_UNKNOWN * len(lines):
        raise BadInput(
            f"{side} {path}: {replaced:,} of {len(lines):,} lines have U+FFFD, which stands for letters that "
            "were lost in a conversion; take the file as it first was"
        )
    misread = sum(map(_is_misread, beyond))
    if misread >= _FEWEST_MISREAD and misread > _MOST_MISREAD * len(beyond):
        example = next(line for line in beyond if _is_misread(line))
        raise BadInput(
            f"{side} {path} was converted as if it were in Latin-1 or Windows-1252, which it was not: a line "
            f"has {example[:40]!r}. Take the file as it first was"
        )


def _is_misread(line: str) -> bool:
    if not _MISREAD.search(line):
        return False
    for encoding in ("cp1252", "latin-1"):
        try:
            line.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        return True
    return False


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How a text is split; see :func:`companion.data.parallel.parallel`."""

    n_train: int | None = None
    n_held_out: int | None = None
    max_length: int | None = LONGEST
    seed: int = 0

    @property
    def longest(self) -> float:
        """The most words of a side."""
        return math.inf if self.max_length is None else self.max_length


def own_lines(source: str | Path, target: str | Path) -> tuple[list[Pair], list[Pair], LineFacts]:
    """Read a reader's own text as lines, and hold a tenth out.

    Returns:
        Pairs to train on, pairs held out, and what was made of the text.

    Raises:
        BadInput: as :func:`clean_pairs`; there are fewer than two pairs, or more than a tenth of the held-out
            characters do not occur in training.
        DataUnavailable, CorruptFile: a file cannot be read.
    """
    tally = Tally()
    pairs, traces = clean_pairs(source, target, tally)
    if len(pairs) < 2:
        raise BadInput(f"{len(pairs)} sentence pairs cannot be split; give at least 2")
    sizes = Sizes()
    train, held_out = split_off(pairs, sizes)
    for side, counts in traces.items():
        for what, count in counts.items():
            tally.add("pool", f"{side} lines", what, count)
    characters: dict[str, int] = {}
    unknown: dict[str, float] = {}
    for place, side in enumerate(SIDES):
        known = set("".join(pair[place] for pair in train))
        n_unknown, n_all = _count(known, (pair[place] for pair in held_out))
        if n_all >= _FEWEST_JUDGED and n_unknown > MOST_UNKNOWN * n_all:
            raise BadInput(
                f"{n_unknown / n_all:.0%} of the held-out {side} characters do not occur in the training "
                "lines; give more text"
            )
        characters[side] = len(known)
        unknown[side] = n_unknown / max(1, n_all)
    facts = LineFacts(
        n_train=len(train),
        n_held_out=len(held_out),
        seed=sizes.seed,
        characters=characters,
        unknown=unknown,
        dropped=tally.dropped(),
    )
    return train, held_out, facts


def own_text(
    source: str | Path,
    target: str | Path,
    *,
    tokenizer: str = "words",
    lowercase: bool = True,
    min_count: int = 2,
    max_words: int | None = None,
    sizes: Sizes,
) -> OwnText:
    """Read a reader's own text; options as of :func:`companion.data.parallel.parallel`.

    Raises:
        UnknownName: there is no such tokenizer.
        BadInput: the files do not match, or nothing can be learned from them: too few pairs, too many unknown
            words or too long lines.
        DataUnavailable, CorruptFile: a file cannot be read.
    """
    check_known("tokenizer", tokenizer, NAMES)
    tally = Tally()
    lines, traces = clean_pairs(source, target, tally, undo=tokenizer != "spaces")
    n_pairs = len(lines) + tally.total  # nothing but pairs with an empty side has been left out
    if tokenizer == "sentencepiece":
        train, held_out = _as_pieces(lines, sizes, tally, lowercase=lowercase)
        min_count = 1  # SentencePiece has chosen what is worth a piece
    else:
        words = _as_words(lines, tokenizer_of(tokenizer, lowercase=lowercase), sizes.longest, tally)
        train, held_out = split_off(words, sizes)
    return described(
        train, held_out, tokenizer=tokenizer, min_count=min_count, max_words=max_words, seed=sizes.seed,
        n_pairs=n_pairs, lines=lines, undone_lines=traces, dropped=tally.dropped(),
    )  # fmt: skip


def _as_words(lines: Iterable[Pair], split: Tokenizer, longest: float, tally: Tally) -> list[WordPair]:
    """Split each pair, and leave out those with an empty or too long side."""
    pairs = [(split(source), split(target)) for source, target in lines]
    filled = [pair for pair in pairs if all(pair)]
    tally.add("pool", "pairs", "no word on a side", len(pairs) - len(filled))
    return _short(filled, longest, tally)


def _short(pairs: list[WordPair], longest: float, tally: Tally) -> list[WordPair]:
    """Leave out pairs with more words on a side than ``longest``.

    Raises:
        BadInput: more than half of them have.
    """
    kept = [pair for pair in pairs if max(map(len, pair)) <= longest]
    if len(kept) < _FEWEST_KEPT * len(pairs):
        raise BadInput(
            f"{len(pairs) - len(kept):,} of {len(pairs):,} pairs have more than {longest} words on a side; "
            "give one sentence a line, or another tokenizer"
        )
    tally.add("pool", "pairs", f"more than {longest} words on a side", len(pairs) - len(kept))
    return kept


def _as_pieces(
    lines: list[Pair], sizes: Sizes, tally: Tally, *, lowercase: bool
) -> tuple[list[WordPair], list[WordPair]]:
    """Split off what is held out, learn pieces of the rest, and split both into them."""
    train, held_out = split_off(lines, sizes)
    of_source = learned_pieces((source for source, _ in train), lowercase=lowercase)
    of_target = learned_pieces((target for _, target in train), lowercase=lowercase)
    parts = []
    for part in (train, held_out):
        pieces = [(of_source(source), of_target(target)) for source, target in part]
        parts.append(_short([pair for pair in pieces if all(pair)], sizes.longest, tally))
    if not all(parts):
        raise BadInput(
            f"no pair of a part has at most {sizes.max_length} pieces on a side; give one sentence a line"
        )
    return parts[0], parts[1]


AnyPair = TypeVar("AnyPair", Pair, WordPair)


def split_off(pairs: Sequence[AnyPair], sizes: Sizes) -> tuple[list[AnyPair], list[AnyPair]]:
    """Shuffle pairs and hold some out, none of whose sources is trained on.

    Files may be sorted, by length for example, so that their ends are no samples of them.

    Raises:
        BadInput: there are too few pairs.
    """
    n_held_out = len(pairs) // 10 if sizes.n_held_out is None else sizes.n_held_out
    by_source: dict[str, list[AnyPair]] = {}
    for pair in pairs:
        by_source.setdefault(_key(pair[0]), []).append(pair)
    groups = list(by_source.values())
    if sizes.n_held_out is None and len(groups) > 1:  # of a few sentences over and over, one is held out
        n_held_out = max(n_held_out, min(map(len, groups)))
    held_out: list[AnyPair] = []
    train: list[AnyPair] = []
    for place in np.random.default_rng([_SPLIT, sizes.seed]).permutation(len(groups)):
        group = groups[place]
        # A group that is larger than what is still to be held out is trained on.
        part = held_out if len(held_out) + len(group) <= n_held_out else train
        part += group
    wanted = sizes.n_train or 1
    n_fewest = n_held_out if sizes.n_held_out is not None else 1
    if len(train) < wanted or len(held_out) < n_fewest:
        repeats = "" if len(groups) == len(pairs) else f" with {len(groups):,} different sources"
        raise BadInput(
            f"cannot take {sizes.n_train or 'any'} pairs to train on and {n_held_out} to hold out from "
            f"{len(pairs)} pairs{repeats}; ask for fewer or give more"
        )
    order = np.random.default_rng([_SPLIT, sizes.seed, 1]).permutation(len(train))
    train = [train[place] for place in order]  # repeats of a source do not stay next to each other
    return train[: sizes.n_train], held_out


def _key(side: str | Words) -> str:
    return (side if isinstance(side, str) else " ".join(side)).casefold()


def described(
    train: list[WordPair],
    held_out: list[WordPair],
    *,
    tokenizer: str,
    min_count: int,
    max_words: int | None,
    seed: int,
    n_pairs: int,
    lines: Sequence[Pair],
    undone_lines: dict[str, dict[str, int]],
    dropped: tuple[Dropped, ...],
) -> OwnText:
    """Make vocabularies of the training pairs, and count what they lack.

    Raises:
        BadInput: more than a tenth of the words of a side are unknown.
    """
    if not held_out:
        raise BadInput("the text holds no pair out; ask for at least one")
    sides = [[pair[side] for pair in train] for side in range(len(SIDES))]
    made = [
        Vocabulary.from_sentences(side, min_count=min_count, max_words=max_words, open=True) for side in sides
    ]
    unknown: dict[tuple[str, str], float] = {}
    for place, (side, vocabulary) in enumerate(zip(SIDES, made, strict=True)):
        known = set(vocabulary.words[len(MARKS) :])
        parts = {"trained on": train, "held out": held_out}
        counts = {part: _count(known, (pair[place] for pair in pairs)) for part, pairs in parts.items()}
        for part, (n_unknown, n_words) in counts.items():
            unknown[side, part] = n_unknown / n_words if n_words else 0.0
        _check_unknown(side, counts, tokenizer, min_count)
    facts = TextFacts(
        tokenizer=tokenizer,
        n_pairs=n_pairs,
        n_train=len(train),
        n_held_out=len(held_out),
        seed=seed,
        min_count=min_count,
        vocabulary={side: len(vocabulary) - len(MARKS) for side, vocabulary in zip(SIDES, made, strict=True)},
        unknown=unknown,
        undone=undone_lines,
        unspaced={side: share_unspaced(pair[place] for pair in lines) for place, side in enumerate(SIDES)},
        dropped=dropped,
    )
    return OwnText(train=train, held_out=held_out, vocabularies=(made[0], made[1]), facts=facts)


def _count(known: Collection[str], sentences: Iterable[Sequence[str]]) -> tuple[int, int]:
    """Return how many words are unknown, and how many there are."""
    n_unknown = n_words = 0
    for words in sentences:
        n_words += len(words)
        n_unknown += sum(word not in known for word in words)
    return n_unknown, n_words


def _check_unknown(side: str, counts: dict[str, tuple[int, int]], tokenizer: str, min_count: int) -> None:
    judged = {part: count for part, count in counts.items() if count[1] >= _FEWEST_JUDGED}
    judged["all"] = tuple(map(sum, zip(*counts.values(), strict=True)))
    for part, (n_unknown, n_words) in judged.items():
        if n_unknown > MOST_UNKNOWN * n_words:
            which = "words" if part == "all" else f"words {part}"
            raise BadInput(
                f"{n_unknown / n_words:.0%} of the {side} {which} are unknown: they occur fewer "
                f"than {min_count} times in training, by tokenizer={tokenizer}. At most a tenth may be, "
                "since figures would be about the mark of unknown words. Give more text or, without links, "
                "smaller units by tokenizer=sentencepiece or tokenizer=characters"
            )
