"""Networks of the chapter on several heads: what is fixed and what varies."""

import torch

from attnlib.models.copier import copier_loss
from attnlib.recipes.multi_head import Settings, new_network
from attnlib.recipes.recipe import RecipeSpec
from attnlib.training.store import Store
from companion.data.synthetic import copy_batch, draw_sources


def test_networks_of_one_body_differ_in_their_query_maps_alone():
    one, other = (new_network(Settings(heads=(head,), length=4, width=6)) for head in (0, 1))
    for (name, first), second in zip(one.named_parameters(), other.parameters(), strict=True):
        assert torch.equal(first, second) != name.startswith("queries"), name
    body = new_network(Settings(heads=(0,), body=1, length=4, width=6))
    assert torch.equal(body.queries.weight, one.queries.weight)
    assert not torch.equal(body.hidden.weight, one.hidden.weight)


def test_a_head_starts_alike_alone_and_among_others():
    alone = new_network(Settings(heads=(7,), length=4, width=6))
    among = new_network(Settings(heads=(3, 7), length=4, width=6))
    assert torch.equal(among.queries.weight[6:], alone.queries.weight)
    assert torch.equal(among.queries.bias[6:], alone.queries.bias)
    assert alone.queries.weight.abs().max() <= 6**-0.5


def test_the_recording_has_a_weight_for_each_head(tmp_path):
    spec = RecipeSpec.of("multi_head", heads=(1, 2), length=4, width=8, steps=2, every=2, held_out=3)
    recording = Store(tmp_path).recording(spec)
    assert recording["head_right"].shape == (2, 2)
    torch.testing.assert_close(recording["head_right"].mean(dim=1), recording["attention_right"])
    assert RecipeSpec.from_json(spec.to_json()) == spec


def test_equal_heads_learn_alike():
    """So that copies are one head with a longer context: after updates they attend alike still."""
    settings = Settings(heads=(3, 3), length=4, width=8)
    network = new_network(settings)
    sources = draw_sources("permutation", 4, 16, torch.Generator().manual_seed(0))
    batch = copy_batch(sources, 4)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(20):
        optimiser.zero_grad()
        copier_loss(network, batch).backward()
        optimiser.step()
    attention = network(batch).attention
    assert not torch.allclose(attention, new_network(settings)(batch).attention, atol=0.01)
    torch.testing.assert_close(attention[:, 0], attention[:, 1])
