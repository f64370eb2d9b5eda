"""What holds for every network: parameters, padding, later words, writing, search; what is refused."""

from dataclasses import fields, replace
from functools import partial
from itertools import product

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from attnlib.models.attention import masked_softmax
from attnlib.models.search import beam_search, greedy_search, translate
from attnlib.models.transformer import Transformer
from attnlib.training.corpus import Batch
from attnlib.training.vocabulary import BOS, EOS, PAD
from tests.attnlib.models import model_builders as nets
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import refused

BATCH = nets.batch_of()
RECURRENT = {kind: partial(nets.encoder_decoder, kind) for kind in (*nets.RECURRENT, "AO")}
OF_POSITIONS = {positions: partial(nets.transformer, positions=positions) for positions in nets.POSITIONS}
SEQUENCES = {kind: partial(nets.sequence_network, kind) for kind in nets.SEQUENCES}
FORCED = {"AO none": partial(nets.encoder_decoder, "AO", positions="none")} | RECURRENT | OF_POSITIONS
WRITERS = SEQUENCES | OF_POSITIONS
UNTRAINED = {"translator": nets.translator, "classifier": nets.classifier} | RECURRENT | SEQUENCES
UNTRAINED["transformer"] = lambda seed: Transformer(replace(nets.SMALL, positions="learned"), generator(seed))


