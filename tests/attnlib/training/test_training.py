"""Training: corpora, batches and words; a course of the same bits whatever interrupts it."""

from dataclasses import replace
from functools import partial
from itertools import islice, pairwise
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attnlib.errors import TrainingDiverged
from attnlib.models.corpus import Corpus, collate, evaluation_batches, training_batches
from attnlib.models.vocabulary import BOS, EOS, MARKS, PAD, UNK, Vocabulary
from attnlib.training.course import Course, run_course
from companion.runs.checkpoint import Progress, discard_unsound, save_checkpoint
from companion.runs.evaluate import evaluate
from tests.attnlib.models.model_builders import generator
from tests.attnlib.refusals import assert_refused, flip, refused

WORDS = st.lists(st.integers(3, 9), max_size=7)
PAIRS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=40)


def corpus_of(pairs):
    return Corpus.from_ids([a for a, _ in pairs], [b for _, b in pairs])


def varied(n=3000):
    draw = np.random.default_rng(0)
    lengths = draw.integers(1, 30, size=n)
    sentences = [draw.integers(4, 20, size=length) for length in lengths]
    return Corpus.from_ids(sentences, sentences)


def test_a_batch_worked_by_hand():
    batch = collate(corpus_of([([5, 6, 7], [8]), ([4], [9, 9])]), [0, 1])
    assert batch.source.tolist() == [[5, 6, 7, EOS], [4, EOS, PAD, PAD]]
    assert batch.source_mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.target_input.tolist() == [[BOS, 8, PAD], [BOS, 9, 9]]
    assert batch.target_output.tolist() == [[8, EOS, PAD], [9, 9, EOS]]
    assert batch.target_mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.indices.tolist() == [0, 1]


@given(PAIRS, st.data())
def test_every_row_holds_its_words_one_end_mark_and_no_padding_inside(pairs, data):
    indices = data.draw(st.lists(st.integers(0, len(pairs) - 1), min_size=1, max_size=12))
    batch = collate(corpus_of(pairs), indices)
    assert batch.indices.tolist() == indices
    sources, targets = zip(*(pairs[i] for i in indices), strict=True)
    for sentences, before, after, rows, mask in (
        (sources, [], [EOS], batch.source, batch.source_mask),
        (targets, [], [EOS], batch.target_output, batch.target_mask),
        (targets, [BOS], [], batch.target_input, batch.target_mask),
    ):
        width = 1 + max(map(len, sentences))
        expected = [[*before, *words, *after] for words in sentences]
        assert rows.tolist() == [row + [PAD] * (width - len(row)) for row in expected]
        assert mask.tolist() == [[at < len(row) for at in range(width)] for row in expected]


@given(PAIRS)
def test_a_corpus_gives_back_its_sentences(pairs):
    corpus = corpus_of(pairs)
    assert [(corpus.source(i).tolist(), corpus.target(i).tolist()) for i in range(len(corpus))] == pairs
    assert corpus.source_lengths.tolist() == [len(a) for a, _ in pairs]
    assert corpus.target_lengths.tolist() == [len(b) for _, b in pairs]
    chosen = list(range(len(pairs)))[::-2]
    part = corpus.subset(chosen)
    assert [part.source(i).tolist() for i in range(len(part))] == [pairs[i][0] for i in chosen]


