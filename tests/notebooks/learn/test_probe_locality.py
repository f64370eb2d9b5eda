"""Locality of the probe: the run of a network that learns to see a keyword."""

import pytest
import torch

from attnlib.models import classifiers
from attnlib.models.classifiers import AttentiveClassifier
from notebooks.learn.probe_locality.trainings.keyword import (
    KEYWORD,
    Settings,
    checkpoints,
    keyword_batch,
    record,
)

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
