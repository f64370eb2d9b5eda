"""Locality of the probe: the run of a network that learns to see a keyword."""

from functools import partial

import pytest
import torch

from attnlib.models import classifiers
from attnlib.models.classifiers import AttentiveClassifier
from notebooks.learn.probe_locality.trainings.keyword import (
    KEYWORD,
    Settings,
    apart,
    checkpoints,
    keyword_batch,
    locality,
    record,
)
from tests.attnlib.refusals import assert_refused
from tests.notebooks.figure_builders import computed, tiny
from tests.notebooks.worked import assert_answer, store_of

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
    recording = record(TINY, tmp_path)
    assert recording["keyword"][0] == 2 * TINY.width
    assert recording["mean"][0] == pytest.approx(2 * TINY.width / TINY.length)
    assert recording["next"][0] == recording["last"][0] == recording["first"][0] == 0


def test_snapshots_are_close_together_at_first():
    settings = Settings(every=10, until=30, later=50, steps=200)
    assert checkpoints(settings) == (0, 10, 20, 30, 80, 130, 180, 200)
    assert checkpoints(Settings(every=10, steps=25, until=300)) == (0, 10, 20, 25)  # short of the change


def test_half_of_the_texts_have_the_keyword_once():
    batch = keyword_batch(20_000, 5, 4, torch.Generator().manual_seed(0))
    assert torch.equal((batch.tokens == KEYWORD).sum(1), batch.labels)
    assert batch.labels.sum() == 10_000
    assert (batch.tokens[torch.arange(10_000), batch.place[:10_000]] == KEYWORD).all()
    assert batch.mask.all()


def test_places_of_the_keyword_are_uniform():
    batch = keyword_batch(20_000, 5, 4, torch.Generator().manual_seed(0))
    places = torch.bincount(batch.place[:10_000], minlength=5) / 10_000
    assert places.tolist() == pytest.approx([0.2] * 5, abs=0.02)


def test_other_words_are_uniform():
    batch = keyword_batch(20_000, 5, 4, torch.Generator().manual_seed(0))
    words = torch.bincount(batch.tokens[10_000:].flatten(), minlength=4) / 50_000
    assert words.tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3], abs=0.01)


