"""Errors and what follows them: against a network that can be followed by hand, and on tiny networks."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.training.corpus import Corpus, Task, collate
from attnlib.training.vocabulary import BOS, EOS, PAD, Vocabulary
from companion.data.bleu import corpus_bleu
from companion.results.config import override
from companion.results.result import Result
from companion.runs.sequence_course import judged_samples
from companion.runs.store import Store
from notebooks.primer.one_vector import measure, sentences
from notebooks.primer.one_vector.experiment import (
    PROFILES,
    Config,
    after_error,
    compute,
    early_over_late,
    models,
)
from notebooks.primer.one_vector.measure import (
    continued,
    damage,
    fullest_length,
    guessed_lengths,
    measure_error_growth,
    written_bleu,
)

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
    assert early_over_late(rows) == 0  # five words and one word are lost: the whole of what follows


def row(place, wrong, right, words):
    return {
        "place": place,
        "sentences": 9,
        "words_after": words,
        "wrong_after": wrong,
        "wrong_after_right": right,
    }


def test_shares_are_over_the_right_word_and_weighted_by_what_follows():
    rows = [row(1, 1.0, 0.25, 4), row(2, 0.5, 0.0, 2), row(3, 0.5, 0.25, 1)]
    assert after_error(rows) == pytest.approx((4 * 0.75 + 2 * 0.5 + 1 * 0.25) / 7)
    assert early_over_late(rows) == pytest.approx(0.75 - 0.25)
    assert early_over_late(rows[::-1]) == pytest.approx(0.25 - 0.75)


def test_the_length_is_guessed_from_the_sources_length_alone():
    train = Corpus.from_ids([[4]] * 3 + [[4, 5]] * 2, [[4], [4, 5], [4, 5], [4, 5, 6], [4, 5, 6]])
    judged = Corpus.from_ids([[5], [5, 4], [4, 4, 4]], [[4]] * 3)
    assert guessed_lengths(train, judged).tolist() == [2, 3, 2]  # of three words nothing is known


def test_the_length_with_most_words_is_looked_at_place_by_place():
    assert fullest_length(np.array([1, 1, 1, 1, 2, 2, 3])) == 1
    assert fullest_length(np.array([1, 1, 1, 1, 2, 2, 2, 3])) == 2


class Beside:
    """A recording of which BLEU asks."""

    spec = type("Spec", (), {"resolved": None})

    def __init__(self, written):
        self.written = torch.tensor(written, dtype=torch.int32)

    def __getitem__(self, name):
        return {"written": self.written}[name]


def test_bleu_is_that_against_the_text_and_a_missing_word_is_never_right(monkeypatch):
    """The reference has ``<unk>``, and so has what is written: against the text this is a fault."""
    known = Vocabulary.of("abcdefgh")
    for ids, words in (
        ([4, 5, 6, 3, 7, 8, 9], "a b c zebra d e f"),
        ([4, 5, 6, 10, 7, 8, 9], "a b c g d e f"),
    ):
        corpus = Corpus.from_ids([[4], [4]], [ids, [4, 5, 6, 7]])
        task = Task("made", known, known, corpus, corpus)
        monkeypatch.setattr(measure, "load_task", lambda _, own=task: own)
        monkeypatch.setattr(measure, "judged_samples", lambda _, own=corpus: own)
        for put, said in ((3, "UNK"), (10, "g"), (11, "h")):
            rows = [[*ids[:3], put, *ids[4:], EOS], [4, 5, 6, 7, EOS, PAD, PAD, PAD]]
            texts = [f"a b c {said} d e f", "a b c d"]
            expected, _ = corpus_bleu(texts, [words, "a b c d"])
            assert written_bleu(Beside(rows)) == pytest.approx(expected)
            assert (expected == pytest.approx(100)) is (said in words)


def test_accuracies_by_place_are_those_of_a_loop_over_sentences_of_one_length(store):
    recording = store.recording(models(TINY)[0])
    found = measure_error_growth(recording, samples=20)
    judged = judged_samples(recording.spec.resolved)
    targets = [[*judged.target(i).tolist(), EOS] for i in range(len(judged))]
    own = [i for i, target in enumerate(targets) if len(target) == found["length"] + 1]
    assert found["of_length"] == len(own) < len(judged)
    assert len(found["so_far"]) == found["length"] + 1
    for place in range(found["length"] + 1):
        rows = [recording["written"][i].tolist() for i in own]
        hits = [
            len(row) > place and row[place] == targets[i][place] for i, row in zip(own, rows, strict=True)
        ]
        whole = [row[: place + 1] == targets[i][: place + 1] for i, row in zip(own, rows, strict=True)]
        forced = [bool(recording["right"][-1, i, place]) for i in own]
        assert found["free_running"][place] == pytest.approx(np.mean(hits))
        assert found["so_far"][place] == pytest.approx(np.mean(whole))
        assert found["teacher_forced"][place] == pytest.approx(np.mean(forced))


def test_a_share_without_a_fault_so_far_never_rises(store):
    """Some sentences of either length are wrong from the start, and more so the short ones."""
    recording = store.recording(models(TINY)[0])
    judged = judged_samples(recording.spec.resolved)
    wanted = collate(judged, range(len(judged))).target_output.to(torch.int32)
    short = torch.from_numpy(judged.target_lengths < judged.target_lengths.max())
    wanted[short, 0] = EOS
    spoilt = replace(recording, tensors=dict(recording.tensors) | {"written": wanted})
    found = measure_error_growth(spoilt, samples=5)["so_far"]
    assert found == sorted(found, reverse=True)


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
    assert found["own_accuracy"] == 1
    assert found["beam"]["exact_match"] < 1  # of the network as it is
    assert found["bleu"] == pytest.approx(100)


def test_values_and_tables_have_every_kind(store):
    values, tables = compute(TINY, store)
    assert set(values["number_words"]) == {"cho", "sutskever"}
    assert values["number_words"]["cho"]["after_error"]["n"] == 2
    assert {row["way"] for row in tables["places"]} == {"teacher_forced", "free_running", "so_far"}
    assert {row["quantity"] for row in tables["damage"]} == {"share", "words"}


class Told:
    """A store that answers from hand-made measurements, by seed."""

    def __init__(self, answers):
        self.answers = answers

    def kept(self, spec, measure, **settings):
        return self.answers[spec.resolved.seed]


def answer(seed):
    """A network that errs more from its own hand, after errors, and most after early ones."""
    return {
        "length": 3,
        "of_length": 40,
        "teacher_forced": [0.9] * 4,
        "free_running": [0.8] * 4,
        "so_far": [0.8, 0.7, 0.6, 0.5],
        "damage": [row(1, 1.0, 0.25, 3), row(2, 0.5, 0.25, 2), row(3, 0.5, 0.375, 1)],
        "token_accuracy": 0.9,
        "own_accuracy": 0.75 - 0.01 * seed,
        "exact_match": 0.5,
        "length_right": 0.625,
        "length_guessed": 0.75,
        "bleu": 40.0,
        "beam": {"exact_match": 0.75, "bleu": 30.0},
        "parameters": 7,
    }


def test_signs_of_what_the_claims_read():
    values, tables = compute(Config(seeds=2), Told([answer(0), answer(1)]))
    found = values["number_words"]["cho"]
    assert found["after_error"]["value"] == pytest.approx((3 * 0.75 + 2 * 0.25 + 0.125) / 6)
    assert found["early_over_late"]["value"] == pytest.approx(0.75 - 0.125)
    assert found["length_over_guess"]["value"] == pytest.approx(0.625 - 0.75)
    assert found["own_hand"]["value"] == pytest.approx(0.9 - (0.75 + 0.74) / 2)
    assert found["beam_gain"]["exact_match"]["value"] == pytest.approx(0.25)
    assert found["beam_gain"]["bleu"]["value"] == pytest.approx(-10)
    costs = {(r["quantity"], r["place"]): r["value"] for r in tables["damage"] if r["network"] == "cho"}
    assert costs["share", 1] == pytest.approx(0.75)
    assert costs["words", 1] == pytest.approx(0.75 * 3)


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


# Sentences of the chapter on one vector: every difference says its own sign and whether it is one.

NONE = {"value": 0.0, "low": 0.0, "high": 0.0}
GAIN, LOSS = {"value": 0.2, "low": 0.1, "high": 0.3}, {"value": -0.2, "low": -0.3, "high": -0.1}
WIDE = {"value": 0.1, "low": -0.1, "high": 0.3}


def result_of(length=NONE, exact=NONE, bleu=NONE, early=NONE) -> Result:
    found = {
        "length_guessed": 0.5, "length_over_guess": length, "after_error": GAIN, "early_over_late": early,
        "beam_gain": {"exact_match": exact, "bleu": bleu},
    }  # fmt: skip
    rows = [
        {"task": "multi30k_en_fr", "network": "cho", "quantity": "share", "place": place}
        | {"value": value, "low": value, "high": value}
        for place, value in ((1, 0.25), (2, 0.75), (3, 0.5))
    ]
    values = {"multi30k_en_fr": {"cho": found}}
    return Result("one_vector", "quick", {"task": ["multi30k_en_fr"]}, values, {"damage": rows}, {}, {})


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (GAIN, "0.20 [0.10, 0.30] more often."),
        (LOSS, "0.20 [0.10, 0.30] less often."),
        (WIDE, "as often, as far as can be told (a difference of 0.10 [−0.10, 0.30])."),
        (NONE, "0.00 more often."),
        ({"value": -0.2, "low": None, "high": None}, "0.20 less often."),
    ],
)
def test_a_loss_is_no_negative_gain_and_an_interval_around_none_says_so(length, words):
    assert sentences.length_sentences(result_of(length=length)).endswith(words)


def test_sentences_and_bleu_of_beam_search_are_judged_apart():
    text = sentences.beam_sentence(result_of(exact=WIDE, bleu=GAIN))
    assert "[−0.10, 0.30] of the sentences (not to be told from none) and 0.20 [0.10, 0.30] BLEU." in text


def test_names_keep_their_capitals_and_the_worst_place_is_the_one_of_the_largest_share():
    text = sentences.growth_sentences(result_of(early=LOSS))
    assert text.startswith("* **Multi30k En–Fr, Cho et al.**")
    assert "An error in the first third of the places spoils a smaller share" in text
    assert text.endswith("The largest share is spoilt after place 2 of 3, 0.75 [0.75, 0.75].")


@pytest.mark.parametrize(
    ("early", "said_so"), [(GAIN, "it has not"), (LOSS, "it has"), (WIDE, "it cannot be")]
)
def test_a_falsifier_has_happened_where_early_errors_spoil_less(early, said_so):
    assert f"Cho et al. on Multi30k En–Fr, {said_so} " in sentences.early_outcomes(result_of(early=early))
