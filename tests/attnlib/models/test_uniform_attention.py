"""With attention held uniform the context is a plain mean, and all else is as it was."""

import torch

from attnlib.models.config import ModelConfig
from attnlib.models.encoder_decoder import EncoderDecoder, UniformEncoderDecoder
from attnlib.training.corpus import Corpus, collate

BATCH = collate(Corpus.from_ids([[4, 5, 6], [7]], [[4, 5], [6, 7, 4]]), [0, 1])
CONFIG = ModelConfig("AED", source_size=8, target_size=9, width=6)


def both():
    return [
        kind(CONFIG, torch.Generator().manual_seed(3)) for kind in (EncoderDecoder, UniformEncoderDecoder)
    ]


def test_the_context_is_the_mean_of_valid_states():
    trace = both()[1](BATCH)
    for sample, length in ((0, 4), (1, 2)):  # end marks included
        mean = trace.encoder_states[sample, :length].mean(0)
        torch.testing.assert_close(trace.context[sample], mean.expand(4, 6))
        assert not trace.attention[sample, :, length:].any()


def test_a_twin_has_the_same_parameters_and_states_and_reads_them_out_alike():
    learned, uniform = (network(BATCH) for network in both())
    torch.testing.assert_close(learned.encoder_states, uniform.encoder_states)
    torch.testing.assert_close(learned.decoder_states, uniform.decoder_states)
    network = both()[0]
    features = torch.cat([uniform.decoder_states, uniform.context], -1)
    torch.testing.assert_close(uniform.logits, network.readout(features))
    assert not torch.allclose(uniform.attention, learned.attention)
