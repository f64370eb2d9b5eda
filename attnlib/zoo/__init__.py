"""Load trained networks of every class of the library, so that a first analysis needs no model.

=======================  ===============================================================================
``reordering``           a Transformer of two layers and two heads, width 32: phrases of which half swap words
``reordering_AED``       a GRU with attention, width 64, on the same kind of phrases
``reordering_luong``     the primer's GRUs with Luong's decoder, width 64, on such phrases again
``one_to_one_AO``        attention only, width 64: a word for a word, in the same order
``one_to_one_VED``       a GRU without attention, width 64: the same for four words, through one vector
``lexicon_translator``   the second paper's translator, width 32, on sentences of a known lexicon
``polarity_classifier``  its classifier, width 32, on texts with words that tell their label
=======================  ===============================================================================

``python -m notebooks.beyond.your_own_model.zoo`` wrote the files, from networks of the book's quick profile,
all but the first in half precision; :attr:`Trained.provenance` says what made each.

>>> trained = load("reordering")
>>> trained.network.config.layers, trained.word("source", 2)
(2, '<eos>')
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from safetensors import safe_open
from torch import Tensor

from attnlib.adapters.library_models import Recurrent, encoder_decoder_pass, transformer_pass
from attnlib.analysis.stream import Stream
from attnlib.arrays import as_tuple
from attnlib.errors import BadInput, check_known
from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig
from attnlib.models.config import ModelConfig
from attnlib.models.corpus import Batch, Corpus, evaluation_batches
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.sequence_to_sequence import SequenceConfig, SequenceToSequence
from attnlib.models.transformer import Transformer, TransformerConfig
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.sealed import load_file
from attnlib.trace import KINDS, Trace

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.safetensors")))
Network = Transformer | EncoderDecoder | SequenceToSequence | BilinearTranslator | AttentiveClassifier
_CLASSES: dict[str, tuple[Any, Any]] = {
    "Transformer": (Transformer, TransformerConfig),
    "EncoderDecoder": (EncoderDecoder, ModelConfig),
    "SequenceToSequence": (SequenceToSequence, SequenceConfig),
    "BilinearTranslator": (BilinearTranslator, TranslatorConfig),
    "AttentiveClassifier": (AttentiveClassifier, ClassifierConfig),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Trained:
    """A network with sentences that it can be analysed on.

    Attributes:
        network: in evaluation mode.
        corpus: sentence pairs of those that it was trained on; a classifier's target is one word, the label.
        words: of either side, by id.
        provenance: the settings and the seed of its training, commit, date, packages, the share of words that
            it predicts in sentences that it never saw (``accuracy``), and the ``sha256`` of its file.

    Example:
        >>> trained = load("one_to_one_VED")
        >>> trained.network.config.architecture, len(trained.words["source"]) > 4
        ('VED', True)
    """

    network: Network
    corpus: Corpus
    words: dict[str, list[str]]
    provenance: dict

    def __repr__(self) -> str:
        network = type(self.network).__name__
        n_words = " and ".join(f"{len(words):,} {side}" for side, words in self.words.items())
        return f"Trained({network} of {n_words} words, with {len(self.corpus):,} sentence pairs)"

    def stream(self, batch_size: int = 32, kinds: str | Collection[str] = ("cross",)) -> Stream[Batch]:
        """Return the passes over its sentences, for :func:`attnlib.analyse` and :func:`attnlib.report`.

        Args:
            batch_size: sentence pairs at once.
            kinds: of attention; a Transformer alone has others than ``"cross"``.

        Returns:
            A stream that can be read again and again.

        Raises:
            BadInput: the network has no attention to a source, or none of such a kind.
        """
        chosen_kinds = as_tuple(kinds) or ()
        for kind in chosen_kinds:
            check_known("attention", kind, KINDS)
        if isinstance(self.network, Transformer):
            trace = partial(transformer_pass, self.network, kinds=chosen_kinds)
        else:
            _require_cross_attention(self.network, chosen_kinds)
            trace = partial(encoder_decoder_pass, cast("Recurrent", self.network))
        trained = {"network": type(self.network).__name__}
        for name in ("accuracy", "commit", "date"):
            trained[name] = self.provenance[name]
        made = {"trained": trained, "sha256": {"model": self.provenance["sha256"]}}
        batches = partial(evaluation_batches, self.corpus, batch_size)
        return Stream(trace, batches, logits=self.logits, made=lambda: made)

    @torch.no_grad()
    def logits(self, trace: Trace) -> Float[Tensor, "batch target words"]:
        """Return what the network predicts at every step of a pass.

        Args:
            trace: of the pass, which is run again.

        Returns:
            Logits of each word.
        """
        batch = Batch(
            source=trace.source_tokens,
            source_mask=trace.source_mask,
            target_input=trace.target_tokens,
            target_output=trace.target_outputs,
            target_mask=trace.target_mask,
            indices=torch.arange(len(trace.source_mask)),
        )
        return self.network(batch).logits

    def word(self, side: str, token: int) -> str:
        """Return the word of an id.

        Args:
            side: ``"source"`` or ``"target"``.
            token: the id.

        Returns:
            A word, or a mark such as ``"<eos>"``.
        """
        return self.words[side][token]


def load(name: str) -> Trained:
    """Load a network by its name.

    Args:
        name: one of :data:`NAMES`.

    Returns:
        The network in evaluation mode, with sentences and words.

    Raises:
        UnknownName: there is no such network.
        Altered: its file is not as it was written.

    Example:
        >>> trained = load("reordering")
        >>> trained.network.config.layers, trained.word("source", 2)
        (2, '<eos>')
    """
    check_known("network", name, NAMES)
    path = FOLDER / f"{name}.safetensors"
    tensors = load_file(path)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    description = json.loads(metadata["trained"])
    network_class, config_class = _CLASSES[description["kind"]]
    network = network_class(config_class(**description["config"]), torch.Generator().manual_seed(0))
    weights = {}
    for key, tensor in tensors.items():
        if key.startswith("network."):
            weights[key.removeprefix("network.")] = tensor
    network.load_state_dict(weights)
    return Trained(
        network=network.eval(),
        corpus=Corpus.from_ids(_sentences(tensors["source"]), _sentences(tensors["target"])),
        words=description["words"],
        provenance=description["provenance"] | {"sha256": metadata["sha256"]},
    )


def _sentences(rows: Int[Tensor, "sentences longest"]) -> list[list[int]]:
    """Return the ids of each sentence; padding is below 0."""
    return [row[row >= 0].tolist() for row in rows]


def _require_cross_attention(network: Network, kinds: Collection[str]) -> None:
    """Raise BadInput unless a recurrent network has attention to a source, and no other kind is chosen."""
    architecture = getattr(network.config, "architecture", type(network).__name__)
    has_none = architecture in ("VED", "AttentiveClassifier")
    if has_none or set(kinds) != {"cross"}:
        has = "no attention between two texts" if has_none else "cross-attention alone"
        raise BadInput(f"{architecture} has {has}: there is no analysis of {', '.join(kinds)}")
