"""Long sentences through one vector: its bits, errors and gradients, by hand and against loops."""

import math
from dataclasses import replace
from itertools import product
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from attnlib.errors import DataUnavailable
from attnlib.models.corpus import Corpus, collate
from attnlib.models.sequence_to_sequence import NAMED, SequenceConfig, SequenceToSequence
from attnlib.models.vocabulary import BOS, EOS, PAD, Vocabulary
from companion.data.task import Task
from notebooks.primer.one_vector import experiment as errors
from notebooks.primer.one_vector.experiment import after_error, early_over_late
from notebooks.primer.path_length.experiment import decay, gradient_norms
from notebooks.primer.source_reversal import experiment
from notebooks.shared import bleu, measure, words
from notebooks.shared.sequence_course import judged_samples
from tests.attnlib.models.model_builders import batch_of, generator, sequence_network
from tests.notebooks.figure_builders import Given, recording_of, tiny, written_rightly

FIGURE = "context_bottleneck"  # whose tiny network most of these look at


def written_as(recording, written, **tensors):
    """The recording of a network that had written this."""
    return replace(recording, tensors=dict(recording.tensors) | {"written": written} | tensors)


def test_bits_are_what_is_left_of_the_words_surprise(recording):
    """Against a loop over samples and positions."""
    measured, judged = measure.measure_by_length(recording), judged_samples(recording.spec.resolved)
    assert measured["vocabulary"] == 10
    place = measured["lengths"].index(4)
    rows = [i for i in range(len(judged)) if len(judged.target(i)) == 4]
    bits, right = [], []
    for i in rows:
        losses = recording["loss"][-1, i, :4].tolist()
        bits.append(sum(math.log2(10) - loss / math.log(2) for loss in losses))
        right += recording["right"][-1, i, :4].tolist()
    assert measured["bits"][place] == pytest.approx(np.mean(bits))
    assert measured["bits_of_word"][place] == pytest.approx(np.mean(bits) / 4)
    assert measured["token_accuracy"][place] == pytest.approx(np.mean(right))
    assert measured["samples"][place] == len(rows)


def test_an_exact_match_needs_the_end_mark_too(recording):
    judged = judged_samples(recording.spec.resolved)
    written = written_rightly(recording)
    written[1, 0] += 1  # a wrong word
    written[2, int((written[2] != PAD).sum()) - 1] = PAD  # no end mark
    exact = measure.exact_matches(written_as(recording, written), judged)
    assert np.flatnonzero(~exact).tolist() == [1, 2]


def test_the_probe_reads_the_one_vector_position_by_position(recording):
    """Of a thousand sentences of three words at most a quarter is kept to judge, and enough to fit on."""
    measured = measure.measure_summary_bits(recording, length=3, samples=2_000)
    assert len(measured["bits"]) == 3
    assert max(measured["bits"]) < math.log2(10)


# Errors and what follows them.


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
    rows = errors.damage(Counter(), batch, words=9, seed=0)
    # At the last place a wrong word leaves one more to come, the end mark, which is then not written.
    assert rows == [row(place, 1, 0, 6 - place) | {"sentences": 2} for place in range(1, 6)]
    assert after_error(rows) == 1
    assert early_over_late(rows) == 0  # five words and one word are lost: the whole of what follows


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize(("put", "word"), [(3, "UNK"), (10, "g"), (11, "h")])
def test_bleu_is_judged_by_the_text_in_which_no_word_is_unknown(monkeypatch, missing, put, word):
    """Where the reference has ``<unk>``, as what is written may: against the text this is a fault."""
    known = Vocabulary.of("abcdefgh")
    corpus = Corpus.from_ids([[4], [4]], [[4, 5, 6, 3 if missing else 10, 7, 8, 9], [4, 5, 6, 7]])
    task = Task("made", known, known, corpus, corpus)
    monkeypatch.setattr(errors, "load_task", lambda _: task)
    monkeypatch.setattr(errors, "judged_samples", lambda _: corpus)
    rows = [[4, 5, 6, put, 7, 8, 9, EOS], [4, 5, 6, 7, EOS, PAD, PAD, PAD]]
    texts = [f"a b c {word} d e f", "a b c d"]
    expected, _ = bleu.corpus_bleu(texts, [f"a b c {'zebra' if missing else 'g'} d e f", "a b c d"])
    assert errors.written_bleu(recording_of({"written": torch.tensor(rows)})) == pytest.approx(expected)
    assert (expected == pytest.approx(100)) is (word == "g" and not missing)


@pytest.mark.parametrize("spoilt", [False, True])
def test_accuracies_by_place_are_those_of_a_loop_over_sentences_of_one_length(recording, spoilt):
    """Of the network, and of one that is right but for the first word of the shorter sentences."""
    judged = judged_samples(recording.spec.resolved)
    if spoilt:
        wanted = written_rightly(recording)
        wanted[torch.from_numpy(judged.target_lengths < judged.target_lengths.max()), 0] = EOS
        recording = written_as(recording, wanted)
    growth = errors.measure_error_growth(recording, samples=20)
    targets = [[*judged.target(i).tolist(), EOS] for i in range(len(judged))]
    chosen = [i for i, target in enumerate(targets) if len(target) == growth["length"] + 1]
    assert growth["of_length"] == len(chosen) < len(judged)
    assert len(growth["so_far"]) == growth["length"] + 1
    pairs = [(recording["written"][i].tolist(), targets[i]) for i in chosen]
    for place in range(growth["length"] + 1):
        hits = [row[place : place + 1] == [target[place]] for row, target in pairs]
        whole = [row[: place + 1] == target[: place + 1] for row, target in pairs]
        forced = recording["right"][-1, chosen, place].double()
        for name, right in (("free_running", hits), ("so_far", whole), ("teacher_forced", forced)):
            assert growth[name][place] == pytest.approx(float(np.mean(np.asarray(right))))


