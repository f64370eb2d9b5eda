"""What is measured of recordings, one alone or two together, on numbers that can be worked by hand."""

from types import SimpleNamespace

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement, halves
from attnlib.training.vocabulary import EOS
from companion.runs.procedure import Recording
from companion.runs.store import Store
from notebooks.shared import agreement as measures
from notebooks.shared.agreement import measure_agreement, measure_course, measure_ties
from notebooks.shared.ragged import padded_cells
from notebooks.shared.saliency import translation_saliency
from tests.attnlib.models.model_builders import translator
from tests.notebooks.given import recorded
from tests.notebooks.shared.test_saliency import BATCH, assert_slopes

SIDES = ("attention", "saliency", "probe")
SAME = {name: ["0000 0000"] * 2 for name in ("attention", "saliency", "log_polarity")}


def sums(found, sides, place, measure="agreement"):
    """Of each half, by checkpoint: the total over its four texts."""
    by_half = found["parts"]["validation"][sides][str(place)][measure]
    assert all(rest == [4, 0] for snapshots in by_half.values() for _, *rest in snapshots)
    return {half: [total for total, *_ in snapshots] for half, snapshots in by_half.items()}


def test_the_first_run_is_taken_where_a_half_or_all_of_a_part_have_it_best_and_the_second_everywhere():
    first = recorded(attention=["0000 0000", "1111 1111"], train=["1100 0000", "0000 1000"])
    second = recorded(log_polarity=["0001 0111", "0000 0011"], train=["0000 0000"] * 2)
    found = measure_agreement(first, second, pairs="attention~probe")
    assert found["best"]["validation"] == {"accuracy": {"all": 1, "selecting": 0}}
    assert found["best"]["train"] == {"accuracy": {"all": 0, "selecting": 0}}
    assert list(found["parts"]["validation"]["attention~probe"]) == ["0", "1"]
    assert list(found["parts"]["train"]["attention~probe"]) == ["0"]
    assert sums(found, "attention~probe", 0) == {"selecting": [3, 4], "reporting": [1, 2]}
    assert sums(found, "attention~probe", 1) == {"selecting": [1, 0], "reporting": [3, 2]}
    assert sums(found, "attention~probe", 0, "kendall") == {"selecting": [2, 4], "reporting": [-2, 0]}

    second.tensors["train.labels"] = torch.tensor([0, 1, 1, 1, 0, 1, 1, 1])
    assert measure_course(second)["majority"] == {"validation": 50, "train": 75}


def test_each_side_is_read_where_it_stands():
    tops = {"attention": "0000 0001", "saliency": "0000 0011", "log_polarity": "0000 0111"}
    first = recorded(**{name: [top] * 2 for name, top in tops.items()})
    second = recorded(attention=["0000 0000", "0000 1111"], log_polarity=["0000 1000", "1111 0000"])
    pairs = " ".join(f"{one}~{other}" for one in SIDES for other in ("attention", "probe"))
    found = measure_agreement(first, second, pairs=pairs)
    reporting = {pair: sums(found, pair, 0)["reporting"] for pair in pairs.split()}
    assert reporting == {
        "attention~attention": [3, 1], "attention~probe": [2, 3],
        "saliency~attention": [2, 2], "saliency~probe": [1, 2],
        "probe~attention": [1, 3], "probe~probe": [0, 1],
    }  # fmt: skip


def test_the_earliest_of_equals_is_the_best():
    never_best = changed(recorded(correct=["1111 1111", "1111 1111"], **SAME), "saliency", 1, torch.nan)
    found = measure_agreement(never_best, recorded(**SAME), pairs="saliency~probe")
    assert sums(found, "saliency~probe", 0)["reporting"] == [4, 4]


def test_a_run_alone_has_its_quality_by_half_and_what_chance_agrees_with():
    found = measure_course(recorded(attention=["0000 0000"] * 2, log_polarity=["0000 0000"] * 2))
    accuracy = {"all": [50, 75], "selecting": [100, 50], "reporting": [0, 100]}
    assert found["parts"]["validation"] == {"accuracy": accuracy}
    assert found["chance"] == {"validation": {"attention": 0.5, "probe": 0.5}}
    assert found["steps"] == [0, 10]
    assert found["majority"] == {"validation": 50}
    uniform = recorded(log_polarity=["0000 0000"] * 2)
    uniform.tensors["validation.log_polarity"][:] = 0  # ties: any word is among the largest
    assert measure_course(uniform)["chance"] == {"validation": {"probe": 1}}


def test_quality_counts_words_not_sentences():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    tensors = {
        "steps": torch.tensor([0]),
        "validation.log_probe": torch.zeros(1, 4),
        "validation.source_mask": torch.ones(2, 1, dtype=torch.bool),
        "validation.target_mask": mask,
        "validation.right": torch.tensor([[1, 1]]),
        "validation.target_output": torch.tensor([[7, 8, 2], [2, 0, 0]]),
        "validation.bleu_counts": torch.tensor(
            [[[4, 4, 4, 3, 2, 1, 4, 3, 2, 1], [1, 1, 0, 0, 0, 0, 1, 0, 0, 0]]]
        ),
    }
    course = measure_course(Recording(SimpleNamespace(), tensors, {}))
    assert course["majority"] == {"validation": 50}  # two end marks of four words to write
    found = course["parts"]["validation"]
    assert found["accuracy"]["all"] == [50.0]
    ((selects,), (reports,)) = (half.tolist() for half in halves(2))
    of_sample = [100 / 3, 100.0]
    assert found["accuracy"]["reporting"] == pytest.approx([of_sample[reports]])
    assert found["accuracy"]["selecting"] == pytest.approx([of_sample[selects]])
    # four fifths of the words are right, and all longer n-grams; the lengths are equal
    assert found["bleu"]["all"] == pytest.approx([100 * 0.8**0.25])


