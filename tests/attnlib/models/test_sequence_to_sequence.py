"""The primer's networks against their equations, one sentence at a time with torch's cells."""

import pytest
import torch
from torch import nn

from attnlib.training.vocabulary import BOS, EOS
from tests.attnlib.models.model_builders import PAIRS, SEQUENCES, batch_of, sequence_network


def cells_of(layer, end=""):
    """torch's cells with the parameters of a stack of layers, the bottom one first."""
    kind = nn.LSTMCell if isinstance(layer, nn.LSTM) else nn.GRUCell
    found = []
    for level in range(layer.num_layers):
        suffix = f"_l{level}{end}"
        own = {name.removesuffix(suffix): p for name, p in layer.named_parameters() if name.endswith(suffix)}
        found.append(kind(own["weight_ih"].shape[1], layer.hidden_size).double())
        found[-1].load_state_dict(own)
    return found


def step(cell, x, state):
    """The next state as (h,) or (h, memory)."""
    if isinstance(cell, nn.GRUCell):
        return (cell(x, state[0] if state else None),)
    return cell(x, state)


def read(cell, inputs):
    states, state = [], None
    for x in inputs:
        state = step(cell, x, state)
        states.append(state[0])
    return states, state


def by_definition(model, source, target, *, asked_before=False):
    """Encoder and decoder states, queries, attention and logits of one sentence, word by word."""
    config = model.config
    words = [*(source[::-1] if config.reverse else source), EOS]
    inputs, lasts = [model.embedding_source.weight[word][None] for word in words], []
    backward = cells_of(model.encoder, "_reverse") if config.bidirectional else [None] * config.layers
    for forth, back in zip(cells_of(model.encoder), backward, strict=True):
        states, last = read(forth, inputs)
        if back is not None:
            others, first = read(back, inputs[::-1])
            states = [torch.cat(both, 1) for both in zip(states, others[::-1], strict=True)]
            last = tuple(torch.cat(both, 1) for both in zip(last, first, strict=True))
        inputs = states
        lasts.append(last)
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
        if summary is not None:
            parts.append(summary)
        if config.input_feeding:
            parts.append(fed)
        if bahdanau:
            parts.append(attend(before))
        x = torch.cat(parts, 1)
        for level, cell in enumerate(cells):
            lasts[level] = step(cell, x, lasts[level])
            x = lasts[level][0]
        if luong:
            features = fed = model.attentional_map(
                torch.cat([attend(before if asked_before else x), x], 1)
            ).tanh()
        else:
            features = x if config.link == "initial" else torch.cat([x, *parts], 1)
        found["decoder_states"].append(x)
        found["logits"].append(model.readout(features))
    return {"encoder_states": encoded} | {name: torch.cat(rows) for name, rows in found.items() if rows}


def check_against_definition(model, **options):
    trace = model(batch_of())
    for sample, (source, target) in enumerate(PAIRS):
        found = by_definition(model, source, target, **options)
        for name, expected in found.items():
            ours = getattr(trace, name)[sample, : len(expected)]
            torch.testing.assert_close(ours[..., : expected.shape[-1]], expected)
            assert not ours[..., expected.shape[-1] :].any()  # attention at padding
        assert (trace.attention is None) == ("attention" not in found)


@pytest.mark.parametrize("kind", SEQUENCES)
@torch.no_grad()
def test_a_padded_batch_is_what_the_equations_say_of_each_sentence(kind):
    check_against_definition(sequence_network(kind))
