"""Trained networks of every class of the library, inside the package: a first analysis needs no model.

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

>>> one = load("reordering")
>>> one.network.config.layers, one.word("source", 2)
(2, '<eos>')
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast, get_args

import torch
from jaxtyping import Float
from safetensors import safe_open
from torch import Tensor

from attnlib.adapters.library_models import KINDS, Recurrent, encoder_decoder_pass, transformer_pass
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
from attnlib.trace import Trace

FOLDER = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.safetensors")))
Network = Transformer | EncoderDecoder | SequenceToSequence | BilinearTranslator | AttentiveClassifier
_CONFIGS = (TransformerConfig, ModelConfig, SequenceConfig, TranslatorConfig, ClassifierConfig)


@dataclass(frozen=True, eq=False)
class Trained:
    """A network with sentences that it can be analysed on."""

    network: Network  #: in evaluation mode
    #: sentence pairs, of those that it was trained on; a classifier's have one word, the label's
    corpus: Corpus
    words: dict[str, list[str]]  #: of either side, by id
    #: the settings and the seed of its training, commit, date, packages, how much of the words of sentences
    #: that it never saw it predicts (``accuracy``), and the ``sha256`` of its file
    provenance: dict

    def stream(self, batch_size: int = 32, kinds: str | Collection[str] = ("cross",)) -> Stream[Batch]:
        """Passes over its sentences, for :func:`~attnlib.report.one_call.analyse` and reports.

        Raises:
            BadInput: a network without attention to a source, or another kind of it than it has.
        """
        chosen = as_tuple(kinds) or ()
        for kind in chosen:
            check_known("attention", kind, KINDS)
        if isinstance(self.network, Transformer):
            trace = partial(transformer_pass, self.network, kinds=chosen)
        else:
            architecture = getattr(self.network.config, "architecture", type(self.network).__name__)
            without = architecture in ("VED", "AttentiveClassifier")
            if without or set(chosen) != {"cross"}:
                has = "no attention between two texts" if without else "cross-attention alone"
                raise BadInput(f"{architecture} has {has}: there is no analysis of {', '.join(chosen)}")
            trace = partial(encoder_decoder_pass, cast("Recurrent", self.network))
        trained = {name: self.provenance[name] for name in ("accuracy", "commit", "date")}
        trained = {"network": type(self.network).__name__} | trained
        made = {"trained": trained, "sha256": {"model": self.provenance["sha256"]}}
        batches = partial(evaluation_batches, self.corpus, batch_size)
        return Stream(trace, batches, logits=self.logits, made=lambda: made)

    @torch.no_grad()
    def logits(self, one: Trace) -> Float[Tensor, "batch target words"]:
        """What it predicts at every step of a pass."""
        target = one.target_tokens, one.target_outputs, one.target_mask
        batch = Batch(one.source_tokens, one.source_mask, *target, torch.arange(len(one.source_mask)))
        return self.network(batch).logits

    def word(self, side: str, token: int) -> str:
        """Of ``"source"`` or ``"target"``."""
        return self.words[side][token]


def load(name: str) -> Trained:
    """A network by its name.

    Raises:
        UnknownName: none of :data:`NAMES`. Altered: its file is not as it was written.
    """
    check_known("network", name, NAMES)
    path = FOLDER / f"{name}.safetensors"
    tensors = load_file(path)
    with safe_open(path, framework="pt") as file:
        said, digest = json.loads(file.metadata()["trained"]), file.metadata()["sha256"]
    kinds = zip(get_args(Network), _CONFIGS, strict=True)
    kind, config = next(own for own in kinds if own[0].__name__ == said["kind"])
    network = kind(config(**said["config"]), torch.Generator().manual_seed(0))
    weights = {k.removeprefix("network."): v for k, v in tensors.items() if k[:8] == "network."}
    network.load_state_dict(weights)
    rows = [[row[row >= 0].tolist() for row in tensors[side]] for side in ("source", "target")]
    provenance = said["provenance"] | {"sha256": digest}
    return Trained(network.eval(), Corpus.from_ids(*rows), said["words"], provenance)