@pytest.mark.parametrize("name", UNTRAINED)
def test_parameters_come_from_the_generator_alone(name):
    before = torch.random.get_rng_state()
    first, again, other = (UNTRAINED[name](seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    for part, value in first.named_parameters():
        assert torch.equal(value, again.get_parameter(part))
        assert "norm" in part or not torch.equal(value, other.get_parameter(part))


def test_one_seed_starts_every_kind_of_attention_in_the_same_place():
    for made, others in ((nets.translator, ["uniform"]), (nets.classifier, ["uniform", "alone"])):
        for other in others:
            twin = made(attention=other)
            assert all(torch.equal(own, twin.get_parameter(name)) for name, own in made().named_parameters())


@pytest.mark.parametrize("name", FORCED)
def test_a_sample_alone_and_padded_in_a_batch_has_the_same_logits_whatever_stands_at_padding(name):
    model = FORCED[name]()
    source = BATCH.source.masked_fill(~BATCH.source_mask, 5)
    filled = replace(BATCH, source=source, target_input=BATCH.target_input.masked_fill(~BATCH.target_mask, 6))
    for trace in model(BATCH), model(filled):
        for sample in range(3):
            alone = model(nets.batch_of(sample))
            steps, words = alone.logits.shape[1], alone.encoder_states.shape[1]
            torch.testing.assert_close(trace.logits[sample, :steps], alone.logits[0])
            torch.testing.assert_close(trace.encoder_states[sample, :words], alone.encoder_states[0])


@pytest.mark.parametrize("name", FORCED)
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


@pytest.mark.parametrize("name", FORCED)
def test_the_order_of_the_source_is_known_but_to_attention_without_positions(name):
    model, one = FORCED[name](), nets.batch_of(1)
    turned = replace(one, source=one.source.flip(1))
    assert torch.allclose(model(turned).logits, model(one).logits) == name.endswith("none")


@pytest.mark.parametrize("name", WRITERS)
def test_word_by_word_gives_the_logits_of_the_teacher_forced_pass(name):
    model = WRITERS[name]()
    logits, state = model(BATCH).logits, model.begin(BATCH.source, BATCH.source_mask)
    for step, words in enumerate(BATCH.target_input.T):
        found, state = model.write(words, state)
        read = BATCH.target_mask[:, step]
        torch.testing.assert_close(found[read], logits[read, step])


TRACES = [own()(BATCH) for own in (FORCED["AED gru"], FORCED["VED"], WRITERS["luong"], WRITERS["cho"])]


@pytest.mark.parametrize("trace", [BATCH, *TRACES, nets.transformer()(BATCH).encoder_self[0][0]])
def test_a_trace_or_batch_moves_with_all_that_it_has(trace):
    moved = trace.to("meta")
    for name in (field.name for field in fields(trace)):
        value = getattr(moved, name)
        assert value is None if getattr(trace, name) is None else value.is_meta, name


LARGE = torch.full((1, 129), 5)
ROWS = torch.tensor([[True], [False], [True]])  # leaves nothing of the second sample
TABLE = "position 128 is beyond the 128 rows"


test_what_cannot_be_is_refused = refused(
    (lambda: nets.sequence_network(bidirectional=True), "use general"),
    (lambda: nets.classifier()(BATCH.source, BATCH.source_mask & ROWS), "all padding"),
    (lambda: masked_softmax(torch.zeros(3, 1, 1), ROWS), "rows [1] are all padding"),
    (lambda: nets.encoder_decoder("AO").encode_inputs(torch.zeros(1, 3, 6), initial=torch.zeros(1, 6)),
     "shift it with first_position"),
    (lambda: nets.encoder_decoder("AED").encode_inputs(torch.zeros(1, 3, 6), first_position=1),
     "0 for a recurrent network"),
    (lambda: nets.encoder_decoder("AO", positions="learned").encode(LARGE, LARGE == 5), TABLE),
    (lambda: nets.transformer(positions="learned").begin(LARGE, LARGE == 5), TABLE),
    (lambda: nets.transformer()(replace(BATCH, source_mask=BATCH.source_mask & ROWS)),
     "source rows [1] begin with padding"),
    (lambda: nets.transformer()(replace(BATCH, target_mask=BATCH.target_mask & ~ROWS)),
     "target rows [0, 2] begin with padding"),
    (lambda: nets.transformer().projections("crosss", 0, 0), "did you mean 'cross'"),
    (lambda: nets.transformer().projections("cross", 0, 3), "head is 3; … go from 0 to 2"),
    (lambda: nets.transformer().projections("encoder_self", -1, 0), "layer is -1"),
    (lambda: translate(nets.translator(), BATCH.source, BATCH.source_mask, 0), "max_steps is 0"),
)  # fmt: skip


# Greedy and beam search against exhaustive search on a tiny vocabulary.


WORDS, STEPS = 6, 4  # pad, bos, eos, unk and two words
SHORT = nets.batch_of(pairs=[([4, 5, 4], [4]), ([5, 4, 4, 5, 5], [4]), ([5], [4])])


def targets():
    """All that may be written: ended within the steps, or cut off."""
    others = [word for word in range(WORDS) if word not in (PAD, BOS, EOS)]
    for length in range(STEPS):
        yield from ((*words, EOS) for words in product(others, repeat=length))
    yield from product(others, repeat=STEPS)


TARGETS = pad_sequence([torch.tensor(words) for words in targets()], batch_first=True, padding_value=PAD)


def known(model, sample):
    """Of all targets the likeliest words, of which padding and BOS are none, and the log-probabilities."""
    source = SHORT.source[sample, SHORT.source_mask[sample]].expand(len(TARGETS), -1)
    read = torch.cat([torch.full_like(TARGETS[:, :1], BOS), TARGETS[:, :-1]], dim=1)
    every = Batch(source, source > PAD, read, TARGETS, TARGETS != PAD, torch.arange(len(TARGETS)))
    logits = model(every).logits.detach().clone()
    logits[..., [PAD, BOS]] = -torch.inf
    chosen = logits.log_softmax(-1).gather(2, TARGETS[..., None])[..., 0]
    return logits.argmax(-1), chosen.masked_fill(~every.target_mask, 0).sum(1)


@pytest.mark.parametrize(("seed", "penalty"), [(2, 0.0), (3, 0.6), (4, 1.0)])
@pytest.mark.parametrize("name", WRITERS)
def test_a_beam_that_holds_everything_is_exhaustive_search_and_leaves_the_rest_empty(name, seed, penalty):
    model = nets.spread(WRITERS[name](target_size=WORDS), 1.0, seed)
    sides = SHORT.source, SHORT.source_mask
    found = beam_search(model, *sides, STEPS, beams=len(TARGETS) + 1, length_penalty=penalty)
    for sample, (*words, none) in enumerate(found.words):
        _, total = known(model, sample)
        ranked = (total / (TARGETS != PAD).sum(1) ** penalty).argsort(descending=True)
        assert torch.equal(torch.stack(words), TARGETS[ranked])
        torch.testing.assert_close(found.log_probability[sample, :-1], total[ranked])
        assert total.exp().sum().item() == pytest.approx(1)  # they are all that can be written
        assert (found.log_probability[sample, -1], set(none.tolist())) == (-torch.inf, {PAD})


@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("name", ["translator", *WRITERS])
def test_greedy_takes_the_likeliest_word_at_every_step(name, seed):
    if name == "translator":
        model = nets.spread(nets.translator(words=WORDS), 1.0, seed)
        written = translate(model, SHORT.source, SHORT.source_mask, STEPS)
    else:
        model = nets.spread(WRITERS[name](target_size=WORDS), 1.0, seed)
        written = greedy_search(model, SHORT.source, SHORT.source_mask, STEPS).words[:, 0]
    for sample, words in enumerate(written):
        likeliest, _ = known(model, sample)
        (own,) = ((likeliest == TARGETS) | (TARGETS == PAD)).all(1).nonzero().flatten()
        assert torch.equal(words, TARGETS[own, : len(words)])
        assert EOS in words or len(words) == STEPS
