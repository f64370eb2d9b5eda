"""Europarl, German to English, with sentences whose words were aligned by hand."""

import zipfile

from attnlib.errors import CorruptFile
from attnlib.tasks.parallel import Pair, TextOptions, build, split_off, tokenise_pairs
from attnlib.tasks.task import Links, Task
from companion.data.sources import dataset, locate
from companion.data.text import read_parallel

EUROPARL = dataset("europarl")
GOLD_ALIGNMENTS = dataset("gold_alignments")

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
    which is what their links count; the rest as :func:`attnlib.tasks.parallel.tokenise` does, lower-cased.
    20,000 pairs make a weak translator.

    Args:
        n_train: use this many of the Europarl pairs from the beginning; all that are not held out when None.
        held_out_from_train: Europarl pairs at the end to hold out.
        min_count: words seen less often in the training pairs are read as ``<unk>``.
        max_words: keep at most this many words on each side, the most frequent ones; all when None.
        max_length: drop Europarl pairs with more words than this on either side; None keeps all.

    Raises:
        DataUnavailable, CorruptFile: a file is not at hand, or is not what it should be.
        BadInput: an option that cannot be used.
    """
    options = TextOptions(min_count, max_words, max_length, lowercase=True)
    lines = read_parallel(*(locate(EUROPARL, name) for name in ("train.de", "train.en")))
    train, rest = split_off(tokenise_pairs(lines, options), n_train, held_out_from_train)
    aligned, links = _aligned()
    checksums = {f"europarl/{name}": EUROPARL.file(name).sha256 for name in ("train.de", "train.en")}
    checksums[f"gold_alignments/{_ZIP}"] = GOLD_ALIGNMENTS.file(_ZIP).sha256
    task = build("europarl_de_en", [*train, *aligned], [*aligned, *rest], options, checksums)
    return Task(
        task.name, task.source_vocabulary, task.target_vocabulary, task.train, task.held_out, checksums, links
    )


def _aligned() -> tuple[list[Pair], tuple[Links, ...]]:
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


TASKS = {"europarl_de_en": europarl_de_en}
