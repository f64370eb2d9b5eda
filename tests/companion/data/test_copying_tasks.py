"""Copying as a task: what is copied, that nothing is in both parts, and what cannot be drawn."""

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.training.corpus import collate
from attnlib.training.vocabulary import EOS, MARKS
from companion.data import registry

WORDS = {"copying_sample": 9, "copying_permutation": 6}
SMALL = {"length": 6, "n_train": 150, "n_held_out": 100}


@pytest.fixture(params=WORDS)
def task(request):
    return registry.load(request.param, **SMALL)


def test_targets_are_sources_without_repeated_words(task):
    assert len(task.source_vocabulary) == len(task.target_vocabulary) == WORDS[task.name] + len(MARKS)
    for corpus, size in ((task.train, 150), (task.held_out, 100)):
        assert len(corpus) == size
        for i in range(size):
            words = corpus.source(i).tolist()
            assert words == corpus.target(i).tolist()
            assert len(set(words)) == 6


def test_no_sentence_is_in_both_parts(task):
    parts = ({part.source(i).tobytes() for i in range(len(part))} for part in (task.train, task.held_out))
    assert not set.intersection(*parts)


def test_gold_links_are_the_identity_and_end_marks_are_added(task):
    assert task.gold == (frozenset((i, i) for i in range(6)),) * 100
    batch = collate(task.held_out, [0])
    assert batch.source[0, -1] == EOS
    assert torch.equal(batch.source, batch.target_output)


def test_every_word_of_a_sample_comes_and_every_sentence_lacks_some():
    task = registry.load("copying_sample", **SMALL)
    seen = {int(word) for i in range(150) for word in task.train.source(i)}
    assert seen == set(range(4, 4 + 9))


def test_equal_seeds_give_equal_sentences_and_others_others():
    first, again, other = (registry.load("copying_sample", **SMALL, seed=seed).train for seed in (0, 0, 1))
    assert first.source_ids.tolist() == again.source_ids.tolist()
    assert first.source_ids.tolist() != other.source_ids.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 2}, "length ≥ 3"),
        ({"length": 4, "n_held_out": 7}, "4 words make 24 sentences of 4"),
        ({"n_train": 0}, "n_train=0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, message):
    with pytest.raises(BadInput, match=message):
        registry.load("copying_permutation", **options)
