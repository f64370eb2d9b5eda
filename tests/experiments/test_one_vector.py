"""Errors and what follows them: against a network that can be followed by hand, and on tiny networks."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.experiments.config import override
from attnlib.experiments.measures.error_growth import continued, damage, measure_error_growth
from attnlib.experiments.one_vector import PROFILES, Config, after_error, compute, early_over_late, models
from attnlib.recipes.sequence_course import judged_samples
from attnlib.tasks.corpus import Corpus, collate
from attnlib.tasks.vocabulary import BOS, EOS, PAD
from attnlib.training.store import Store

TINY = Config(seeds=2, digits=3, n_train=300, judged=60, width=8, steps=3, samples=20)


@dataclass(frozen=True)
class Said:
    last: torch.Tensor


class Counter:
    """Writes the word after the one it has read, 4 to 8 and the end mark, whatever the source is."""

    def begin(self, source, mask):
        return Said(source[:, 0])

    def write(self, words, state):
        following = torch.where(words == BOS, 4, torch.where(words >= 8, EOS, words + 1))
        return torch.nn.functional.one_hot(following, 9).float(), Said(words)


BATCH = collate(Corpus.from_ids([[4, 5], [4]], [[4, 5, 6, 7, 8], [4, 5, 6, 7, 8]]), [0, 1])


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    torch.set_num_threads(1)
    return Store(tmp_path_factory.mktemp("models"))


def test_it_goes_on_after_what_was_put_down():
    found = continued(Counter(), BATCH, torch.tensor([[4, 5], [4, 7]]), 4)
    assert found.tolist() == [[6, 7, 8, EOS], [8, EOS, PAD, PAD]]


def test_one_wrong_word_shifts_all_that_follow():
    """After the right word the counter makes no fault; after any other, every later word is wrong."""
    rows = damage(Counter(), BATCH, words=9, seed=0)
    assert [row["place"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["words_after"] for row in rows] == [5, 4, 3, 2, 1]
    assert {row["wrong_after_right"] for row in rows} == {0}
    # At the last place a wrong word leaves one more to come, the end mark, which is then not written.
    assert [row["wrong_after"] for row in rows] == [1, 1, 1, 1, 1]
    assert after_error(rows) == 1
    assert early_over_late(rows) == 5 - 1


def test_exchanged_words_are_never_the_right_one():
    rows = [row for seed in range(20) for row in damage(Counter(), BATCH, words=9, seed=seed)]
    assert min(row["wrong_after"] for row in rows) == 1


def test_accuracies_by_place_are_those_of_a_loop(store):
    recording = store.recording(models(TINY)[0])
    found = measure_error_growth(recording, samples=20)
    judged = judged_samples(recording.spec.resolved)
    targets = [[*judged.target(i).tolist(), EOS] for i in range(len(judged))]
    for place in range(3):
        own = [i for i, target in enumerate(targets) if len(target) > place]
        rows = [recording["written"][i].tolist() for i in own]
        hits = [
            len(row) > place and row[place] == targets[i][place] for i, row in zip(own, rows, strict=True)
        ]
        whole = [row[: place + 1] == targets[i][: place + 1] for i, row in zip(own, rows, strict=True)]
        forced = [bool(recording["right"][-1, i, place]) for i in own]
        assert found["free_running"][place] == pytest.approx(np.mean(hits))
        assert found["so_far"][place] == pytest.approx(np.mean(whole))
        assert found["teacher_forced"][place] == pytest.approx(np.mean(forced))


def test_a_perfect_copy_has_all_of_it_right(store):
    recording = store.recording(models(TINY)[0])
    judged = judged_samples(recording.spec.resolved)
    wanted = collate(judged, range(len(judged))).target_output.to(torch.int32)
    right = torch.ones_like(recording["right"])
    perfect = type(recording)(
        recording.spec, dict(recording.tensors) | {"written": wanted, "right": right}, {}
    )
    found = measure_error_growth(perfect, samples=5)
    assert found["exact_match"] == found["length_right"] == found["token_accuracy"] == 1
    assert found["bleu"] == pytest.approx(100)


def test_values_and_tables_have_every_kind(store):
    values, tables = compute(TINY, store)
    assert set(values["number_words"]) == {"cho", "sutskever"}
    assert values["number_words"]["cho"]["after_error"]["n"] == 2
    assert {row["way"] for row in tables["places"]} == {"teacher_forced", "free_running", "so_far"}
    assert {row["quantity"] for row in tables["damage"]} == {"share", "words"}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"network": "suskever"}, UnknownName, "did you mean 'sutskever'"),
        ({"task": "number_wrods"}, UnknownName, "did you mean 'number_words'"),
        ({"digits": 0}, BadInput, "digits is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        override(PROFILES["quick"], given)
