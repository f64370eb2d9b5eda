"""The primer's networks against their equations, one sentence at a time with torch's cells."""

import pytest
import torch

from attnlib.training.vocabulary import BOS, EOS
from tests.attnlib.models.model_builders import (
    PAIRS,
    SEQUENCES,
    batch_of,
    cells_of,
    read_through,
    sequence_network,
    step,
)


def by_definition(model, source, target, *, asked_before=False):
    """Encoder and decoder states, queries, attention and logits of one sentence, word by word."""
    config = model.config
    words = [*(source[::-1] if config.reverse else source), EOS]
    inputs, ends = read_through(model.encoder, [model.embedding_source.weight[word][None] for word in words])
    lasts = [tuple(torch.cat(ways, 1) for ways in zip(*end, strict=True)) for end in ends]
    if config.reverse:
        inputs = [*inputs[-2::-1], inputs[-1]]
    encoded = torch.cat(inputs)
    bahdanau = config.link == "attention" and config.decoder == "bahdanau"
    luong = config.link == "attention" and config.decoder == "luong"
    summary = model.summary_map(lasts[-1][0]).tanh() if config.link == "every_step" else None
    if config.bidirectional or config.link == "every_step" or bahdanau:
        mapped = [model.start_map(last[0]).tanh() for last in lasts]
        lasts = [(h, torch.zeros_like(h))[: len(lasts[0])] for h in mapped]

    def attend(query):
        row = model.score(query[None], encoded[None])[0].softmax(-1)
        found["queries"].append(query)
        found["attention"].append(row)
        return row @ encoded

    found = {name: [] for name in ("queries", "attention", "decoder_states", "logits")}
    cells, fed = cells_of(model.decoder), torch.zeros(1, config.width).double()
    for token in [BOS, *target]:
        before = lasts[-1][0]
        parts = [model.embedding_target.weight[token][None]]
        parts += [summary] if summary is not None else []
        parts += [fed] if config.input_feeding else []
        parts += [attend(before)] if bahdanau else []
        x = torch.cat(parts, 1)
        for level, cell in enumerate(cells):
            lasts[level] = step(cell, x, lasts[level])
            x = lasts[level][0]
        if luong:
            context = attend(before if asked_before else x)
            features = fed = model.attentional_map(torch.cat([context, x], 1)).tanh()
        else:
            features = x if config.link == "initial" else torch.cat([x, *parts], 1)
        found["decoder_states"].append(x)
        found["logits"].append(model.readout(features))
    return {"encoder_states": encoded} | {name: torch.cat(rows) for name, rows in found.items() if rows}


def check_against_definition(model, definition=by_definition, **options):
    trace = model(batch_of())
    for sample, (source, target) in enumerate(PAIRS):
        found = definition(model, source, target, **options)
        for name, expected in found.items():
            ours = getattr(trace, name)[sample, : len(expected)]
            torch.testing.assert_close(ours[..., : expected.shape[-1]], expected)
            assert not ours[..., expected.shape[-1] :].any()  # attention at padding
        assert (trace.attention is None) == ("attention" not in found)


@pytest.mark.parametrize("kind", SEQUENCES)
@torch.no_grad()
def test_a_padded_batch_is_what_the_equations_say_of_each_sentence(kind):
    check_against_definition(sequence_network(kind))
