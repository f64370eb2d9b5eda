"""What the recipes of the translation model and its proxy share: the pairs, and which are probed.

A source has two marks, one at its beginning and one at its end, as the classifiers' texts have::

    source   <bos>  the  cat  sat  <eos>

both of them positions that may be attended to. The paper does not say; that its sources have two shows in its
random baseline, which is arithmetic of the lengths: ``python benchmarks/source_marks.py`` holds what is
printed against either reading.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.training.corpus import Corpus, collate
from attnlib.training.vocabulary import BOS
from companion.data.parallel import read_translation, translation_checksums
from companion.data.pieces import PieceCorpus, piece_corpus
from companion.data.sources import cache_folder

_PROBED_SEED = 0x9806  # the pairs probed are the same in every run, so that runs can be compared


@dataclass(frozen=True)
class TranslationSettings:
    """The data and the training; the defaults are the paper's (section A.8).

    Attributes:
        dataset: one of :data:`companion.data.parallel.NAMES`; ``"known_lexicon"`` needs no data.
        source, target: paths of a reader's own files, for ``"parallel_files"``.
        pieces: size of the shared vocabulary, four marks included.
        n_train, n_validation: use only so many pairs from the beginning; 0 for all.
        longest: leave out pairs with more pieces on a side; 0 for none.
        probed_validation: so many validation pairs are probed, a sample drawn once; 0 for all.
        probed_training: so many training pairs are probed like them (Table 7); 0 for none.
        width: of every state and of the embeddings.
        steps: updates; 36,250 are 20 epochs of Multi30k.
        seed: of parameters, of the order of batches, and of dropout.
    """

    dataset: str = "multi30k_en_de"
    source: str = ""
    target: str = ""
    pieces: int = 8_000
    n_train: int = 0
    n_validation: int = 0
    longest: int = 0
    probed_validation: int = 0
    probed_training: int = 0
    width: int = 256
    batch_size: int = 16
    learning_rate: float = 1e-3
    steps: int = 36_250
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_train", "n_validation", "longest", "probed_validation", "probed_training"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be 0 or more")


@dataclass(frozen=True, eq=False)
class Probed:
    """Samples that are probed at every checkpoint, in a fixed order, and their targets as text."""

    corpus: Corpus
    references: tuple[str, ...]


def load_pieces(settings: TranslationSettings) -> PieceCorpus:
    """The pairs of the settings as pieces, every source with its begin mark, loaded once a process.

    The vocabulary is kept in the cache folder.

    Raises:
        UnknownName, DataUnavailable, CorruptFile, BadInput: see :func:`read_translation` and
            :func:`piece_corpus`.
    """
    return _load(
        settings.dataset,
        settings.source,
        settings.target,
        settings.pieces,
        settings.n_train or None,
        settings.n_validation or None,
        settings.longest or None,
    )


@lru_cache(maxsize=2)
def _load(
    name: str,
    source: str,
    target: str,
    size: int,
    n_train: int | None,
    n_validation: int | None,
    longest: int | None,
) -> PieceCorpus:
    data = piece_corpus(
        read_translation(name, source=source, target=target),
        size=size,
        n_train=n_train,
        n_validation=n_validation,
        longest=longest,
        folder=cache_folder() / "pieces",
    )
    return replace(data, train=begun(data.train), validation=begun(data.validation))


def begun(corpus: Corpus) -> Corpus:
    """The corpus with a begin mark before every source; the end mark is added by ``collate``.

    >>> begun(Corpus.from_ids([[5, 6], [], [7]], [[8], [9], [4]])).source_ids.tolist()
    [1, 5, 6, 1, 1, 7]
    """
    ids = np.insert(corpus.source_ids, corpus.source_offsets[:-1], BOS)
    offsets = corpus.source_offsets + np.arange(len(corpus) + 1)
    return replace(corpus, source_ids=ids, source_offsets=offsets)


def checksums(settings: TranslationSettings) -> dict[str, str]:
    """sha256 of each data file read; empty for the corpus made by rule. Errors as :func:`load_pieces`."""
    return translation_checksums(settings.dataset, source=settings.source, target=settings.target)


def probed_parts(data: PieceCorpus, settings: TranslationSettings) -> dict[str, Probed]:
    """The validation set or a sample of it, and a sample of the training set where one is asked for.

    Raises:
        BadInput: more pairs are to be probed than there are.
    """
    validation = data.validation, data.validation_targets
    probed = settings.probed_validation
    parts = {"validation": _sample(*validation, probed, "validation") if probed else Probed(*validation)}
    if settings.probed_training:
        parts["training"] = _sample(data.train, data.train_targets, settings.probed_training, "training")
    return parts


def _sample(corpus: Corpus, targets: tuple[str, ...], count: int, part: str) -> Probed:
    """So many pairs, drawn once and kept in the order of the corpus."""
    if count > len(corpus):
        raise BadInput(f"probed_{part} is {count}, but there are {len(corpus)} {part} pairs")
    chosen = np.sort(np.random.default_rng(_PROBED_SEED).permutation(len(corpus))[:count])
    pairs = Corpus.from_ids(
        [corpus.source(i)[1:] for i in chosen],  # a corpus is made of words, and the mark goes before them
        [corpus.target(i) for i in chosen],
    )
    return Probed(begun(pairs), tuple(targets[i] for i in chosen))


def masks_of(parts: dict[str, Probed]) -> dict[str, Tensor]:
    """``<part>.source_mask`` and ``<part>.target_mask``, true at words and marks, and the words read.

    ``<part>.source`` and ``<part>.target_output`` are their ids, marks included; padded to the longest.
    """
    found = {}
    for name, part in parts.items():
        batch = collate(part.corpus, np.arange(len(part.corpus)))
        for field in ("source", "source_mask", "target_output", "target_mask"):
            values = getattr(batch, field)
            # ids of at most a few ten thousand pieces
            found[f"{name}.{field}"] = values if values.dtype == torch.bool else values.to(torch.int32)
    return found
