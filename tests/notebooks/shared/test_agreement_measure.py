"""What is measured of one run and of two together, on recordings whose numbers can be worked by hand."""

from itertools import product
from types import SimpleNamespace

import pytest
import torch

from attnlib.errors import BadInput
from attnlib.probes.agreement import halves
from companion.runs.procedure import Recording
from notebooks.shared.agreement import measure_agreement, measure_course
from tests.notebooks.shared.agreement_recordings import recorded

SIDES = ("attention", "saliency", "probe")
SAME = {"attention": ["0000 0000"] * 2, "saliency": ["0000 0000"] * 2, "log_polarity": ["0000 0000"] * 2}


def sums(found, sides, place, measure="agreement"):
    """Of each half, by checkpoint: the total over its four texts."""
    by_half = found["parts"]["validation"][sides][str(place)][measure]
    assert all(rest == [4, 0] for looks in by_half.values() for _, *rest in looks)
    return {half: [total for total, *_ in looks] for half, looks in by_half.items()}


def test_the_first_run_is_taken_where_half_of_the_samples_or_all_have_it_best_and_the_second_everywhere():
    first = recorded(attention=["0000 0000", "1111 1111"])
    second = recorded(log_polarity=["0001 0111", "0000 0011"])
    found = measure_agreement(first, second, pairs="attention~probe")
    assert found["best"] == {"validation": {"accuracy": {"all": 1, "selecting": 0}}}
    assert sums(found, "attention~probe", 0) == {"selecting": [3, 4], "reporting": [1, 2]}
    assert sums(found, "attention~probe", 1) == {"selecting": [1, 0], "reporting": [3, 2]}
    assert sums(found, "attention~probe", 0, "kendall") == {"selecting": [2, 4], "reporting": [-2, 0]}


def test_every_part_chooses_by_how_good_the_first_run_is_on_it():
    first = recorded(attention=["0000 0000", "1111 1111"], train=["1100 0000", "0000 1000"])
    second = recorded(log_polarity=["0001 0111", "0000 0011"], train=["0000 0000"] * 2)
    found = measure_agreement(first, second, pairs="attention~probe")
    assert found["best"]["validation"] == {"accuracy": {"all": 1, "selecting": 0}}
    assert found["best"]["train"] == {"accuracy": {"all": 0, "selecting": 0}}
    assert list(found["parts"]["validation"]["attention~probe"]) == ["0", "1"]
    assert list(found["parts"]["train"]["attention~probe"]) == ["0"]
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


def test_a_run_agrees_with_itself_at_its_best():
    one = recorded(attention=["1101 0110", "0101 1100"])
    found = measure_agreement(one, one, pairs="attention~attention")
    for measure, place in product(("agreement", "kendall"), (0, 1)):
        itself = sums(found, "attention~attention", place, measure)
        assert {totals[place] for totals in itself.values()} == {4}


def test_runs_that_looked_at_other_texts_are_not_compared():
    one, other = recorded(**SAME), recorded(seed=1, **SAME)
    other.tensors["validation.offsets"][1] = 1
    with pytest.raises(BadInput, match="seed 0 and seed 1 were looked at on other samples"):
        measure_agreement(one, other, pairs="attention~probe")


@pytest.mark.parametrize("pairs", ["", "attention", "attention~loss"])
def test_pairs_that_cannot_be_read_are_refused(pairs):
    with pytest.raises(BadInput, match="expected such as 'attention~probe', of attention, saliency, probe"):
        measure_agreement(recorded(), recorded(), pairs=pairs)


def test_saliency_that_was_not_looked_for_at_the_best_checkpoint_is_refused():
    one = recorded(**SAME)
    one.tensors["validation.saliency"][1] = torch.nan
    with pytest.raises(BadInput, match="seed 0 has no saliency at its best checkpoint"):
        measure_agreement(one, one, pairs="saliency~probe")
    never_best = recorded(correct=["1111 1111", "1111 1111"], **SAME)  # the earliest of equals
    never_best.tensors["validation.saliency"][1] = torch.nan
    found = measure_agreement(never_best, one, pairs="saliency~probe")
    assert sums(found, "saliency~probe", 0)["reporting"] == [4, 4]


def test_a_run_alone_has_its_quality_by_half_and_what_chance_agrees_with():
    found = measure_course(recorded(attention=["0000 0000"] * 2, log_polarity=["0000 0000"] * 2))
    assert found["parts"]["validation"] == {
        "accuracy": {"all": [50, 75], "selecting": [100, 50], "reporting": [0, 100]}
    }
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
    assert course["majority"] == {"validation": 50}  # two end marks of four words to be said
    found = course["parts"]["validation"]
    assert found["accuracy"]["all"] == [50.0]
    ((selects,), (reports,)) = (half.tolist() for half in halves(2))
    of_sample = [100 / 3, 100.0]
    assert found["accuracy"]["reporting"] == pytest.approx([of_sample[reports]])
    assert found["accuracy"]["selecting"] == pytest.approx([of_sample[selects]])
    # four fifths of the words are right, and all longer n-grams; the lengths are equal
    assert found["bleu"]["all"] == pytest.approx([100 * 0.8**0.25])