# What ties in β add.

SELECTING = set(halves(4)[0].tolist())


def translated(seed=0, *, uniform=False, samples=4):
    """A translator looked at twice on sentences of two words whose translation is one.

    Free, it attends to the first word at its better second snapshot, and its β is larger there. At uniform
    attention β is larger at the second word at the first snapshot; at the second snapshot it is tied in the
    samples that select, and larger at the first word in the others.
    """
    ones = torch.ones(samples, 1, dtype=torch.bool)
    first, second, tied = [0.0, -1.0], [-1.0, 0.0], [0.0, 0.0]
    snapshots = [[second] * samples, [tied if i in SELECTING else first for i in range(samples)]]
    free = [[second] * samples, [first] * samples]
    tensors = {
        "steps": torch.tensor([0, 10]),
        "validation.source_mask": ones.expand(samples, 2),
        "validation.target_mask": ones,
        "validation.target_output": torch.tensor([[EOS if i in SELECTING else 9] for i in range(samples)]),
        "validation.right": torch.tensor([[0] * samples, [1] * samples]),
        "validation.log_probe": torch.tensor(snapshots if uniform else free).flatten(1),
        "validation.attention": torch.tensor(free).flatten(1),
    }
    return Recording(SimpleNamespace(seed=seed, setting=f"seed {seed}"), tensors, {})


def test_ties_by_hand():
    found = measure_ties(translated(), translated(uniform=True), sides="attention")
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


# Variants of saliency: slopes, and held against a probe.


def test_the_variants_are_slopes_of_the_logit_and_of_the_log_probability():
    model, batch = translator(), BATCH
    found = measures.saliency_variants(model, batch)
    assert tuple(found) == measures.SALIENCY_VARIANTS
    torch.testing.assert_close(found["logit"], translation_saliency(model, batch))
    assert_slopes(found["log_probability"], model, batch, lambda logits: logits.log_softmax(-1))
    # no word moves by more than the gradient's length times its own
    lengths = model.embedding(batch.source).norm(dim=-1)[:, None]
    assert (found["log_probability"].abs() <= found["gradient_norm"] * lengths + 1e-12).all()
    valid = batch.target_mask[:, :, None] & batch.source_mask[:, None, :]
    assert (found["gradient_norm"][valid] > 0).all()
    assert (found["gradient_norm"][~valid] == 0).all()
    assert all(parameter.grad is None for parameter in model.parameters())


RUNS = measures.translator_runs(2, {
    "dataset": "known_lexicon", "width": 8, "pieces": 60, "steps": 100, "learning_rate": 0.01, "n_train": 60,
    "n_validation": 8,
})  # fmt: skip


@pytest.mark.slow
def test_the_logits_reading_agrees_as_the_recorded_saliency_does(tmp_path):
    """The last snapshot is the best, so that its saliency has been recorded."""
    store = Store(tmp_path, "cpu")
    first, second = store.recording(RUNS.normal[0]), store.recording(RUNS.uniform[1])
    own = first["validation.saliency"][-1]
    assert not own.isnan().any()
    masks = second["validation.source_mask"], second["validation.target_mask"]
    cells = own, second["validation.log_probe"][-1]
    own, probe = (padded_cells(flat, *masks, fill=-float("inf")) for flat in cells)
    expected = agreement(own, probe, masks[0][:, None, :].expand(own.shape))[masks[1]].mean()
    found = measures.measure_saliency_variants(first, second)
    assert found["steps"] == second["steps"].tolist()
    assert found["logit"]["agreement"][-1] == pytest.approx(100 * float(expected), abs=1e-6)
    assert found["logit"] != found["log_probability"]


def changed(recording, name, place, value):
    recording.tensors[f"validation.{name}"][place] = value
    return recording


UNIFORM = translated(uniform=True)
SIX, UNSEEN = translated(samples=6), changed(translated(), "attention", ..., torch.nan)
LOOKED_AT = "seed 0 and seed 1 were looked at on other samples"


@pytest.mark.parametrize(
    ("measure", "first", "second", "wanted", "message"),
    [
        *((measure_agreement, recorded(), recorded(), {"pairs": pairs},
           "expected such as 'attention~probe', of attention, saliency, probe")
          for pairs in ("", "attention", "attention~loss")),
        (measure_agreement, recorded(**SAME), changed(recorded(seed=1, **SAME), "offsets", 1, 1),
         {"pairs": "attention~probe"}, LOOKED_AT),
        (measure_agreement, changed(recorded(**SAME), "saliency", 1, torch.nan), recorded(**SAME),
         {"pairs": "saliency~probe"}, "seed 0 has no saliency at its best checkpoint"),
        *((measure_ties, translated(), UNIFORM, {"sides": sides}, "expected some of attention")
          for sides in ("", "weights")),
        (measure_ties, SIX, UNIFORM, {"sides": "attention"}, "other samples"),
        (measure_ties, UNSEEN, UNIFORM, {"sides": "attention"}, "no attention at its best checkpoint"),
        (measures.measure_saliency_variants, SIX, UNIFORM, {}, "other samples"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(measure, first, second, wanted, message):
    with pytest.raises(BadInput, match=message):
        measure(first, second, **wanted)
