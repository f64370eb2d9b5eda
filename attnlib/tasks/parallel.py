"""Translation tasks from two files of which line i of one translates line i of the other."""

import hashlib
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlib.errors import BadInput
from attnlib.tasks.corpus import Corpus
from attnlib.tasks.task import Task
from attnlib.tasks.vocabulary import Vocabulary
from companion.data.text import read_parallel

Pair = tuple[list[str], list[str]]

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


def tokenise_pairs(lines: tuple[Sequence[str], Sequence[str]], options: TextOptions) -> list[Pair]:
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


def split_off(pairs: list[Pair], n_train: int | None, n_held_out: int) -> tuple[list[Pair], list[Pair]]:
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
    name: str, train: list[Pair], held_out: list[Pair], options: TextOptions, checksums: dict[str, str]
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


TASKS = {"parallel": parallel}