ZEROS = [0, 0, 0]
STILL = {
    "steps": [0, 10, 20],
    "accuracy": [0.5, 0.8, 1.0],
    "keyword": [0, 4, 6],
    "next": [0, 1, 2],
    "mean": ZEROS,
    "first": ZEROS,
    "last": [0, 0, 9],
    "loss": [0.5, 0.5, 0.5],
}
LED = {**STILL, "next": ZEROS, "last": [0, 5, 2]}
SHORT = {
    "steps": [0, 10],
    "accuracy": [0.5, 0.8],
    "keyword": [0, 4],
    "next": [0, 0],
    "mean": [0, 0],
    "first": [0, 0],
    "last": [0, 5],
    "loss": [0.5, 0.5],
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Early is the first checkpoint that is right for three in four: γ of the keyword is 4 and 8 there,
        # over that of the next word 3 and 5; late, the last over the keyword 3 and −1; from midway the last
        # moves from 0 to 9 and 0 to 7, and over the keyword from −4 to 3 and −3 to −1.
        pytest.param(
            (
                tiny("probe_locality", seeds=2, steps=20),
                store_of(
                    [
                        {"of": {"seed": 0}, "is": STILL},
                        {
                            "of": {"seed": 1},
                            "is": {
                                **STILL,
                                "accuracy": [0.5, 0.7, 0.75],
                                "keyword": [0, 3, 8],
                                "next": [9, 9, 3],
                                "last": [0, 0, 7],
                            },
                        },
                    ]
                ),
            ),
            {
                "values": {
                    "early": {"step.value": 15, "keyword.value": 6, "keyword_over_next.value": 4},
                    "midway": {"step.value": 10},
                    "late": {
                        "last_over_keyword.value": 1,
                        "step": {"value": 20, "low": 20, "high": 20, "n": 2},
                    },
                    "moved": {"last.value": 8, "last_over_keyword.value": 4.5},
                }
            },
            id="early_midway_late_and_moved",
        ),
        # The lead of the last position is found wherever it is.
        pytest.param(
            (tiny("probe_locality", seeds=2, steps=20), store_of([{"of": {}, "is": LED}])),
            {
                "values.lead": {
                    "looks": 3,
                    "ahead": 1,
                    "first": 10,
                    "final": 10,
                    "step": 10,
                    "most": {"value": 1, "low": 1, "high": 1, "n": 2},
                }
            },
            id="the_last_leads",
        ),
        pytest.param(
            (
                tiny("probe_locality", seeds=2, steps=10),
                store_of(
                    [{"of": {"seed": 0}, "is": SHORT}, {"of": {"seed": 1}, "is": {**SHORT, "last": [0, 13]}}]
                ),
            ),
            {"values.lead": {"ahead": 0, "first": None, "step": 10}},
            id="other_networks_lead_later",
        ),
        # Networks that never learn have no early checkpoint, and those that are not known yet are left out.
        pytest.param(
            (
                tiny("probe_locality", seeds=1, steps=20),
                store_of(
                    [
                        {
                            "of": {},
                            "is": {
                                **STILL,
                                "accuracy": [0.5, 0.5, 0.6],
                                "keyword": ZEROS,
                                "next": ZEROS,
                                "last": ZEROS,
                            },
                        }
                    ]
                ),
            ),
            {"values": {"early.keyword.n": 0, "late.accuracy.value": 0.6}},
            id="never_learned",
        ),
        pytest.param(
            (
                tiny("probe_locality", seeds=3, steps=20),
                store_of([{"of": {"seed": 1}, "is": LED}, {"of": {"seed": 2}, "is": LED}]),
            ),
            {
                "values": {
                    "late.keyword": {"value": 6, "low": 6, "high": 6, "n": 2},
                    "lead.ahead": 1,
                    "moved.last.n": 2,
                }
            },
            id="one_not_measured_yet",
        ),
    ],
)
def test_tables_computed_by_hand(given, expected):
    assert_answer(computed(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            (torch.tensor([[0.0, 1, 2, 3, 4], [10.0, 11, 12, 13, 14]]), torch.tensor([1, 2])),
            {"keyword": [1, 12], "next": [2, 13], "mean": [2, 12], "last": [4, 14], "first": [0, 10]},
            id="two_texts",
        )
    ],
)
def test_locality_by_hand(given, expected):
    assert_answer(locality(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Keywords at the ends are left out.
        pytest.param(
            (torch.tensor([0, 1, 2, 3, 4, 5]), 6),
            [False, True, True, True, False, False],
            id="keywords_at_the_ends",
        )
    ],
)
def test_apart_by_hand(given, expected):
    assert_answer(apart(*given), expected)


@pytest.mark.parametrize(
    "given",
    [pytest.param((3, 5, 5, None), id="odd number of texts"), pytest.param((0, 5, 5, None), id="no text")],
)
def test_a_batch_of_odd_size_is_refused(given):
    assert_refused(partial(keyword_batch, *given), "even number")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param((4, 0, 5, None), id="no place"),
        pytest.param((4, 5, 1, None), id="no word but the keyword"),
    ],
)
def test_a_batch_without_places_for_two_words_is_refused(given):
    assert_refused(partial(keyword_batch, *given), "at least two")


SIX = torch.tensor([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    "given",
    [
        pytest.param((SIX, torch.tensor([0])), id="first place"),
        pytest.param((SIX, torch.tensor([4])), id="place in the middle"),
        pytest.param((SIX, torch.tensor([5])), id="last place"),
    ],
)
def test_locality_of_equal_values_is_refused(given):
    assert_refused(partial(locality, *given), "must differ")
