"""Locality of the probe: stages by hand, and the run of a network that learns to see a keyword."""

import pytest
import torch

from attnlib.models import classifiers
from attnlib.models.classifiers import AttentiveClassifier
from notebooks.learn.probe_locality.experiment import PLACES, Config, compute
from notebooks.learn.probe_locality.keyword import KEYWORD, Settings, checkpoints, keyword_batch, record
from tests.notebooks.figure_builders import Given


def computed(*courses, steps=20):
    """Values of a store that knows one course for each seed, or None."""
    config = Config(seeds=len(courses), steps=steps)
    return compute(config, Given(lambda spec, _: courses[spec.seed]))[0]


def course(accuracy, **places):
    still = dict.fromkeys(PLACES, [0.0] * len(accuracy)) | {"loss": [0.5] * len(accuracy)}
    return still | {"steps": [0, 10, 20][: len(accuracy)], "accuracy": accuracy} | places


KNOWN = course([0.5, 0.8, 1.0], keyword=[0.0, 4.0, 6.0], last=[0.0, 5.0, 2.0])


def test_early_is_the_first_checkpoint_right_for_three_in_four():
    values = computed(
        course([0.5, 0.8, 1.0], keyword=[0.0, 4.0, 6.0], next=[0.0, 1.0, 2.0], last=[0.0, 0.0, 9.0]),
        course([0.5, 0.7, 0.75], keyword=[0.0, 3.0, 8.0], next=[9.0, 9.0, 3.0], last=[0.0, 0.0, 7.0]),
    )
    assert values["early"]["step"]["value"] == 15
    assert values["early"]["keyword"]["value"] == 6  # 4 of the first, 8 of the second
    assert values["early"]["keyword_over_next"]["value"] == 4  # 3 and 5
    assert values["late"]["last_over_keyword"]["value"] == 1  # 3 and -1
    assert values["late"]["step"] == {"value": 20, "low": 20, "high": 20, "n": 2}
    assert values["midway"]["step"]["value"] == 10
    assert values["moved"]["last"]["value"] == 8  # 0 to 9 and 0 to 7
    assert values["moved"]["last_over_keyword"]["value"] == 4.5  # -4 to 3 and -3 to -1


def test_the_lead_of_the_last_position_is_found_wherever_it_is():
    values = computed(KNOWN, KNOWN)
    assert values["lead"] == {"looks": 3, "ahead": 1, "first": 10, "final": 10, "step": 10} | {
        "most": {"value": 1, "low": 1, "high": 1, "n": 2}
    }
    apart = [course([0.5, 0.8], keyword=[0.0, 4.0], last=[0.0, 4.0 + lead]) for lead in (1, 9)]
    lead = computed(*apart, steps=10)["lead"]
    assert (lead["ahead"], lead["first"], lead["step"]) == (0, None, 10)


def test_networks_that_never_learn_have_no_early_checkpoint_and_those_not_known_yet_are_left_out():
    values = computed(course([0.5, 0.5, 0.6]))
    assert (values["early"]["keyword"]["n"], values["late"]["accuracy"]["value"]) == (0, 0.6)
    values = computed(None, KNOWN, KNOWN)
    assert values["late"]["keyword"] == {"value": 6, "low": 6, "high": 6, "n": 2}
    assert (values["lead"]["ahead"], values["moved"]["last"]["n"]) == (1, 2)


# The procedure on tiny networks.

TINY = Settings(words=6, length=6, embedding_width=4, width=3, batch_size=8, steps=5, every=2, held_out=40)


def test_a_network_that_knows_its_own_word_alone_has_a_local_probe(tmp_path, monkeypatch):
    """Its states are the word itself: γ is the keyword's at its place, and zero elsewhere."""

    def states(self, embedded, mask):
        return torch.cat([embedded[..., :1]] * (2 * self.config.width), dim=-1)

    def initialise(network, generator):
        for parameter in network.parameters():
            parameter.zero_()
        network.embedding.weight[0, 0] = 1
        network.readout.weight.fill_(1)

    monkeypatch.setattr(AttentiveClassifier, "_states", states)
    monkeypatch.setattr(classifiers, "draw_parameters", torch.no_grad()(initialise))
    found = record(TINY, tmp_path)
    assert found["keyword"][0] == 2 * TINY.width
    assert found["mean"][0] == pytest.approx(2 * TINY.width / TINY.length)
    assert found["next"][0] == found["last"][0] == found["first"][0] == 0


def test_snapshots_are_close_together_first_and_then_far_apart():
    settings = Settings(every=10, until=30, later=50, steps=200)
    assert checkpoints(settings) == (0, 10, 20, 30, 80, 130, 180, 200)
    assert checkpoints(Settings(every=10, steps=25, until=300)) == (0, 10, 20, 25)  # short of the change


def test_half_have_the_keyword_once_and_places_and_words_are_uniform():
    batch = keyword_batch(20_000, 5, 4, torch.Generator().manual_seed(0))
    assert torch.equal((batch.tokens == KEYWORD).sum(1), batch.labels)
    assert batch.labels.sum() == 10_000
    assert (batch.tokens[torch.arange(10_000), batch.place[:10_000]] == KEYWORD).all()
    assert batch.mask.all()
    places = torch.bincount(batch.place[:10_000], minlength=5) / 10_000
    assert places.tolist() == pytest.approx([0.2] * 5, abs=0.02)
    words = torch.bincount(batch.tokens[10_000:].flatten(), minlength=4) / 50_000
    assert words.tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3], abs=0.01)
