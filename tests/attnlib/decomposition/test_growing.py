"""Growing components: what the fixed tables say, of a vocabulary and lengths that nobody named beforehand.

What both kinds refuse is in test_components.py.
"""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib.decomposition import Components
from attnlib.decomposition.growing import GrowingComponents

ID, WIDTH = 3000, 3  # ids below this
DTYPES = torch.float16, torch.bfloat16, torch.float32, torch.float64


@st.composite
def streams(draw, *, most=5):
    """Batches (states, tokens, mask) of one width: ids far apart, any lengths, garbage at padding."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    words = rng.integers(0, ID, size=draw(st.sampled_from([1, 5, 400])))
    return [one_batch(rng, words, draw(st.booleans())) for _ in range(draw(st.integers(1, most)))]


def one_batch(rng, words, holes, batch=None):
    batch, length = batch or rng.integers(1, 20), rng.integers(1, 40)
    mask = np.arange(length) < rng.integers(1, length + 1, size=(batch, 1))
    if holes:
        mask = rng.random((batch, length)) < 0.4
        mask[np.arange(batch), rng.integers(0, length, batch)] = True
    tokens = rng.choice(words, size=(batch, length))
    tokens[~mask] = rng.choice([0, -1, 10**9])
    states = rng.normal(size=(batch, length, WIDTH))
    states[~mask] = rng.choice([0.0, np.nan, 1e30])
    return tuple(map(torch.from_numpy, (states, tokens, mask)))


def grown(batches, components=None):
    components = components or GrowingComponents(WIDTH)
    for batch in batches:
        components.update(*batch)
    return components


def fixed(batches):
    return grown(batches, Components(ID, 40, WIDTH))


def assert_same_parts(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)
    for name in ("unseen_tokens", "unseen_positions"):
        assert getattr(found, name) == getattr(expected, name)


# Against the fixed tables.


@settings(max_examples=40)
@given(streams(), streams(most=1), st.sampled_from(DTYPES))
def test_splits_any_stream_as_fixed_tables_do(batches, others, dtype):
    batches, others = ([(states.to(dtype), *rest) for states, *rest in own] for own in (batches, others))
    mine, theirs = grown(batches), fixed(batches)
    for batch in batches + others:  # others hold words and places never seen
        assert_same_parts(mine.split(*batch), theirs.split(*batch))
    assert mine.tokens.tolist() == theirs.seen.nonzero()[:, 0].tolist()
    assert mine.occurrences == int(theirs.pair_counts.sum())


@settings(max_examples=30)
@given(streams(), st.data())
def test_merged_in_any_order_is_the_whole(batches, data):
    pieces = data.draw(st.permutations([grown([batch]) for batch in batches] + [GrowingComponents(WIDTH)]))
    while len(pieces) > 1:
        at = data.draw(st.integers(0, len(pieces) - 2))
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
    whole = grown(batches)
    assert pieces[0].tokens.tolist() == whole.tokens.tolist()
    for batch in batches:
        assert_same_parts(pieces[0].split(*batch), whole.split(*batch))


@settings(max_examples=30)
@given(streams())
def test_saved_and_loaded_goes_on_as_if_nothing_had_happened(tmp_path_factory, batches):
    path = tmp_path_factory.mktemp("grown") / "c.safetensors"
    before = grown(batches[:1])
    before.save(path)
    loaded = GrowingComponents.load(path)
    for batch in batches:
        assert_same_parts(loaded.split(*batch), before.split(*batch))
    for batch in batches[1:]:
        before.update(*batch)
        loaded.update(*batch)
    for name in ("one", "two"):
        {"one": before, "two": loaded}[name].save(path.with_name(name))
    assert path.with_name("one").read_bytes() == path.with_name("two").read_bytes()


def test_merging_leaves_both_as_they_are():
    first, second = (grown([one_batch(np.random.default_rng(seed), [7, 900], False)]) for seed in (0, 1))
    before = [(own.occurrences, own.tables.token_sums.clone()) for own in (first, second)]
    _ = first + second
    for own, (occurrences, sums) in zip((first, second), before, strict=True):
        assert own.occurrences == occurrences
        assert torch.equal(own.tables.token_sums, sums)


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


def test_a_place_that_no_sample_counts_comes_before_others_that_do(tmp_path):
    """A start mark that is ignored leaves its column empty; those behind it are kept, in the file too."""
    batch = batch_of([[1, 5, 6]], [[9.0, 2.0, 3.0]], [[False, True, True]])
    components = GrowingComponents(1).update(*batch)
    components.save(tmp_path / "c")
    for own in (components, GrowingComponents.load(tmp_path / "c")):
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


def test_looking_at_a_longer_sample_changes_nothing_that_is_in_use(tmp_path):
    components = GrowingComponents(1).update(*batch_of([[5, 6]]))
    components.save(tmp_path / "before")
    before = components.bytes
    assert components.split(*batch_of([[5] * 300])).unseen_positions == 298
    components.save(tmp_path / "after")
    assert components.bytes == before
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
