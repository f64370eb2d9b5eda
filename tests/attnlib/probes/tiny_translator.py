"""A translator of a dozen words, and three sentence pairs of unequal lengths for it."""

import numpy as np
import torch

from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from attnlib.training.corpus import Corpus, collate

PAIRS = [([4, 5, 6], [7, 8]), ([9, 4, 11, 5, 6], [10, 4, 5, 9]), ([8], [5])]


def model_of(**options):
    config = TranslatorConfig(words=12, width=5, **options)
    return BilinearTranslator(config, torch.Generator().manual_seed(0)).double().eval()


def batch_of(pairs=PAIRS):
    return collate(Corpus.from_ids(*zip(*pairs, strict=True)), np.arange(len(pairs)))


@torch.no_grad()
def logits_of(model, batch, gate, position):
    """Logits of all words with one source position's embedding scaled, by the whole network."""
    embedded = model.embedding(batch.source).clone()
    embedded[:, position] *= gate
    states, start = model.encode(embedded, batch.source_mask)
    decoded, _ = model.decoder(model.embedding(batch.target_input), start)
    _, attention = model.attend(states, batch.source_mask, decoded)
    readout = model.readout
    return readout.logits(readout.from_context(attention @ states) + readout.from_decoder(decoded))
