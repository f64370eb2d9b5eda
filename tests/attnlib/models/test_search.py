"""Greedy and beam search against exhaustive search on a tiny vocabulary."""

from dataclasses import dataclass
from functools import reduce
from itertools import product

import pytest
import torch
from torch import Tensor

from attnlib.models.search import beam_search, greedy_search
from attnlib.training.vocabulary import BOS, EOS, PAD
from tests.attnlib.models.model_builders import generator

WORDS, STEPS = 6, 4  # pad, bos, eos, unk and two words


class Table:
    """A network whose next word depends on the source and on all words before, drawn at random.

    What has been read is a number: each beginning has its own.
    """

    def __init__(self, seed: int):
        self.seed = seed

    def begin(self, source, mask):
        return Read(source[:, 0])

    def write(self, words, state):
        code = state.code * WORDS + words
        return torch.stack([self.logits(entry) for entry in code.tolist()]), Read(code)

    def logits(self, code: int) -> Tensor:
        return 2 * torch.randn(WORDS, generator=generator(1_000 * self.seed + code))

    def log_probabilities(self, source: int, words: tuple[int, ...]) -> Tensor:
        """Of the next word, neither padding nor the mark of a beginning."""
        code = reduce(lambda code, word: code * WORDS + word, (BOS, *words), source)
        logits = self.logits(code)
        logits[[PAD, BOS]] = -torch.inf
        return logits.log_softmax(0)

    def log_probability(self, source: int, words: tuple[int, ...]) -> float:
        return sum(float(self.log_probabilities(source, words[:at])[word]) for at, word in enumerate(words))


@dataclass(frozen=True)
class Read:
    code: Tensor


def targets():
    """All that may be written: ended within the steps, or cut off."""
    others = [word for word in range(WORDS) if word not in (PAD, BOS, EOS)]
    for length in range(STEPS):
        yield from ((*words, EOS) for words in product(others, repeat=length))
    yield from product(others, repeat=STEPS)


def plain(row: Tensor) -> tuple[int, ...]:
    return tuple(word for word in row.tolist() if word != PAD)


SOURCE = torch.tensor([[4], [5], [6]])
MASK = torch.ones_like(SOURCE, dtype=torch.bool)
ALL = len(list(targets()))


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_that_holds_everything_is_exhaustive_search(seed, penalty):
    network = Table(seed)
    found = beam_search(network, SOURCE, MASK, STEPS, beams=ALL, length_penalty=penalty)
    for row, source in enumerate(SOURCE[:, 0].tolist()):
        known = {words: network.log_probability(source, words) for words in targets()}
        ranked = sorted(known, key=lambda words: -known[words] / len(words) ** penalty)
        assert [plain(words) for words in found.words[row]] == ranked
        expected = torch.tensor([known[words] for words in ranked])
        torch.testing.assert_close(found.log_probability[row], expected)
        assert expected.exp().sum().item() == pytest.approx(1)  # they are all that can be written


@pytest.mark.parametrize("seed", range(5))
def test_greedy_takes_the_likeliest_word_at_every_step(seed):
    network = Table(seed)
    found = greedy_search(network, SOURCE, MASK, STEPS)
    for row, source in enumerate(SOURCE[:, 0].tolist()):
        words = ()
        while len(words) < STEPS and EOS not in words:
            words += (int(network.log_probabilities(source, words).argmax()),)
        assert plain(found.words[row, 0]) == words
        assert float(found.log_probability[row, 0]) == pytest.approx(network.log_probability(source, words))


def test_fewer_targets_than_beams_leave_the_rest_empty():
    found = beam_search(Table(0), SOURCE, MASK, 1, beams=10)
    assert int(found.log_probability.isneginf().sum(1)[0]) == 10 - (WORDS - 2)
    assert (found.words[found.log_probability.isneginf()] == PAD).all()
