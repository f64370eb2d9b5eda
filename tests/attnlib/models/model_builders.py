"""Small networks of every family, and sentences of unlike length for them."""

from dataclasses import replace

import numpy as np
import torch

from attnlib import EncoderDecoder, ModelConfig
from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig
from attnlib.models.corpus import Corpus, collate
from attnlib.models.sequence_to_sequence import NAMED, SequenceConfig, SequenceToSequence
from attnlib.models.transformer import Transformer, TransformerConfig
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from tests.tables import beside

PAIRS = [([4, 5, 6], [4, 5]), ([7, 8, 4, 5, 6], [6, 7, 4, 4]), ([5], [5, 6, 7])]
SMALL = TransformerConfig(source_size=9, target_size=8, width=12, heads=3, layers=2, hidden=20)
POSITIONS = ["sinusoidal", "learned", "relative", "rotary", "none"]
RECURRENT = {"VED": {}, **{f"AED {cell}": {"cell": cell} for cell in ("gru", "lstm", "vanilla", "ugrnn")}}
GIVEN = beside(__file__, "networks")
SEQUENCES = NAMED | GIVEN["sequences"]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def batch_of(*samples, pairs=PAIRS):
    return collate(Corpus.from_ids(*zip(*pairs, strict=True)), np.array(samples or range(len(pairs))))


def encoder_decoder(kind="AED", seed=0, **changes):
    config = ModelConfig(kind.split()[0], 9, 8, **{"width": 6} | RECURRENT.get(kind, {}) | changes)
    return EncoderDecoder(config, generator(seed)).double()


def sequence_network(kind="plain", seed=0, network=SequenceToSequence, **changes):
    sizes = {"source_size": 9, "target_size": 8, "width": 6, "embedding_scale": 1.0}
    config = SequenceConfig(**sizes | SEQUENCES[kind] | changes)
    return network(config, generator(seed)).double()


def drawn(model, size=1.0):
    """Weights so large that attention is far from uniform."""
    draw = generator()
    with torch.no_grad():
        for value in model.parameters():
            value.normal_(std=size, generator=draw)
    return model


def spread(model, size, seed=0):
    """With weights so large that attention is far from uniform, and with biases and norms that differ."""
    draw = generator(seed)
    with torch.no_grad():
        for value in model.parameters():
            noise = torch.randn(value.shape, generator=draw)
            value.copy_(noise * size if value.dim() > 1 else value + 0.3 * noise)
    return model.eval()


def transformer(seed=0, **changes):
    model = Transformer(replace(SMALL, **changes), generator(seed)).double()
    return spread(model, 0.3, seed).requires_grad_(False)


def translator(seed=0, **changes):
    config = TranslatorConfig(**{"words": 12, "width": 5} | changes)
    return BilinearTranslator(config, generator(seed)).double().eval()


def classifier(attention="learned", seed=0, **sizes):
    config = ClassifierConfig(**{"words": 12, "embedding_width": 5, "width": 4} | sizes, attention=attention)
    return AttentiveClassifier(config, generator(seed)).double()