@given(PAIRS, st.integers(1, 9), st.integers(0, 2**32))
def test_an_epoch_visits_every_sample_once(pairs, batch_size, seed):
    corpus = corpus_of(pairs)
    steps = -(-len(pairs) // batch_size)
    stream = training_batches(corpus, batch_size, seed=seed)
    for _ in range(3):
        epoch = list(islice(stream, steps))
        assert sorted(i for batch in epoch for i in batch.indices.tolist()) == list(range(len(pairs)))
        assert all(len(batch) <= batch_size for batch in epoch)


@given(PAIRS, st.integers(1, 9), st.integers(0, 99), st.integers(0, 30))
def test_the_stream_resumed_at_a_step_is_the_stream_from_that_step(pairs, batch_size, seed, step):
    corpus = corpus_of(pairs)
    whole = islice(training_batches(corpus, batch_size, seed=seed), step, step + 6)
    resumed = islice(training_batches(corpus, batch_size, seed=seed, start_step=step), 6)
    for one, other in zip(whole, resumed, strict=True):
        assert all(torch.equal(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__)


def test_epochs_and_seeds_differ_and_batches_by_length_leave_little_padding():
    corpus, state = varied(), torch.get_rng_state()
    batches = list(islice(training_batches(corpus, 64, seed=0), 94))  # two epochs of these 3,000 samples
    drawn = [batch.indices.tolist() for batch in batches]
    assert drawn[:47] != drawn[47:]
    assert drawn[0] != next(training_batches(corpus, 64, seed=1)).indices.tolist()
    padded = sum((~batch.source_mask).sum().item() for batch in batches)
    assert padded < 0.05 * sum(batch.source.numel() for batch in batches)
    assert torch.equal(state, torch.get_rng_state())


@given(PAIRS, st.integers(1, 9))
def test_evaluation_visits_every_sample_once_by_length(pairs, batch_size):
    order = [i for batch in evaluation_batches(corpus_of(pairs), batch_size) for i in batch.indices.tolist()]
    assert order == sorted(range(len(pairs)), key=lambda i: (len(pairs[i][0]), len(pairs[i][1]), i))


SENTENCES = [["b", "a", "b"], ["c", "a", "b"], ["d"]]


@pytest.mark.parametrize(
    ("options", "kept"),
    [({}, "bacd"), ({"min_count": 2}, "ba"), ({"max_words": 3}, "bac"), ({"max_words": 1}, "b"),
     ({"min_count": 4}, "")],
)  # fmt: skip
def test_words_come_by_falling_count_and_ties_alphabetically_and_rare_ones_not_at_all(options, kept):
    vocabulary = Vocabulary.from_sentences(SENTENCES, **options)
    assert vocabulary.words == (*MARKS, *kept)
    assert vocabulary.decode([PAD, BOS, EOS, UNK]) == ["<pad>", "<bos>", "<eos>", "<unk>"]


def test_an_open_vocabulary_reads_unseen_words_as_unk():
    vocabulary = Vocabulary.from_sentences(SENTENCES, min_count=2, open=True)
    assert vocabulary.encode(["a", "c", "b", "zebra"]).tolist() == [5, UNK, 4, UNK]


def test_text_that_spells_a_mark_is_an_unseen_word_and_never_becomes_the_mark():
    sentences = [["<pad>", "a"], ["<pad>", "<eos>", "a"]]
    vocabulary = Vocabulary.from_sentences(sentences, open=True)
    assert vocabulary.words == (*MARKS, "a")
    assert vocabulary.encode(["<pad>", "a", "<eos>"]).tolist() == [UNK, 4, UNK]


@pytest.mark.slow
@given(st.lists(st.lists(st.text(min_size=1, max_size=3), max_size=6), max_size=6))
def test_decoding_undoes_encoding(sentences):
    sentences = [[word for word in sentence if word not in MARKS] for sentence in sentences]
    vocabulary = Vocabulary.from_sentences(sentences)
    for sentence in sentences:
        assert vocabulary.decode(vocabulary.encode(sentence)) == sentence
    assert len(vocabulary) == 4 + len({word for sentence in sentences for word in sentence})


def first_batch(corpus, **wrong):
    return next(training_batches(corpus, **{"batch_size": 4, "seed": 0} | wrong))


test_what_makes_no_sense_is_refused = refused(
    *((partial(collate, varied(3), indices), "0…2; got [") for indices in ([], [3], [-1])),
    (lambda: first_batch(corpus_of([])), "without samples"),
    *((partial(first_batch, varied(5), **wrong), "batch_size must be ≥ 1")
      for wrong in ({"batch_size": 0}, {"seed": -1}, {"start_step": -1})),
    (lambda: Vocabulary.of(["walk", "look"]).encode(["look", "wakl"]), "'wakl'; did you mean 'walk'"),
    (lambda: Vocabulary.of(["a"]).encode(["<pad>"]), "no word '<pad>'"),
    (lambda: Vocabulary.of(["a"]).decode([4, 5]), "0…4; got 4…5"),
)  # fmt: skip


# A course: the same bits whatever interrupts it, every checkpoint looked at once.


COURSE = Course(steps=12, seed=3, checkpoints=(0, 4, 9, 12))


def new_network():
    """Dropout, so that every update draws; its weights always start from the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))


def batch_at(step):
    return torch.randn(5, 3, generator=generator(step))


def squared(model, batch):
    return (model(batch)[:, 0] - batch.sum(1)).square().mean()


def weights(model):
    return torch.cat([value.detach().flatten() for value in model.parameters()]).tolist()


def run(folder, course=COURSE, *, visit=lambda step, model: None, loss=squared, **options):
    """The weights that a course ends in, and its records."""
    model = new_network()
    records = run_course(model, batch_at, loss, course, folder, visit=visit, **options)
    return weights(model), records


def test_what_an_update_draws_comes_from_seed_and_step_and_the_callers_random_state_is_untouched():
    drawn = []

    def loss(model, batch):
        drawn.append(torch.rand(4))
        return squared(model, batch)

    before = torch.random.get_rng_state()
    for seed in (3, 4):
        run(None, Course(steps=3, seed=seed), loss=loss)
    assert torch.equal(torch.random.get_rng_state(), before)
    run(None, Course(steps=3, seed=3, checkpoints=(0, 1, 2)), loss=loss, visit=lambda *_: torch.rand(7))
    assert torch.equal(torch.stack(drawn[:3]), torch.stack(drawn[6:]))
    assert len({tuple(values.tolist()) for values in drawn[:6]}) == 6


@pytest.mark.parametrize("stop", [0, 1, 4, 5, 9, 11])
def test_an_interrupted_course_ends_in_the_same_bits_and_looks_once_at_each_checkpoint(tmp_path, stop):
    def interrupt(step, steps, loss):
        if step == stop + 1:
            raise SystemExit

    def snapshot(step, model):
        assert not model.training
        snapshots.append((step, weights(model)))

    snapshots = []
    whole = run(None, visit=snapshot)
    expected, snapshots = snapshots, []
    with pytest.raises(SystemExit):
        run(tmp_path, visit=snapshot, report=interrupt, seconds_between_saves=0)
    assert run(tmp_path, visit=snapshot) == whole
    assert snapshots == expected
    assert [step for step, _ in snapshots] == [0, 4, 9, 12]


def test_a_checkpoint_whose_visit_was_cut_short_is_visited_again_and_no_other(tmp_path):
    snapshots = []

    def snapshot(step, model):
        snapshots.append(step)
        if snapshots == [0, 4]:
            raise SystemExit

    with pytest.raises(SystemExit):
        run(tmp_path, visit=snapshot)  # no state was saved: the resumed course makes all updates again
    assert run(tmp_path, visit=snapshot) == run(None)
    assert snapshots == [0, 4, 4, 9, 12]


def test_a_finished_course_is_read_not_run(tmp_path):
    done = run(tmp_path)
    assert run(tmp_path, loss=None, visit=None) == done  # it neither trains nor looks
    assert_refused(partial(run, tmp_path, replace(COURSE, seed=5)), "another course")


def test_a_damaged_checkpoint_is_deleted_and_no_other(tmp_path):
    model = new_network()
    for step in (1, 2):
        save_checkpoint(tmp_path, model, torch.optim.Adam(model.parameters()), Progress(step, []))
    first, second = sorted(tmp_path.glob("*.safetensors"))
    flip(second)
    assert discard_unsound(tmp_path) == [second]
    assert {*tmp_path.glob("step-*")} == {first, first.with_suffix(".json")}


def test_quality_by_hand():
    """Of a sample's two words the first is right, of another's one; of three words one has a logit of 2."""
    logits = torch.tensor([2.0, 0, 0]).expand(2, 2, 3)
    outputs, mask = torch.tensor([[0, 1], [0, 0]]), torch.tensor([[True, True], [True, False]])
    trace = SimpleNamespace(logits=logits, target_outputs=outputs, target_mask=mask)
    model = Mock(return_value=trace)
    model.readout.weight.device = "cpu"
    right, wrong = logits[0, 0].log_softmax(0)[:2].tolist()
    expected = {"loss": -(2 * right + wrong) / 3, "token_accuracy": 2 / 3, "exact_match": 1 / 2}
    assert evaluate(model, Corpus.from_ids([[4]], [[4]])) == pytest.approx(expected)


def test_parameters_without_gradient_stay():
    model = new_network()
    model[0].requires_grad_(False)
    before = [value.detach().clone() for value in model.parameters()]
    records = run_course(model, batch_at, squared, COURSE, None, visit=lambda *_: None)
    assert [own["step"] for own in records] == [*range(12)]
    changed = [not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)]
    assert changed == [False, False, True, True]


def linear(model, batch):
    """A loss whose gradient is the same at every step: 1000 for each weight."""
    return 1_000 * sum(value.sum() for value in model.parameters())


def test_the_learning_rate_rises_over_the_warm_up_and_stays():
    """Adam's update on a constant gradient is the learning rate itself."""
    assert Course(6, 0).learning_rate == torch.optim.Adam([torch.zeros(1)]).defaults["lr"]
    seen, course = [], Course(6, 0, learning_rate=0.1, checkpoints=tuple(range(7)), warmup=4)
    one = nn.Linear(1, 1)
    run_course(one, batch_at, linear, course, None, visit=lambda *_: seen.append(one.weight.item()))
    moved = [before - after for before, after in pairwise(seen)]
    assert moved == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1], rel=1e-4)


@pytest.mark.parametrize(("clip", "expected"), [(None, 2_000.0), (1e6, 2_000.0), (0.5, 0.5)])
def test_the_gradient_is_clipped_at_its_norm_over_all_parameters(clip, expected):
    """Four weights, each with a gradient of 1000."""
    model = nn.Linear(3, 1)
    run_course(model, batch_at, linear, Course(steps=1, seed=0, clip=clip), None, visit=lambda *_: None)
    norm = torch.cat([value.grad.flatten() for value in model.parameters()]).norm().item()
    assert norm == pytest.approx(expected, rel=1e-4)


def test_a_loss_that_is_not_finite_names_step_and_seed():
    def loss(model, batch):
        bad = torch.equal(batch, batch_at(7))
        return squared(model, batch) * (float("nan") if bad else 1.0)

    said = "nan at step 7 with seed 3 … lower the learning rate"
    assert_refused(lambda: run(None, loss=loss), said, TrainingDiverged)
