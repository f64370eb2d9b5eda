"""What holds for every network: parameters, padding, later words, writing word by word; what is refused."""

from dataclasses import fields, replace
from functools import partial

import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.models.attention import Score, masked_softmax
from attnlib.models.classifiers import ClassifierConfig
from attnlib.models.config import ModelConfig
from attnlib.models.search import beam_search, translate
from attnlib.models.sequence_to_sequence import SequenceConfig
from attnlib.models.translator import TranslatorConfig
from tests.attnlib.models.model_builders import (
    NETWORKS,
    POSITIONS,
    RECURRENT,
    SEQUENCES,
    SMALL,
    batch_of,
    classifier,
    encoder_decoder,
    sequence_network,
    transformer,
    translator,
)

BATCH = batch_of()
OF_POSITIONS = {positions: partial(transformer, positions=positions) for positions in POSITIONS}
FORCED = {kind: partial(encoder_decoder, kind) for kind in (*RECURRENT, "AO")} | OF_POSITIONS
WRITERS = {kind: partial(sequence_network, kind) for kind in SEQUENCES} | OF_POSITIONS


@pytest.mark.parametrize("name", NETWORKS)
def test_parameters_come_from_the_generator_alone(name):
    before = torch.random.get_rng_state()
    first, again, other = (NETWORKS[name](seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    for part, value in first.named_parameters():
        assert torch.equal(value, again.get_parameter(part))
        assert "norm" in part or not torch.equal(value, other.get_parameter(part))


@pytest.mark.parametrize(
    ("learned", "twins"),
    [
        (translator(), [translator(attention="uniform")]),
        (classifier(), [classifier("uniform"), classifier("alone")]),
    ],
    ids=["translator", "classifier"],
)
def test_one_seed_starts_every_kind_of_attention_in_the_same_place(learned, twins):
    for twin in twins:
        assert all(torch.equal(value, twin.get_parameter(name)) for name, value in learned.named_parameters())


@pytest.mark.parametrize("name", FORCED)
@torch.no_grad()
def test_a_sample_alone_and_padded_in_a_batch_has_the_same_logits_whatever_stands_at_padding(name):
    model = FORCED[name]()
    filled = replace(
        BATCH,
        source=BATCH.source.masked_fill(~BATCH.source_mask, 5),
        target_input=BATCH.target_input.masked_fill(~BATCH.target_mask, 6),
    )
    for trace in model(BATCH), model(filled):
        for sample in range(3):
            alone = model(batch_of(sample))
            steps, words = alone.logits.shape[1], alone.encoder_states.shape[1]
            torch.testing.assert_close(trace.logits[sample, :steps], alone.logits[0])
            torch.testing.assert_close(trace.encoder_states[sample, :words], alone.encoder_states[0])


@pytest.mark.parametrize("name", FORCED)
@torch.no_grad()
def test_a_later_target_word_changes_no_earlier_logits(name):
    model = FORCED[name]()
    before = model(BATCH).logits
    for step in range(1, BATCH.target_input.shape[1]):
        words = BATCH.target_input.clone()
        words[:, step] = 4 + (words[:, step] + 1) % 4
        after = model(replace(BATCH, target_input=words)).logits
        read = BATCH.target_mask[:, step]
        assert torch.equal(after[:, :step], before[:, :step])
        assert (after[read, step] != before[read, step]).any(dim=-1).all()


@pytest.mark.parametrize("name", WRITERS)
@torch.no_grad()
def test_word_by_word_gives_the_logits_of_the_teacher_forced_pass(name):
    model = WRITERS[name]()
    logits, state = model(BATCH).logits, model.begin(BATCH.source, BATCH.source_mask)
    for step, words in enumerate(BATCH.target_input.T):
        found, state = model.write(words, state)
        read = BATCH.target_mask[:, step]
        torch.testing.assert_close(found[read], logits[read, step])


@pytest.mark.parametrize(
    ("trace", "absent"),
    [
        (BATCH, set()),
        (sequence_network("luong")(BATCH), set()),
        (sequence_network("cho")(BATCH), {"queries", "scores", "attention", "context"}),
        (encoder_decoder("VED")(BATCH), {"scores", "attention", "context"}),
        (transformer()(BATCH).encoder_self[0][0], {"logits", "position_bias"}),
    ],
    ids=["batch", "luong", "cho", "VED", "head"],
)
def test_a_trace_or_batch_moves_with_all_that_it_has(trace, absent):
    moved = {field.name: getattr(trace.to("meta"), field.name) for field in fields(trace)}
    assert {name for name, value in moved.items() if value is None} == absent
    assert all(value.is_meta for value in moved.values() if value is not None)


AED = partial(ModelConfig, **{"architecture": "AED", "source_size": 9, "target_size": 9})
SEQUENCE, LARGE = partial(SequenceConfig, 9, 8), torch.full((1, 129), 5)
SEARCH = partial(beam_search, None, BATCH.source, BATCH.source_mask, **{"max_steps": 3, "beams": 2})
ROWS = torch.tensor([[True], [False], [True]])  # leaves nothing of the second sample


@pytest.mark.parametrize(
    ("refused", "error", "message"),
    [
        (lambda: AED(architecture="AEDD"), UnknownName, "did you mean 'AED'"),
        (lambda: AED(width=0), BadInput, "width is 0"),
        (lambda: AED(embedding_scale=0.0), BadInput, "embedding_scale is 0.0"),
        (lambda: AED(width=5, architecture="AO"), BadInput, "width 5 is odd"),
        (lambda: SEQUENCE(link="atention"), UnknownName, "did you mean 'attention'"),
        (lambda: SEQUENCE(width=0), BadInput, "width is 0"),
        (lambda: SEQUENCE(embedding_scale=0.0), BadInput, "must be positive"),
        (lambda: SEQUENCE(input_feeding=True, decoder="bahdanau"), BadInput, "part of Luong's decoder"),
        (lambda: SEQUENCE(input_feeding=True, link="initial"), BadInput, "part of Luong's decoder"),
        (lambda: sequence_network(bidirectional=True), BadInput, "use general"),
        (lambda: Score("scaled_dot", 2, 4), BadInput, "queries of width 2 with keys of width 4; use general"),
        (lambda: Score("genral", 2, 2), UnknownName, "did you mean 'general'"),
        (lambda: replace(SMALL, heads=5), BadInput, "width is 12, which 5 heads .* a multiple such as 15"),
        (lambda: replace(SMALL, width=9), BadInput, "width is 9; sinusoidal positions need an even one"),
        (lambda: replace(SMALL, width=6, heads=2, positions="rotary"), BadInput, "rotary positions turn"),
        (lambda: replace(SMALL, hidden=0), BadInput, "hidden is 0"),
        (lambda: replace(SMALL, embedding_scale=0.0), BadInput, "embedding_scale is 0.0"),
        (lambda: replace(SMALL, positions="sinusoid"), UnknownName, "did you mean 'sinusoidal'"),
        (lambda: TranslatorConfig(attention="unifrom"), UnknownName, "did you mean 'uniform'"),
        (lambda: TranslatorConfig(width=0), BadInput, "width is 0"),
        (lambda: TranslatorConfig(dropout=1.0), BadInput, "dropout is 1"),
        (lambda: ClassifierConfig(words=5, attention="unifrom"), UnknownName, "did you mean 'uniform'"),
        (lambda: ClassifierConfig(words=5, width=0), BadInput, "width is 0"),
        (lambda: classifier()(BATCH.source, BATCH.source_mask & ROWS), BadInput, "all padding"),
        (lambda: masked_softmax(torch.zeros(3, 1, 1), ROWS), BadInput, r"rows \[1\] are all padding"),
        (lambda: encoder_decoder("AO").encode_inputs(torch.zeros(1, 3, 6), initial=torch.zeros(1, 6)),
         BadInput, "shift it with first_position"),
        (lambda: encoder_decoder("AED").encode_inputs(torch.zeros(1, 3, 6), first_position=1),
         BadInput, "0 for a recurrent network"),
        (lambda: encoder_decoder("AO", positions="learned").encode(LARGE, LARGE == 5),
         BadInput, "position 128 is beyond the 128 rows"),
        (lambda: transformer(positions="learned").begin(LARGE, LARGE == 5),
         BadInput, "position 128 is beyond the 128 rows"),
        (lambda: transformer()(replace(BATCH, source_mask=BATCH.source_mask & ROWS)),
         BadInput, r"source rows \[1\] begin with padding"),
        (lambda: transformer()(replace(BATCH, target_mask=BATCH.target_mask & ~ROWS)),
         BadInput, r"target rows \[0, 2\] begin with padding"),
        (lambda: transformer().projections("crosss", 0, 0), UnknownName, "did you mean 'cross'"),
        (lambda: transformer().projections("cross", 0, 3), BadInput, "head is 3; .* go from 0 to 2"),
        (lambda: transformer().projections("encoder_self", -1, 0), BadInput, "layer is -1"),
        (lambda: translate(translator(), BATCH.source, BATCH.source_mask, 0), BadInput, "max_steps is 0"),
        (lambda: SEARCH(max_steps=0), BadInput, "max_steps is 0, .* at least 1"),
        (lambda: SEARCH(beams=0), BadInput, "beams 0, .* at least 1"),
        (lambda: SEARCH(length_penalty=-1.0), BadInput, "length_penalty -1.0; .* not negative"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(refused, error, message):
    with pytest.raises(error, match=message):
        refused()
