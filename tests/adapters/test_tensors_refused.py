"""Tensors that make no pass, and what the message says of each."""

import pytest
import torch
from test_tensors import FULL, PLAIN, SOURCE_MASK, without

from attnlib.adapters import pass_of_tensors
from attnlib.errors import BadInput


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            without(PLAIN, "source_mask", "target_mask"),
            "tensors lack source_mask, target_mask; they have cross",
        ),
        ({}, "they have none"),
        (PLAIN | {"cross.query_states": torch.ones(1)}, "no tensor 'cross.query_states' is known"),
        (PLAIN | {"cross.0.querystates": torch.ones(1)}, "named like cross.0.query_states"),
        (PLAIN | {"self.0.query_states": torch.ones(1)}, "no tensor 'self.0.query_states'"),
        (PLAIN | {"cross.-1.scale": torch.ones(1)}, "no tensor 'cross.-1.scale'"),
        (PLAIN | {"cross.0.1.scale": torch.ones(1)}, "no tensor 'cross.0.1.scale'"),
        (PLAIN | {"decoder_states": torch.ones(1)}, "no tensor 'decoder_states'"),
        (PLAIN | {"cross.1.scale": torch.ones(())}, r"cross\.1 lacks cross\.1\.query_states"),
        (without(PLAIN, "encoder_states"), r"lacks cross\.0\.key_states, and there is no encoder_states"),
        (without(FULL, "cross.3.key_weight"), r"cross\.3 has a weight for one side"),
        (without(FULL, "cross.3.key_weight", "cross.3.query_weight"), r"cross\.3 has a bias and no weights"),
        (
            PLAIN | {"cross.0.scale": torch.ones(2)},
            r"cross\.0\.scale is of shape \(2,\); expected one number",
        ),
        (FULL | {"cross.3.key_weight": torch.ones(8, 6)}, r"cross\.3: weight of shape \(8, 6\)"),
        (
            FULL | {"cross.3.key_bias": torch.ones(8)},
            r"cross\.3: weight of shape \(2, 4, 6\), bias of \(8,\)",
        ),
        (
            without(FULL, "cross.3.key_bias") | {"cross.3.key_weight": torch.ones(2, 3, 6)},
            "queries of 2 heads of width 4, keys of 2 of width 3",
        ),
        (
            PLAIN | {"encoder_states": torch.ones(3, 5, 7)},
            "queries of 1 heads of width 6, keys of 1 of width 7",
        ),
        (
            FULL | {"encoder_states": torch.ones(3, 5, 7)},
            r"states of shape \(3, 5, 7\); expected \(3, 5, 6\)",
        ),
        (
            PLAIN | {"cross.0.query_states": torch.ones(3, 6)},
            r"states of shape \(3, 6\); expected \(3, 4, 6\)",
        ),
        (
            PLAIN | {"cross.0.attention": torch.ones(3, 4, 5)},
            r"attention of shape \(3, 4, 5\); expected \(3, 1,",
        ),
        (PLAIN | {"cross.0.attention": torch.ones(3, 1, 4, 5).long()}, r"attention is of torch\.int64"),
        (FULL | {"cross.3.position_bias": torch.ones(2, 4, 5)}, r"position_bias of shape \(2, 4, 5\)"),
        (
            PLAIN | {"source_mask": SOURCE_MASK[:, 1:]},
            r"source_tokens of shape \(3, 5\) with a mask of shape \(3, 4\)",
        ),
        (
            PLAIN | {"target_tokens": torch.arange(4)},
            r"target_tokens of shape \(4,\) with a mask of shape \(3, 4\)",
        ),
        (PLAIN | {"target_outputs": torch.ones(3, 5)}, r"target_outputs of shape \(3, 5\)"),
        (PLAIN | {"source_mask": SOURCE_MASK & False}, "source_tokens row 0 is all padding: leave"),
        (
            PLAIN | {"source_tokens": torch.ones(2, 5), "source_mask": SOURCE_MASK[:2]},
            "2 sources with 3 targets",
        ),
    ],
)
def test_what_makes_no_pass_is_refused(given, message):
    with pytest.raises(BadInput, match=message):
        pass_of_tensors(given)
