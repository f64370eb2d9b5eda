"""What ties add to agreement: sums worked by hand, numbers of pairs, and what the page says of them."""

from types import SimpleNamespace

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.probes.agreement import halves
from attnlib.training.vocabulary import EOS
from companion.runs.procedure import Recording
from notebooks.learn.agreement.experiment import ties_courses, ties_read
from notebooks.shared.agreement import classifier_runs, gathered, measure_ties, translator_runs
from tests.notebooks.given import Given

SELECTING = set(halves(4)[0].tolist())


def recorded(seed=0, *, uniform=False, samples=4):
    """A translator looked at twice on sentences of two words whose translation is one.

    Free, it attends to the first word at its better second look, and its β is larger there. At uniform
    attention β is larger at the second word at the first snapshot; at the second look it is tied in the
    samples that select, and larger at the first word in the others.
    """
    ones = torch.ones(samples, 1, dtype=torch.bool)
    first, second, tied = [0.0, -1.0], [-1.0, 0.0], [0.0, 0.0]
    looks = [[second] * samples, [tied if i in SELECTING else first for i in range(samples)]]
    free = [[second] * samples, [first] * samples]
    tensors = {
        "steps": torch.tensor([0, 10]),
        "validation.source_mask": ones.expand(samples, 2),
        "validation.target_mask": ones,
        "validation.target_output": torch.tensor([[EOS if i in SELECTING else 9] for i in range(samples)]),
        "validation.right": torch.tensor([[0] * samples, [1] * samples]),
        "validation.log_probe": torch.tensor(looks if uniform else free).flatten(1),
        "validation.attention": torch.tensor(free).flatten(1),
    }
    return Recording(SimpleNamespace(seed=seed, setting=f"seed {seed}"), tensors, {})


def test_ties_by_hand():
    found = measure_ties(recorded(), recorded(uniform=True), sides="attention")
    assert found["steps"] == [0, 10]
    assert found["tied"] == found["tied_ends"] == [0, 50]
    assert found["chance"] == [50, 75]  # both words of a tie are at the top
    assert found["chance_broken"] == 50
    assert found["attention"]["counted"] == {
        "selecting": [[0, 2, 0], [2, 2, 0]], "reporting": [[0, 2, 0], [2, 2, 0]]
    }  # fmt: skip
    assert found["attention"]["broken"] == {
        "selecting": [[0, 2, 0], [1, 2, 0]], "reporting": [[0, 2, 0], [2, 2, 0]]
    }  # fmt: skip


def test_what_cannot_be_asked_is_refused():
    first, second = recorded(), recorded(uniform=True)
    for sides in ("", "weights"):
        with pytest.raises(BadInput, match="expected some of attention"):
            measure_ties(first, second, sides=sides)
    with pytest.raises(BadInput, match="other samples"):
        measure_ties(recorded(samples=6), second, sides="attention")
    first.tensors["validation.attention"] = torch.full((2, 8), torch.nan)
    with pytest.raises(BadInput, match="no attention at its best checkpoint"):
        measure_ties(first, second, sides="attention")


def test_every_pair_that_looks_up_a_translators_probe_is_asked_and_no_classifier():
    asked = translator_runs(2, {"dataset": "known_lexicon"}).ties()
    assert [dict(measurement.settings)["sides"] for measurement in asked] == ["attention saliency"] * 2 + [
        "probe"
    ] * 2 + ["attention"] * 2
    assert all(measurement.spec.seed != measurement.beside[0].seed for measurement in asked)
    assert classifier_runs(2, 0, {"data": "known_polarity"}, 8).ties() == ()


@pytest.fixture
def asked():
    """Saliency is where attention is, and a bag of words knows what β does."""

    def answer(spec, measure, *, beside, sides):
        (second,) = beside
        first = recorded(spec.seed)
        first.tensors["validation.saliency"] = first["validation.attention"]
        return measure(
            first, recorded(second.seed, uniform="attention" in dict(second.settings)), sides=sides
        )

    runs = translator_runs(3, {"dataset": "known_lexicon"})
    return runs, gathered(runs.ties(), Given(answer))


def test_the_numbers_of_a_set(asked):
    found = ties_read(*asked)
    for column in ("alpha_beta_uf", "delta_beta_uf", "beta_uf_beta_px"):
        assert found[column]["counted"]["largest"]["value"] == 100
        assert found[column]["broken"]["largest"]["value"] == 75
        assert found[column]["broken"]["falls"]["value"] == 0
        assert found[column]["broken"]["largest"]["n"] == 3
    assert found["alpha_beta"]["broken"]["largest"]["value"] == 100
    assert (found["tied"]["value"], found["tied"]["n"]) == (50, 3)
    assert found["ends"]["value"] == 100
    assert (found["chance"]["value"], found["chance_broken"]) == (75, 50)


def test_a_row_of_the_course(asked):
    rows = ties_courses(*asked)
    assert len(rows) == 4 * 6 * 2  # columns, ordered pairs, looks
    assert rows[1] == {
        "column": "alpha_beta_uf", "seed": 0, "second_seed": 1, "step": 10, "counted": 100, "broken": 75,
        "tied": 50,
    }  # fmt: skip


def test_a_fall_is_measured_between_best_and_last():
    """Right by half at the first snapshot and by none at the last: counted 50 less 0, in every pair."""
    runs = translator_runs(3, {"dataset": "known_lexicon"})
    looks = [[1, 2, 0], [0, 2, 0]]
    half = {"selecting": looks, "reporting": looks}
    answer = {"steps": [0, 10], "tied": [0, 0], "tied_ends": [0, 0], "chance": [50, 50], "chance_broken": 50}
    answer |= {side: {"counted": half, "broken": half} for side in ("attention", "saliency", "probe")}
    found = ties_read(runs, {(measurement.spec, *measurement.beside): answer for measurement in runs.ties()})
    assert found["alpha_beta_uf"]["broken"]["falls"]["value"] == 50
    assert found["ends"]["n"] == 0  # no word is tied
