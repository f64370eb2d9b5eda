"""Growing components: what the fixed tables say, of a vocabulary and lengths that nobody named beforehand.

What all kinds do alike is in test_components.py.
"""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.decomposition import Components
from attnlib.decomposition.growing import GrowingComponents
from tests.attnlib.decomposition.component_builders import corpora, tensors

FAR = 13  # between two ids
WORDS = (1, 5, 400)


def assert_same_parts(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-10)
    for name in ("unseen_tokens", "unseen_positions"):
        assert getattr(found, name) == getattr(expected, name)


def batches_of(corpus, size, dtype):
    """Batches as long as their own samples, their ids far apart."""
    for start in range(0, len(corpus[0]), size):
        states, tokens, mask = tensors(corpus, dtype, slice(start, start + size))
        kept = slice(int(mask.any(0).nonzero().max()) + 1)
        yield states[:, kept], torch.where(mask, FAR * tokens, tokens)[:, kept], mask[:, kept]


@settings(max_examples=40)
@given(
    corpora(width=3, longest=40, words=WORDS),
    corpora(width=3, longest=40, words=WORDS),
    st.integers(1, 70),
    st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
)
def test_fits_and_splits_any_stream_as_fixed_tables_do(corpus, other, size, dtype):
    batches, others = (list(batches_of(own, size, dtype)) for own in (corpus, other))
    mine, theirs = GrowingComponents(3), Components(FAR * 400, 40, 3)
    for batch in batches:
        mine.update(*batch)
        theirs.update(*batch)
    for batch in batches + others:  # others hold words and places never seen
        assert_same_parts(mine.split(*batch), theirs.split(*batch))
    assert mine.tokens.tolist() == theirs.seen.nonzero()[:, 0].tolist()
    assert mine.occurrences == int(theirs.pair_counts.sum())

    again = GrowingComponents.of_tensors(mine.tensors())  # goes on as if nothing had happened
    for batch in others:
        for own in (mine, again):
            own.update(*batch)
    assert all(map(torch.equal, again.tensors().values(), mine.tensors().values()))


# By hand.


def batch_of(tokens, states=None, mask=None):
    tokens = torch.tensor(tokens)
    states = torch.ones(*tokens.shape, 1) if states is None else torch.tensor(states)[..., None]
    return states, tokens, torch.ones(tokens.shape, dtype=torch.bool) if mask is None else torch.tensor(mask)


def test_unseen_words_and_places_have_no_part():
    components = GrowingComponents(1).update(*batch_of([[5, 6]]))
    parts = components.split(*batch_of([[5, 7, 5], [70_000, 6, 6]]))
    assert (parts.unseen_tokens, parts.unseen_positions) == (2, 2)
    assert parts.temporal[..., 0].tolist() == [[1, 1, 0], [1, 1, 0]]
    assert parts.input.abs().sum() == 0  # every state is 1, the mean of its place
    assert components.tokens.tolist() == [5, 6]  # looking is not counting


def test_a_place_that_no_sample_counts_comes_before_others_that_do():
    """A start mark that is ignored leaves its column empty; those behind it are kept, in the tensors too."""
    batch = batch_of([[1, 5, 6]], [[9.0, 2.0, 3.0]], [[False, True, True]])
    components = GrowingComponents(1).update(*batch)
    for own in (components, GrowingComponents.of_tensors(components.tensors())):
        parts = own.split(*batch)
        assert parts.temporal.flatten().tolist() == [0.0, 2.0, 3.0]
        assert parts.unseen_positions == parts.unseen_tokens == 0


# Memory.


def test_rows_are_for_what_is_seen_alone():
    """Three words of a vocabulary of a million at two places: 3 + 2 sums of width 1, 3 by 2 counts."""
    components = GrowingComponents(1).update(*batch_of([[5, 999_999], [5, 7]]))
    assert components.bytes == 8 * (3 + 2 + 3 * 2)
    assert (components.tables.n_tokens, components.tables.n_positions) == (256, 16)


def test_rows_double_when_words_do_not_fit():
    components = GrowingComponents(1)
    for words, rows in ((200, 256), (255, 256), (256, 512), (1000, 1024)):
        components.update(*batch_of([[word] for word in range(words)]))
        assert (components.tables.n_tokens, len(components.tokens)) == (rows, words)  # one row stays spare


def test_looking_at_a_longer_sample_changes_nothing_that_is_in_use():
    components = GrowingComponents(1).update(*batch_of([[5, 6]]))
    before = {name: table.clone() for name, table in components.tensors().items()}
    assert components.split(*batch_of([[5] * 300])).unseen_positions == 298
    assert all(torch.equal(table, before[name]) for name, table in components.tensors().items())
