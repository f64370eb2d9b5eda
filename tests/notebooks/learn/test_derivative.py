"""The first derivative of the proxy: by hand, by a gradient step, and as the width grows."""

from itertools import permutations

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput
from attnlib.training.corpus import Corpus
from notebooks.learn.early_dynamics.count_tables import cooccurrence
from notebooks.learn.early_dynamics.derivative import (
    Bags,
    compare,
    derivative_at_random,
    derivative_in_theory,
    gradients,
    random_proxy,
)

SOURCE_WORDS, TARGET_WORDS = 10, 14
WIDTHS = tuple(2**power for power in range(6, 13, 2))


def random_bags() -> tuple[Corpus, Bags]:
    draw = np.random.default_rng(0)
    sources = [draw.integers(4, SOURCE_WORDS, size=draw.integers(1, 6)) for _ in range(40)]
    targets = [[4 + word % 3, *draw.integers(4, TARGET_WORDS, size=2)] for word in map(sum, sources)]
    corpus = Corpus.from_ids(sources, targets)
    return corpus, Bags.of(corpus, SOURCE_WORDS, TARGET_WORDS)


@pytest.fixture(scope="module")
def bags() -> Bags:
    return random_bags()[1]


def test_bags_have_the_count_table():
    corpus, bags = random_bags()
    counts = cooccurrence(corpus, SOURCE_WORDS, TARGET_WORDS)
    assert torch.allclose(bags.counts, torch.from_numpy(counts))
    assert bags.source.sum(1) == pytest.approx(1)
    assert bags.target.sum() == len(corpus.target_ids)


def test_the_theory_by_hand():
    """One pair, one word each: C is 1 at (4, 4). Logits: 2 (1 − 1/5); probabilities: a fifth of it."""
    theory = derivative_in_theory(Bags.of(Corpus.from_ids([[4]], [[4]]), 5, 5))
    assert theory.logits[4].tolist() == pytest.approx([-0.4, -0.4, -0.4, -0.4, 1.6])
    assert theory.probabilities[4].tolist() == pytest.approx([-0.08, -0.08, -0.08, -0.08, 0.32])
    assert theory.logits[:4].abs().max() == 0  # words that stand nowhere


def test_the_measured_derivative_is_the_slope_of_one_gradient_step(bags):
    output, embeddings = random_proxy(bags, 32, seed=1)
    slopes = gradients(bags, output, embeddings)
    rate = 1e-7
    before = embeddings @ output.T
    after = (embeddings - rate * slopes[1]) @ (output - rate * slopes[0]).T
    measured = derivative_at_random(bags, 32, seed=1)
    assert torch.allclose(measured.logits, (after - before) / rate, rtol=1e-4, atol=1e-4)
    stepped = (after.softmax(-1) - before.softmax(-1)) / rate
    assert torch.allclose(measured.probabilities, stepped, rtol=1e-4, atol=1e-5)
    assert measured.probabilities.sum(-1) == pytest.approx(0, abs=1e-10)


def test_the_gradients_are_those_of_the_loss_word_by_word():
    corpus, bags = random_bags()
    output, embeddings = (side.requires_grad_() for side in random_proxy(bags, 8, seed=0))
    loss = torch.zeros((), dtype=torch.float64)
    for i in range(len(corpus)):
        mean = embeddings[corpus.source(i).tolist()].mean(0)
        for word in corpus.target(i).tolist():
            loss = loss - (output @ mean).log_softmax(0)[word]
    expected = torch.autograd.grad(loss, (output, embeddings))
    for ours, theirs in zip(gradients(bags, output, embeddings), expected, strict=True):
        assert torch.allclose(ours, theirs)


def test_it_converges_with_the_width_at_the_rate_of_its_square_root(bags):
    theory = derivative_in_theory(bags)
    errors = []
    for width in WIDTHS:
        found = [compare(derivative_at_random(bags, width, s).logits, theory.logits) for s in range(3)]
        errors.append(np.mean([comparison.error for comparison in found]))
    assert (np.diff(errors) < 0).all()
    rate = np.polyfit(np.log(WIDTHS), np.log(errors), 1)[0]
    assert rate == pytest.approx(-0.5, abs=0.1)
    assert errors[-1] < 0.1


def test_the_probabilities_lack_a_factor_in_print(bags):
    """Measured over 2 (C − mean C), as equation 15 has it, the slope is 1/|O|; with the factor it is one."""
    theory = derivative_in_theory(bags)
    measured = derivative_at_random(bags, 4096, seed=0).probabilities
    printed = compare(measured, theory.logits)
    assert printed.slope == pytest.approx(1 / TARGET_WORDS, rel=0.03)
    assert printed.error > 0.9
    derived = compare(measured, theory.probabilities)
    assert derived.slope == pytest.approx(1, abs=0.03)
    assert derived.error < 0.1
    assert derived.correlation == pytest.approx(printed.correlation)  # the order of words is the same
    assert derived.correlation > 0.995


def test_permutations_start_with_nothing_to_learn():
    sentences = [list(order) for order in permutations([4, 5, 6])]
    counts = Bags.of(Corpus.from_ids(sentences, sentences), 7, 7)
    only = Bags(counts.source[:, 4:], counts.target[:, 4:])
    assert derivative_in_theory(only).logits.abs().max() < 1e-12
    with pytest.raises(BadInput, match="zero everywhere"):
        compare(torch.ones(2, 2), torch.zeros(2, 2))


def test_what_cannot_be_measured_is_said(bags):
    with pytest.raises(BadInput, match="width is 0"):
        derivative_at_random(bags, 0, seed=0)
    with pytest.raises(BadInput, match="no mean embedding"):
        Bags.of(Corpus.from_ids([[]], [[4]]), 5, 5)
    with pytest.raises(BadInput, match="id 7"):
        Bags.of(Corpus.from_ids([[7]], [[4]]), 5, 5)
