"""Errors and what follows them: against a network that can be followed by hand, and on tiny networks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attnlib.training.corpus import Corpus, Task, collate
from attnlib.training.vocabulary import BOS, EOS, PAD, Vocabulary
from notebooks.primer.one_vector import experiment
from notebooks.shared import bleu, sequence_course
from tests.notebooks.figure_builders import recording_of, written_rightly


class Counter:
    """Writes the word after the one it has read, 4 to 8 and the end mark, whatever the source is."""

    def begin(self, source, mask):
        return None

    def write(self, words, state):
        following = torch.where(words == BOS, 4, torch.where(words >= 8, EOS, words + 1))
        return torch.nn.functional.one_hot(following, 9).float(), None


def row(place, wrong, right, words):
    return {"place": place, "words_after": words, "wrong_after": wrong, "wrong_after_right": right}


def test_one_wrong_word_shifts_all_that_follow():
    """After the right word the counter makes no fault; after any other, every later word is wrong."""
    batch = collate(Corpus.from_ids([[4, 5], [4]], [[4, 5, 6, 7, 8]] * 2), [0, 1])
    rows = experiment.damage(Counter(), batch, words=9, seed=0)
    # At the last place a wrong word leaves one more to come, the end mark, which is then not written.
    assert rows == [row(place, 1, 0, 6 - place) | {"sentences": 2} for place in range(1, 6)]
    assert experiment.after_error(rows) == 1
    assert (
        experiment.early_over_late(rows) == 0
    )  # five words and one word are lost: the whole of what follows


def test_shares_are_over_the_right_word_and_weighted_by_what_follows():
    rows = [row(1, 1.0, 0.25, 4), row(2, 0.5, 0.0, 2), row(3, 0.5, 0.25, 1)]
    assert experiment.after_error(rows) == pytest.approx((4 * 0.75 + 2 * 0.5 + 1 * 0.25) / 7)
    assert experiment.early_over_late(rows) == pytest.approx(0.75 - 0.25)
    assert experiment.early_over_late(rows[::-1]) == pytest.approx(0.25 - 0.75)


def test_the_length_is_guessed_from_the_sources_length_alone():
    train = Corpus.from_ids([[4]] * 3 + [[4, 5]] * 2, [[4], [4, 5], [4, 5], [4, 5, 6], [4, 5, 6]])
    judged = Corpus.from_ids([[5], [5, 4], [4, 4, 4]], [[4]] * 3)
    assert experiment.guessed_lengths(train, judged).tolist() == [2, 3, 2]  # nothing is known of three words


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize(("put", "said"), [(3, "UNK"), (10, "g"), (11, "h")])
def test_bleu_is_that_against_the_text_and_a_missing_word_is_never_right(monkeypatch, missing, put, said):
    """Where the reference has ``<unk>``, as what is written may: against the text this is a fault."""
    known = Vocabulary.of("abcdefgh")
    corpus = Corpus.from_ids([[4], [4]], [[4, 5, 6, 3 if missing else 10, 7, 8, 9], [4, 5, 6, 7]])
    task = Task("made", known, known, corpus, corpus)
    monkeypatch.setattr(experiment, "load_task", lambda _: task)
    monkeypatch.setattr(experiment, "judged_samples", lambda _: corpus)
    rows = [[4, 5, 6, put, 7, 8, 9, EOS], [4, 5, 6, 7, EOS, PAD, PAD, PAD]]
    texts = [f"a b c {said} d e f", "a b c d"]
    expected, _ = bleu.corpus_bleu(texts, [f"a b c {'zebra' if missing else 'g'} d e f", "a b c d"])
    assert experiment.written_bleu(recording_of({"written": torch.tensor(rows)})) == pytest.approx(expected)
    assert (expected == pytest.approx(100)) is (said == "g" and not missing)


def written_as(recording, written, **tensors):
    """The recording of a network that had written this."""
    return replace(recording, tensors=dict(recording.tensors) | {"written": written} | tensors)


@pytest.mark.parametrize("spoilt", [False, True])
def test_accuracies_by_place_are_those_of_a_loop_over_sentences_of_one_length(recording, spoilt):
    """Of the network, and of one that is right but for the first word of the shorter sentences."""
    judged = sequence_course.judged_samples(recording.spec.resolved)
    if spoilt:
        wanted = written_rightly(recording)
        wanted[torch.from_numpy(judged.target_lengths < judged.target_lengths.max()), 0] = EOS
        recording = written_as(recording, wanted)
    found = experiment.measure_error_growth(recording, samples=20)
    targets = [[*judged.target(i).tolist(), EOS] for i in range(len(judged))]
    own = [i for i, target in enumerate(targets) if len(target) == found["length"] + 1]
    assert found["of_length"] == len(own) < len(judged)
    assert len(found["so_far"]) == found["length"] + 1
    pairs = [(recording["written"][i].tolist(), targets[i]) for i in own]
    for place in range(found["length"] + 1):
        hits = [row[place : place + 1] == [target[place]] for row, target in pairs]
        whole = [row[: place + 1] == target[: place + 1] for row, target in pairs]
        forced = recording["right"][-1, own, place].double()
        for name, right in (("free_running", hits), ("so_far", whole), ("teacher_forced", forced)):
            assert found[name][place] == pytest.approx(float(np.mean(np.asarray(right))))


def test_a_perfect_copy_has_all_of_it_right(recording):
    right = torch.ones_like(recording["right"])
    perfect = written_as(recording, written_rightly(recording), right=right)
    found = experiment.measure_error_growth(perfect, samples=5)
    assert {found[n] for n in ("exact_match", "length_right", "token_accuracy", "own_accuracy")} == {1}
    assert found["beam"]["exact_match"] < 1  # of the network as it is
    assert found["bleu"] == pytest.approx(100)
