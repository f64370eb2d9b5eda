"""Any module by the names of its modules: projections with a softmax, torch's attention, and refusals."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from attnlib.adapters import Hooked, Modules, TokenBatch
from attnlib.decomposition import Components
from attnlib.errors import BadInput, UnknownName
from tests.attnlib.adapters.test_adapter_hooks import hooks_on

BATCH = TokenBatch.of_rows([[5, 6, 7, 8, 9], [7, 8], [9, 3, 4, 5]], [[3, 4], [5, 6, 7, 8], [4, 4, 5]])
HEADS = 2


class Reader(nn.Module):
    """A cross-attention written by hand, of two heads of width 4, over embeddings; dropout before all."""

    def __init__(self, scale=0.5):
        super().__init__()
        self.words, self.dropout = nn.Embedding(12, 6), nn.Dropout(0.5)
        self.to_q, self.to_k = nn.Linear(6, 4 * HEADS), nn.Linear(6, 4 * HEADS, bias=False)
        self.softmax, self.scale = nn.Softmax(dim=-1), scale

    def forward(self, source, source_mask, read):
        asks, answers = (
            project(self.dropout(self.words(tokens))).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for project, tokens in ((self.to_q, read), (self.to_k, source))
        )
        scores = asks @ answers.mT * self.scale
        return self.softmax(scores.masked_fill(~source_mask[:, None, None], -torch.inf))


def run(model, batch):
    return model(batch.source, batch.source_mask, batch.read)


def drawn(model, seed=0):
    """Weights so large that attention is far from uniform."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in model.parameters():
            value.normal_(generator=generator)
    return model.train()


def twice(model, batch):
    return run(model, batch), run(model, batch)


HOOKED = Hooked("to_q", "to_k", heads=HEADS, attention="softmax")


def assert_terms_sum_to_the_scores(found):
    components = {
        site: Components(12, 8, states.shape[-1]).update(states, found.tokens(side), found.mask(side))
        for site, (side, states) in found.sites().items()
    }
    for one in found.attended:
        query, key = (
            components[site].split(states, found.tokens(side), found.mask(side))
            for side, site, states in zip(
                found.sides(one.kind),
                (one.query_site, one.key_site),
                (one.query_inputs, one.key_inputs),
                strict=True,
            )
        )
        allowed = one.allowed(*(found.mask(side) for side in found.sides(one.kind)))
        for head in range(one.heads):
            gap = (one.terms(head, query, key).sum((0, 1)) - one.scores[:, head])[allowed]
            assert gap.abs().max() <= 1e-5 * one.scores.abs().max()


# A module written by hand.


def test_scores_are_those_of_the_module():
    model = drawn(Reader())
    found = Modules(model, [HOOKED], run, start=2).trace(BATCH)
    (one,) = found.attended
    read = torch.tensor([[2, 3, 0, 0], [2, 5, 6, 7], [2, 4, 4, 0]])
    assert torch.equal(found.target_tokens[BATCH.target_mask], read[BATCH.target_mask])
    assert torch.equal(found.target_outputs, BATCH.target)
    model.eval()
    expected = model(BATCH.source, BATCH.source_mask, found.target_tokens)
    torch.testing.assert_close(one.attention, expected)
    assert one.attention.std() > 0.2
    for head in range(HEADS):
        own = found.softmax(one, head)[BATCH.target_mask]
        torch.testing.assert_close(own, expected[:, head][BATCH.target_mask], rtol=0, atol=1e-6)
    assert_terms_sum_to_the_scores(found)
    assert set(found.sites()) == {"cross.0.query", "cross.0.key"}


def test_what_batches_say_is_read_is_read():
    found = Modules(drawn(Reader()), [HOOKED], run).trace(replace(BATCH, read=BATCH.target + 1))
    assert torch.equal(found.target_tokens, BATCH.target + 1)
    with pytest.raises(BadInput, match="give it ``read``, or Modules a start"):
        Modules(drawn(Reader()), [HOOKED], run).trace(BATCH)


def test_ignored_tokens_are_seen_and_not_counted():
    model = drawn(Reader())
    plain, without = (
        Modules(model, [HOOKED], run, start=2, ignored=own).trace(BATCH) for own in ((), (3, 2))
    )
    for side in ("source", "target"):
        these = (plain.tokens(side) == 3) | (plain.tokens(side) == 2)
        assert bool((these & plain.mask(side)).any())
        assert torch.equal(plain.counted(side), plain.mask(side))
        assert torch.equal(without.counted(side), plain.mask(side) & ~these)
    assert torch.equal(without.attended[0].attention, plain.attended[0].attention)


def test_padding_at_the_left_gives_the_same_pass():
    source, target = torch.tensor([[0, 0, 7, 8]]), torch.tensor([[0, 5, 6, 7]])
    left = TokenBatch(source, source > 0, target, target > 0)
    model = Modules(drawn(Reader()), [HOOKED], run, start=2)
    found, alone = model.trace(left), model.trace(TokenBatch.of_rows([[7, 8]], [[5, 6, 7]]))
    assert found.target_tokens.tolist() == alone.target_tokens.tolist() == [[2, 5, 6]]
    assert torch.equal(found.attended[0].scores, alone.attended[0].scores)


