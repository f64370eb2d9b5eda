"""What a pass refuses: tokens and states that do not fit together, and what is no number or no id."""

from dataclasses import replace

import pytest
import torch
from test_attended import attended_of, normal
from test_model_pass import TARGET_MASK, checked, pass_of

from attnlib.errors import BadInput

# Numbers.


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("name", ["query_inputs", "key_inputs", "position_bias", "attention"])
def test_what_is_no_number_at_a_valid_position_is_refused(name, value):
    one = checked()
    wrong = getattr(one, name).clone()
    wrong[(0, 1, 1, 2) if wrong.dim() == 4 else (0, 1, 2)] = value
    at = "1 and 2" if wrong.dim() == 4 else "1"
    with pytest.raises(
        BadInput, match=rf"cross\.1: {name} hold NaN or infinity .*\(sample 0, position {at}\)"
    ):
        pass_of(replace(one, **{name: wrong}))


def test_projections_and_scales_that_are_no_numbers_are_refused():
    one = checked()
    with pytest.raises(BadInput, match=r"cross\.1: scale is nan; give a finite number"):
        replace(one, scale=float("nan"))
    for part in ("weight", "bias"):
        wrong = replace(one.key_map, **{part: getattr(one.key_map, part) / 0})
        with pytest.raises(BadInput, match=rf"cross\.1: key {part} holds NaN or infinity"):
            replace(one, key_map=wrong)


def test_labels_that_do_not_count_are_padding():
    at_padding = torch.arange(40, 52).view(3, 4).masked_fill(~TARGET_MASK, -100)
    assert pass_of(checked(), target_outputs=at_padding).target_outputs[0, 3] == -100
    with pytest.raises(BadInput, match=r"target_outputs hold -100 at valid position 1 of row 0"):
        pass_of(target_outputs=torch.tensor([[40, -100, -100, -100], [1] * 4, [1] * 4]))
    with pytest.raises(BadInput, match=r"source_tokens hold -1 at valid position 0 of row 0"):
        pass_of(source_tokens=torch.arange(15).view(3, 5) - 1)


# Shapes.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_tokens": torch.ones(3, 4)}, r"source_tokens of shape \(3, 4\) with a mask of shape \(3, 5\)"),
        ({"target_mask": torch.ones(3, 4)}, r"a mask of shape \(3, 4\) and torch\.float32"),
        ({"target_mask": torch.zeros(3, 4, dtype=torch.bool)}, "target_tokens row 0 is all padding: leave"),
        (
            {"target_outputs": torch.ones(3, 3)},
            r"target_outputs of shape \(3, 3\) with a mask of shape \(3, 4\)",
        ),
        (
            {"source_tokens": torch.ones(2, 5), "source_mask": torch.ones(2, 5, dtype=torch.bool)},
            "2 sources with 3 targets",
        ),
    ],
)
def test_tokens_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(BadInput, match=message):
        pass_of(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_inputs": normal(3, 5, 6)}, r"cross\.1: states of shape \(3, 5, 6\); expected \(3, 4, 6\)"),
        ({"key_inputs": normal(3, 5, 7)}, r"cross\.1: states of shape \(3, 5, 7\); expected \(3, 5, 6\)"),
        (
            {"attention": torch.ones(3, 2, 5, 4)},
            r"attention of shape \(3, 2, 5, 4\); expected \(3, 2, 4, 5\)",
        ),
        ({"position_bias": torch.ones(3, 1, 4, 5)}, r"position_bias of shape \(3, 1, 4, 5\)"),
        ({"attention": torch.ones(3, 4, 5)}, r"attention of shape \(3, 4, 5\)"),
        ({"kind": "encoder_self"}, r"encoder_self\.1: states of shape \(3, 4, 6\); expected \(3, 5, 6\)"),
    ],
)
def test_states_that_do_not_fit_the_tokens_are_refused(changes, message):
    with pytest.raises(BadInput, match=message):
        pass_of(attended_of(**changes))
