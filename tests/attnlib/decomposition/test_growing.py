"""Components grow, and own their fit: looking at them, or splitting states, changes nothing."""

import pytest
import torch

import attnlib
from attnlib import Components
from attnlib.errors import BadInput

TOKENS = torch.tensor([[0, 1], [0, 1], [0, 0], [1, 1]])
STATES = (torch.arange(2) + 10.0 * TOKENS)[:, :, None]  # position plus ten times the word, without noise


@pytest.mark.parametrize("look", ["temporal", "input", "tokens", "centre"])
@pytest.mark.parametrize("constants", ["least_norm", "by_count"])
def test_looking_at_components_does_not_change_the_fit(constants, look):
    components = Components(1, "least_squares", constants=constants).update(STATES, TOKENS)
    getattr(components, look)
    residual = components.split(STATES, TOKENS).residual
    assert residual.abs().max() < 1e-6


def test_least_squares_refitted_by_means_are_means():
    components = Components(1, "least_squares").update(STATES, TOKENS)
    means = Components(1).update(STATES, TOKENS)
    assert torch.equal(components.refitted("means").input, means.input)


def test_means_refitted_by_least_squares_are_least_squares():
    exact = Components(1).update(STATES, TOKENS).refitted("least_squares")
    assert exact.split(STATES, TOKENS).residual.abs().max() < 1e-6


@pytest.mark.parametrize("options", [{"method": "means"}, {"method": "least_squares", "variance": False}])
def test_variance_is_known_only_where_it_is_kept(options):
    with pytest.raises(BadInput, match="no sum of squares"):
        Components(1, **options).update(STATES, TOKENS).variance_explained()


def test_sums_without_variance_cannot_be_merged_with_those_that_have_it():
    with pytest.raises(BadInput, match=r"variance True with those of .* variance False"):
        Components(1, "least_squares") + Components(1, "least_squares", variance=False)


@pytest.mark.parametrize("variance", [True, False])
def test_loaded_components_keep_what_they_kept(tmp_path, variance):
    path = tmp_path / "components.safetensors"
    components = Components(1, "least_squares", variance=variance).update(STATES, TOKENS)
    components.save(path)
    assert torch.equal((Components.load(path) + components).input, (components + components).input)


@pytest.mark.parametrize("method", ["means", "least_squares"])
def test_splitting_longer_states_does_not_change_the_sums(method):
    components = Components(1, method).update(STATES, TOKENS)
    before = components.state_dict()
    components.split(torch.ones(1, 40, 1), torch.ones(1, 40, dtype=torch.long))
    after = components.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize("method", ["means", "least_squares"])
def test_states_longer_than_any_seen_have_no_temporal_part_there(method):
    components = Components(1, method).update(STATES, TOKENS)
    parts = components.split(torch.ones(1, 40, 1), torch.ones(1, 40, dtype=torch.long))
    assert parts.unseen_positions == 38
    assert not parts.temporal[0, 2:].any()


def test_an_update_after_a_split_is_part_of_the_next_split():
    components = Components(1).update(STATES, TOKENS)
    components.split(STATES, TOKENS)
    components.update(STATES, TOKENS + 2)
    parts = components.split(STATES, TOKENS + 2)
    assert parts.unseen_tokens == 0


@pytest.mark.parametrize("token", [pytest.param(1 << 24, id="too large"), pytest.param(-1, id="negative")])
def test_an_id_outside_every_vocabulary_is_refused_with_advice_that_can_be_followed(token):
    components = Components(1)
    tokens = torch.tensor([[token, 7]])
    with pytest.raises(BadInput, match=r"torch.unique\(tokens, return_inverse=True\)"):
        components.update(torch.ones(1, 2, 1), tokens)
    _, renumbered = torch.unique(tokens, return_inverse=True)
    components.update(torch.ones(1, 2, 1), renumbered)
    assert components.occurrences == 2


def test_growing_tables_are_those_of_a_given_vocabulary():
    grown = Components(1).update(STATES, TOKENS).update(STATES, 300 + TOKENS)
    given = Components(1, n_tokens=302, n_positions=2).update(STATES, TOKENS).update(STATES, 300 + TOKENS)
    for table in ("token_sums", "position_sums", "pair_counts", "input", "temporal"):
        assert torch.equal(getattr(grown, table), getattr(given, table))


def test_scikit_learns_names_do_the_same():
    components = Components(1).partial_fit(STATES, TOKENS)
    assert torch.equal(
        components.transform(STATES, TOKENS).residual, components.split(STATES, TOKENS).residual
    )


def test_moved_components_say_the_same():
    components = Components(1, "least_squares").update(STATES, TOKENS)
    residual = components.split(STATES, TOKENS).residual
    assert torch.equal(components.to("cpu").split(STATES, TOKENS).residual, residual)


def test_the_name_of_the_last_release_is_deprecated():
    with pytest.warns(DeprecationWarning, match=r"attnlib.Components\(width\)"):
        components = attnlib.GrowingComponents(1, "least_squares")
    assert components.update(STATES, TOKENS).occurrences == 8


def test_what_was_summed_before_is_gone_once_a_state_is_loaded():
    components = Components(1).update(STATES, 300 + TOKENS)
    components.load_state_dict(Components(1).update(STATES, TOKENS).state_dict())
    assert components.n_tokens == 2
    assert components.tokens.tolist() == [0, 1]


OTHER_STATES = [
    pytest.param({"n_tokens": 1}, "token 1", id="a token beyond the vocabulary"),
    pytest.param({"n_positions": 1}, "2 positions", id="more positions"),
    pytest.param({"width": 2}, "width 1", id="another width"),
    pytest.param({"method": "least_squares"}, "square_sum", id="no variance"),
]


@pytest.mark.parametrize(("options", "message"), OTHER_STATES)
def test_refusing_a_state_that_does_not_fit_changes_nothing(options, message):
    components = Components(**({"width": 1} | options))
    with pytest.raises(BadInput, match=message):
        components.load_state_dict(Components(1).update(STATES, TOKENS).state_dict())
    assert components.occurrences == 0


def test_the_former_name_of_the_components_at_places_warns():
    components = Components(1).update(STATES, TOKENS)
    mask = torch.ones(TOKENS.shape, dtype=torch.bool)
    with pytest.warns(DeprecationWarning, match="at_places"):
        former = components.means(STATES, TOKENS, mask)
    assert torch.equal(former.input, components.at_places(STATES, TOKENS, mask).input)