def test_the_model_is_left_as_it_was():
    model = drawn(Reader())
    model.softmax.eval()
    modes = [module.training for module in model.modules()]
    before = torch.backends.mha.get_fastpath_enabled()

    def fails(model, batch):
        assert hooks_on(model) == 3
        assert not torch.backends.mha.get_fastpath_enabled()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        Modules(model, [HOOKED], fails, start=2).trace(BATCH)
    next(Modules(model, [HOOKED], run, start=2).traces([BATCH]))
    assert hooks_on(model) == 0
    assert [module.training for module in model.modules()] == modes
    assert torch.is_grad_enabled()
    assert torch.backends.mha.get_fastpath_enabled() == before


@pytest.mark.parametrize("enabled", [True, False])
def test_torchs_fast_path_is_set_as_before(enabled):
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(enabled)
    try:
        Modules(drawn(Reader()), [HOOKED], run, start=2).trace(BATCH)
        assert torch.backends.mha.get_fastpath_enabled() == enabled
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions(dtype):
    model = drawn(Reader()).to(dtype)
    (one,) = Modules(model, [HOOKED], run, start=2).trace(BATCH).attended
    computed = torch.promote_types(dtype, torch.float32)
    assert one.attention.dtype == dtype
    assert one.scores.dtype == one.query_inputs.dtype == one.key_inputs.dtype == computed


# The check.


def test_a_wrong_scale_is_noticed():
    # 1/√4 is what is taken where nothing is said, and what Reader computes with by default.
    model = drawn(Reader(scale=0.6))
    with pytest.raises(BadInput, match=r"cross\.0, head 0: attention from the caught projections is up to"):
        Modules(model, [HOOKED], run, start=2).trace(BATCH)
    said = Hooked("to_q", "to_k", heads=HEADS, attention="softmax", scale=0.6)
    assert Modules(model, [said], run, start=2).trace(BATCH).attended[0].scale == 0.6


def test_what_nothing_checks_is_refused_unless_it_is_said():
    bare = Hooked("to_q", "to_k", heads=HEADS)
    with pytest.raises(BadInput, match=r"cross\.0: nothing checks the scores made of to_q and to_k"):
        Modules(Reader(), [bare], run)
    model = drawn(Reader())
    (one,) = Modules(model, [bare], run, start=2, unchecked=True).trace(BATCH).attended
    assert one.attention is None
    checked = Modules(model, [HOOKED], run, start=2).trace(BATCH).attended[0]
    assert torch.equal(one.scores, checked.scores)


@pytest.mark.parametrize(
    ("hooked", "message"),
    [
        ([Hooked("to_qq", "to_k", 2, "softmax")], "no module 'to_qq' in Reader; near are to_q, to_k"),
        ([Hooked("to_q", "to_k", 2, "sofmax")], "no module 'sofmax' in Reader; near are softmax"),
        ([Hooked("to_q", "zzzzzz", 2, "softmax")], "no module 'zzzzzz' in Reader; none is near"),
        ([Hooked("words", "to_k", 2, "softmax")], "words is Embedding; expected nn.Linear, a projection"),
        ([Hooked("to_q", "to_k", attention="softmax")], r"cross\.0: heads is 0; say how many share to_q"),
        ([], "no attention is hooked: name the modules of one or more"),
        ([HOOKED, HOOKED], r"2 attentions are called cross\.0: give each a layer"),
    ],
)
def test_what_cannot_be_hooked_is_refused(hooked, message):
    with pytest.raises(BadInput, match=message):
        Modules(Reader(), hooked, run)


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'cross'"):
        Hooked("to_q", "to_k", heads=2, kind="crosss")


@pytest.mark.parametrize(
    ("hooked", "run", "message"),
    [
        (HOOKED, lambda model, batch: None, "to_q was not run: is it the module of another path"),
        (Hooked("to_q", "to_k", 3, "softmax"), run, "8 dimensions cannot be shared by 3 heads"),
        (
            Hooked("to_q", "to_k", 4, "softmax"),
            run,
            r"softmax returns \(3, 2, 4, 5\); expected .*\(batch, 4,",
        ),
        (Hooked("to_q", "to_k", 2, "to_k"), run, r"to_k returns \(3, 5, 8\); expected attention"),
        (Hooked("to_q", "to_k", 2, "words"), run, "words runs more than once in a pass"),
        (HOOKED, twice, "runs more than once in a pass"),
        (
            HOOKED,
            lambda model, batch: model(batch.source, batch.source_mask, batch.read[:, 1:]),
            r"cross\.0: states of shape \(3, 3, 6\); expected \(3, 4, 6\)",
        ),
    ],
)
def test_what_comes_out_otherwise_than_said_is_refused(hooked, run, message):
    model = drawn(Reader())
    with pytest.raises(BadInput, match=message):
        Modules(model, [hooked], run, start=2).trace(BATCH)
    assert hooks_on(model) == 0
