"""Tatoeba, English to French: short everyday sentences, from the pairs that manythings.org packs."""

import zipfile
from collections.abc import Iterator

import numpy as np

from attnlib.errors import BadInput, CorruptFile
from attnlib.tasks.parallel import TextOptions, build, tokenise_pairs
from attnlib.tasks.task import Task
from companion.data.sources import dataset, locate

TATOEBA = dataset("tatoeba")

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
    """English to French, words and punctuation as :func:`attnlib.tasks.parallel.tokenise` splits them.

    Many English sentences have several translations, and the file lists sentences by length. So English
    sentences are shuffled, and all translations of one, whatever its case, fall into the same part.

    Args:
        n_train: training pairs; all that are not held out when None.
        n_held_out: held-out pairs, at least; the last sentence's translations may exceed it.
        min_count: words seen less often in the training pairs are read as ``<unk>``.
        max_words: keep at most this many words on each side, the most frequent ones; all when None.
        max_length: drop pairs with more words than this on either side; None keeps all.
        lowercase: whether to fold case.
        seed: of the shuffle.

    Raises:
        DataUnavailable, CorruptFile: the file is not at hand, or is not what it should be.
        BadInput: an option that cannot be used.
    """
    options = TextOptions(min_count, max_words, max_length, lowercase)
    by_source: dict[str, list[tuple[str, str]]] = {}
    for source, target in _lines():
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


def _lines() -> Iterator[tuple[str, str]]:
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


TASKS = {"tatoeba_en_fr": tatoeba_en_fr}
