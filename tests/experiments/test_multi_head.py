"""Good and bad heads: what is fixed and what varies, how they are told apart, and who stands in a network."""

import pytest
import torch

from attnlib.companion.multi_head_sentences import scenarios_table, screening_sentence
from attnlib.errors import BadInput, NotMeasured
from attnlib.experiments import multi_head as experiment
from attnlib.experiments.copying_courses import PROBES
from attnlib.experiments.multi_head import UNSEEN, Config
from attnlib.experiments.run import run
from attnlib.plotting.multi_head import scenarios
from attnlib.recipes.multi_head import Settings, new_network
from attnlib.recipes.recipe import RecipeSpec
from attnlib.training.store import Store

TINY = {"candidates": 2, "seeds": 1, "heads": 2, "length": 4, "width": 8, "steps": 2, "every": 2}


class Given:
    """A store in which single heads end at given accuracies, and a network at the best of its heads."""

    def __init__(self, ends, missing=()):
        self.ends, self.missing, self.asked = ends, missing, []

    def kept(self, spec, measure):
        settings = spec.resolved
        self.asked.append(settings.heads)
        if settings.heads in self.missing:
            raise NotMeasured(spec.setting)
        end = max(self.ends.get((head, settings.seed), self.ends.get(head, 0.7)) for head in settings.heads)
        columns = ("loss", "attention_accuracy", *PROBES)
        return {"steps": [0, 2], "accuracy": [0.1, end]} | {column: [0.5, 0.5] for column in columns}


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


def test_heads_are_good_or_bad_on_all_their_data_or_neither():
    ends = {0: 0.97, 1: 0.5, 2: 0.4, (3, 0): 0.99, (3, 1): 0.2}
    store = Given(ends)
    values, _ = experiment.compute(Config(**TINY | {"candidates": 5, "trials": 2, "seeds": 4}), store)
    assert values["heads"] == {"tried": 5, "good": 1, "bad": 2}
    assert values["all_bad"]["failed"]["value"] == 1
    assert values["one_good"]["failed"]["value"] == 0
    networks = [heads for heads in store.asked if len(heads) == 2]
    bad, mixed, random = networks[:4], networks[4:8], networks[8:]
    assert {frozenset(heads) for heads in bad} == {frozenset({1, 2})}
    assert all(heads[0] == 0 and heads[1] in (1, 2) for heads in mixed)
    assert sorted(head for heads in random for head in heads) == list(range(UNSEEN, UNSEEN + 8))


def test_without_good_heads_their_scenario_is_empty_and_too_few_bad_ones_are_said():
    result_values, rows = experiment.compute(Config(**TINY), Given({0: 0.3}))
    assert result_values["one_good"]["n"] == 0
    assert result_values["one_good"]["failed"]["value"] is None
    (network,) = [row for row in rows["outcomes"] if row["scenario"] == "all_bad"]
    assert network["heads"] == "0"


def test_a_head_without_all_its_trials_is_neither():
    store = Given({0: 0.3, 1: 0.3}, missing=[(1,)])
    values, _ = experiment.compute(Config(**TINY), store)
    assert values["heads"] == {"tried": 1, "good": 0, "bad": 1}


def test_the_result_is_drawn_and_told(tmp_path):
    result = run("multi_head", out=tmp_path, models=tmp_path / "models", overrides=TINY)
    assert len(result.models) == 2 + 1
    assert len(scenarios(result).axes[0].get_lines()) == 2 + 1  # and the bound
    assert "one head, at random" in scenarios_table(result).index
    assert screening_sentence(result).startswith("Of 2 heads tried alone on 1 set of data")


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="trials is 0"):
        Config(trials=0)
    with pytest.raises(BadInput, match="heads is 0"):
        Settings(heads=())