def test_a_perfect_copy_has_all_of_it_right(recording):
    right = torch.ones_like(recording["right"])
    perfect = written_as(recording, written_rightly(recording), right=right)
    growth = errors.measure_error_growth(perfect, samples=5)
    assert {growth[n] for n in ("exact_match", "length_right", "token_accuracy", "own_accuracy")} == {1}
    assert growth["beam"]["exact_match"] < 1  # of the network as it is
    assert growth["bleu"] == pytest.approx(100)


# Distances, and learning curves by thirds of a sentence.


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 4, 7])
def test_distances_are_the_steps_of_the_two_recurrences(length, reverse):
    """Walked one by one: what is read after the word, the end mark, what is written up to the target word."""
    order = list(range(length))[::-1] if reverse else list(range(length))
    links = [(source, target) for target in range(3) for source in range(length)]
    expected = [len(order) - 1 - order.index(source) + 1 + (target + 1) for source, target in links]
    assert words.link_distances(links, length, reverse=reverse) == expected


def by_thirds(recording, judged, chosen):
    """What the last snapshot says of each word of some sentences, in a loop."""
    thirds: dict[str, list[int]] = {"first": [], "middle": [], "last": []}
    for i in chosen:
        length = len(judged.target(i))
        for place in range(length):
            name = list(thirds)[min(2, int(3 * (place + 0.5) / length))]
            thirds[name].append(int(recording["right"][-1, i, place]))
    return thirds


def judged_network(store):
    config = tiny("source_reversal", longest=12, judged=300)
    recording = store.recording(experiment.measurements(config)[0].spec)
    return recording, judged_samples(recording.spec.resolved)


def test_learning_curves_are_counted_by_thirds(store):
    recording, judged = judged_network(store)
    curve = measure.measure_learning_curve(recording)
    thirds = by_thirds(recording, judged, range(len(judged)))
    for name, values in thirds.items():
        assert curve[name][-1] == pytest.approx(np.mean(values))
    everywhere = np.concatenate(list(thirds.values()))
    assert curve["token_accuracy"][-1] == pytest.approx(np.mean(everywhere))
    assert len(curve["by_place"]) == 12


def test_the_longest_quarter_of_lengths_is_counted_by_thirds(store):
    """Of four to twelve words the longest quarter has ten, eleven and twelve."""
    recording, judged = judged_network(store)
    chosen = [i for i in range(len(judged)) if len(judged.target(i)) in (10, 11, 12)]
    longest = experiment.measure_longest_sentences(recording)
    assert (longest["shortest"], longest["sentences"]) == (10, len(chosen))
    for name, values in by_thirds(recording, judged, chosen).items():
        assert longest[name] == pytest.approx(np.mean(values))


def test_a_text_that_is_missing_says_so(monkeypatch):
    config = tiny("source_reversal", aligned=("europarl_de_en",))
    monkeypatch.setattr(experiment.registry, "load", Mock(side_effect=DataUnavailable("no file")))
    tables = experiment.compute(config, Given(lambda *_: None))
    missing = {"europarl_de_en": {"cannot_be_run": "data: europarl_de_en is not available here"}}
    assert experiment.values(config, tables)["distances"] == missing


# Gradients against finite differences, and their slope over distance.


@pytest.mark.parametrize("kind", [*NAMED, "plain"])
def test_norms_are_those_of_finite_differences(kind):
    network, batch = sequence_network(kind), batch_of(0, 1)
    norms = gradient_norms(network, batch)
    inputs, step = network.embedding_source(batch.source).detach(), 1e-5

    def outputs(moved):
        logits = network.decode(batch, *network.encode_inputs(moved, batch.source_mask)).logits
        right = logits.gather(-1, batch.target_output[..., None])[..., 0]
        return (right - logits.mean(-1)).detach()

    nudges = step * torch.eye(inputs[0].numel(), dtype=torch.float64).view(-1, *inputs.shape[1:])
    slopes = [(outputs(inputs + nudge) - outputs(inputs - nudge)) / (2 * step) for nudge in nudges]
    expected = torch.stack(slopes, -1).unflatten(-1, inputs.shape[1:]).norm(dim=-1)
    torch.testing.assert_close(norms, expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("reverse", [False, True])
def test_decay_is_the_slope_over_distance(reverse):
    """Norms that fall by a factor of 10^0.3 a step, and norms that are all the same."""
    n = 6
    distance = [[(t + 1 if reverse else n - t) + s + 1 for t in range(n)] for s in range(n)]
    falling = [[10 ** (-0.3 * d) for d in row] for row in distance]
    assert decay(falling, reverse=reverse) == pytest.approx(-0.3)
    assert decay(falling, reverse=not reverse) == pytest.approx(0, abs=1e-9)
    assert decay([[0.7] * n] * n, reverse=reverse) == pytest.approx(0)


def test_before_training_neither_cell_nor_width_changes_the_rate_much():
    """As the page says: all within a tenth of each other."""
    texts = [[4 + (3 * i + j * j) % 10 for j in range(12)] for i in range(16)]
    batch, rates = batch_of(pairs=[(text, text) for text in texts]), []
    for cell, width in product(("gru", "lstm"), (16, 64, 256)):
        config = SequenceConfig(14, 14, link="initial", cell=cell, width=width)
        network = SequenceToSequence(config, generator())
        rates.append(decay(gradient_norms(network, batch)[:, :12, :12].mean(0).tolist(), reverse=False))
    assert max(rates) < 0.9 * np.mean(rates) < 0
    assert min(rates) > 1.1 * np.mean(rates)
