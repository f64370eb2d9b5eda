"""Multi30k, English to French or German: captions of photographs (Elliott et al. 2016, arXiv 1605.00459)."""

from attnlib.tasks.parallel import Pair, TextOptions, build, split_off, tokenise_pairs
from attnlib.tasks.task import Task
from companion.data.sources import dataset, locate
from companion.data.text import read_parallel

MULTI30K = dataset("multi30k")

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
    """English to French, words and punctuation as :func:`attnlib.tasks.parallel.tokenise` splits them.

    Held out are the validation set, the three test sets and the end of the training set: typicality compares
    samples of equal source and target length, which takes more of them than the published sets have.

    Args:
        n_train: use this many training pairs from the beginning; all that are not held out when None.
        held_out_from_train: pairs at the end of the training set to hold out beside the published sets.
        min_count: words seen less often in the training pairs are read as ``<unk>``.
        max_words: keep at most this many words on each side, the most frequent ones; all when None.
        max_length: drop pairs with more words than this on either side; None keeps all.
        lowercase: whether to fold case.

    Raises:
        DataUnavailable: the files are not at hand; the message says how to get them.
        CorruptFile: a file has the wrong checksum.
        BadInput: an option that cannot be used.
    """
    options = TextOptions(min_count, max_words, max_length, lowercase)
    return _multi30k("fr", n_train, held_out_from_train, options)


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
    return _multi30k("de", n_train, held_out_from_train, options)


def _multi30k(language: str, n_train: int | None, held_out_from_train: int, options: TextOptions) -> Task:
    checksums: dict[str, str] = {}

    def pairs(part: str) -> list[Pair]:
        names = [f"{part}.en", f"{part}.{language}"]
        lines = read_parallel(*(locate(MULTI30K, name) for name in names))
        checksums.update({f"multi30k/{name}": MULTI30K.file(name).sha256 for name in names})
        return tokenise_pairs(lines, options)

    train, rest = split_off(pairs("train"), n_train, held_out_from_train)
    held_out = [pair for part in _HELD_OUT for pair in pairs(part)]
    return build(f"multi30k_en_{language}", train, held_out + rest, options, checksums)


TASKS = {"multi30k_en_fr": multi30k_en_fr, "multi30k_en_de": multi30k_en_de}
