"""Where the probe is read, and the identity that makes a prediction of it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlib.errors import BadInput
from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig
from notebooks.shared.classification import log_polarity
from notebooks.shared.locality import apart, locality, probability_of_right_label


def test_places_by_hand():
    log_odds = torch.tensor([[0.0, 1, 2, 3, 4], [10.0, 11, 12, 13, 14]])
    found = locality(log_odds, torch.tensor([1, 2]))
    assert found.keyword.tolist() == [1, 12]
    assert found.next.tolist() == [2, 13]
    assert found.mean.tolist() == [2, 12]
    assert found.last.tolist() == [4, 14]
    assert found.first.tolist() == [0, 10]


def test_keywords_at_the_ends_are_left_out():
    place = torch.arange(6)
    assert apart(place, 6).tolist() == [False, True, True, True, False, False]
    for end in (0, 4, 5):
        with pytest.raises(BadInput, match="must differ"):
            locality(torch.zeros(1, 6), torch.tensor([end]))


@pytest.mark.parametrize("attention", ["learned", "uniform"])
def test_equation_12_is_an_identity(attention):
    """The classifier's own probability of the right label, from its attention and its probe alone."""
    generator = torch.Generator().manual_seed(0)
    model = AttentiveClassifier(ClassifierConfig(20, 8, 6, attention=attention), generator).double()
    tokens = torch.randint(20, (7, 9), generator=generator)
    mask = torch.arange(9) < torch.randint(1, 10, (7, 1), generator=generator)
    labels = torch.tensor([1, 0, 1, 1, 0, 0, 1])
    with torch.no_grad():
        trace = model(tokens, mask)
    probe = torch.sigmoid(log_polarity(trace.log_odds, labels))
    right = torch.sigmoid(trace.logit * (2 * labels - 1))
    assert torch.allclose(probability_of_right_label(trace.attention, probe), right, atol=1e-12)


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 0.99)), min_size=1, max_size=8))
def test_the_prediction_lies_between_the_probes_and_the_best_attention_is_on_the_largest(rows):
    weights, probe = torch.tensor(rows, dtype=torch.float64).unbind(1)
    attention = weights / weights.sum()
    found = probability_of_right_label(attention, probe)
    assert probe.min() - 1e-9 <= found <= probe.max() + 1e-9
    best = torch.zeros_like(attention)
    best[probe.argmax()] = 1
    assert probability_of_right_label(best, probe).item() == pytest.approx(probe.max().item())


def test_a_certain_probe_counts_where_there_is_attention():
    attention, probe = torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.25])
    assert probability_of_right_label(attention, probe).item() == pytest.approx(0.25)
    with pytest.raises(BadInput, match="log odds are infinite"):
        probability_of_right_label(attention.flip(0), probe)
