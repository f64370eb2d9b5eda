"""Heads of Transformers: numbers by hand, what holds by construction, and the experiment on tiny networks."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from attnlib.adapters.library_models import transformer_pass
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import Judgement
from attnlib.decomposition.components import Components
from notebooks.beyond.transformer_heads import experiment
from notebooks.shared.spearman import spearman
from tests.attnlib.models.model_builders import SMALL, batch_of, transformer
from tests.notebooks.figure_builders import tiny

KINDS = ("cross", "encoder_self", "decoder_self")


pytestmark = pytest.mark.usefixtures("few_resamples")


def head(task="one_to_one", positions="sinusoidal", seed=0, layer=1, number=0.0, **more):
    """A row of cross-attention with the same number everywhere, but for ``more``."""
    numbers = dict.fromkeys(("temporal_share", "input_share", "mixed_share", "residual_share"), number)
    numbers |= dict.fromkeys(("typicality", "temporal_rebuilds", "input_rebuilds"), number)
    named = {"task": task, "positions": positions, "seed": seed, "layer": layer, "head": 1}
    return named | {"kind": "cross", "state": "trained", "varies": 1, "learned": 1} | numbers | more


def test_steps_that_read_a_double_by_hand():
    # A B A C: after reading A (steps 1 and 3) the word has a double, after B it has none. D E: never.
    batch = batch_of(pairs=[(text, text) for text in ([4, 5, 4, 6], [7, 8])])
    once, again = experiment.steps_by_reading(batch)
    assert once.nonzero().tolist() == [[0, 2], [1, 1]]
    assert again.nonzero().tolist() == [[0, 1], [0, 3]]


@pytest.mark.parametrize("positions", ["sinusoidal", "relative", "rotary"])
def test_shares_of_a_head_sum_to_one_and_a_bias_is_counted(positions):
    texts = np.random.default_rng(0).integers(4, 8, size=(60, 5)).tolist()
    one = transformer_pass(transformer(positions=positions), batch_of(pairs=[(text, text) for text in texts]))
    judgement = Judgement(Fit().update(one)).update(one)
    rows = experiment.numbers_of_heads(judgement)
    assert len(rows) == len(KINDS) * SMALL.layers * SMALL.heads
    shares = judgement.heads["cross.1", 0].terms.result().covariance
    content = ("input·input", "input·residual", "residual·input", "residual·residual")
    (second,) = (row for row in rows if (row["kind"], row["layer"], row["head"]) == ("cross", 1, 0))
    assert second["content_share"] == pytest.approx(sum(shares[name] for name in content), abs=1e-8)
    mixed = shares["temporal·input"] + shares["input·temporal"]
    assert second["mixed_share"] == pytest.approx(mixed, abs=1e-8)
    for row in rows:
        parts = ("temporal", "input", "mixed", "residual", "position_bias")
        assert sum(row[f"{part}_share"] for part in parts) == pytest.approx(1, abs=1e-6)
        biased = positions == "relative" and row["kind"] != "cross"
        assert (row["position_bias_share"] != 0) == biased
        assert (row["position_rebuilds"] != row["temporal_rebuilds"]) == biased


def test_variance_of_states_by_hand():
    """Word + position has no residual; a product of both signs has nothing but."""
    tokens = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])
    everywhere = torch.ones(4, 2, dtype=torch.bool)
    place = torch.tensor([0.0, 1.0]).expand(4, 2)
    sums = Components(2, 2, 1, method="least_squares")
    sums.update((3.0 * tokens + place)[..., None], tokens, everywhere)
    signs = Components(2, 2, 1, method="least_squares")
    signs.update(((2.0 * tokens - 1) * (2 * place - 1))[..., None], tokens, everywhere)
    added, product = experiment.state_rows({"added": sums, "product": signs})
    assert (added["input_unique"], added["temporal_unique"]) == pytest.approx((0.9, 0.1))  # 9 : 1
    assert (added["residual"], product["residual"]) == (0, 1)


@pytest.mark.slow
def test_the_first_layer_holds_what_it_must(store):
    """As the page says: nothing left before the norm; without added positions nothing after it either."""
    config = tiny("transformer_heads")
    states = experiment.compute(config, store)[0]["states"]["one_to_one"]
    for positions in config.positions:
        sites = "encoder.embedded", "encoder.0.self"
        before, after = (states[positions][site]["trained"] for site in sites)
        assert (before["residual"]["value"], before["residual"]["high"]) == (0, 0)
        bare = positions != "sinusoidal"
        assert (after["residual"]["value"] == 0, after["temporal_unique"]["value"] == 0) == (bare, bare)


def test_correlation_is_over_heads_and_leaves_out_those_without_shares():
    draw = np.random.default_rng(3)
    rows, left_out = [], []
    for task, seed in product(("one_to_one", "reordering"), range(3)):
        for typical, share in draw.random((4, 2)):
            shares = {"temporal_share": typical**3, "input_share": share}
            rows.append(head(task, seed=seed, typicality=typical, **shares))
        left_out.append(head(task, seed=seed, typicality=0.99, temporal_share=None, varies=0))
    found = experiment.correlations(pd.DataFrame([*rows, *left_out]))
    own = found["temporal"]
    assert (own["value"], own["low"], own["high"]) == pytest.approx((1, 1, 1))
    assert (own["heads"], own["left_out"], own["n"]) == (24, 6, 6)
    plain = spearman(*(np.array([row[name] for row in rows]) for name in ("typicality", "input_share")))
    assert found["input"]["value"] == pytest.approx(plain)
    assert found["residual"]["value"] is None  # constant
    assert found["temporal_rebuilds"]["heads"] == 24  # which all heads have: the same are left out


def test_last_less_first_by_hand():
    rows = [
        head(seed=0, layer=1, number=0.1),
        head(seed=0, layer=1, number=0.3),  # another head: mean 0.2
        head(seed=0, layer=2, number=9.0),  # between
        head(seed=0, layer=3, number=0.6),
        head("reordering", seed=0, layer=1, number=0.5),
        head("reordering", seed=0, layer=3, number=0.5),
        head(seed=1, layer=1, number=0.0),
        head(seed=1, layer=3, number=0.4),
        head(seed=1, layer=3, number=None),
        head(seed=0, layer=3, number=5.0) | {"state": "untrained"},
        head(seed=0, layer=3, number=5.0) | {"kind": "encoder_self"},
    ]
    found = experiment.last_less_first(pd.DataFrame(rows))
    assert found["value"] == pytest.approx(np.mean([np.mean([0.4, 0.0]), 0.4]))
    assert found["n"] == 2


def test_differences_by_hand():
    numbers = {  # by seed: one-to-one and reordering with two kinds of positions
        0: {"sinusoidal": (0.9, 0.4), "rotary": (0.6, 0.5)},
        1: {"sinusoidal": (0.8, 0.7), "rotary": (0.7, 0.3)},
    }
    rows = [
        head(task, positions, seed, number=number)
        for seed, kinds in numbers.items()
        for positions, pair in kinds.items()
        for task, number in zip(("one_to_one", "reordering"), pair, strict=True)
    ]
    every = experiment.differences(pd.DataFrame(rows))
    found = every["one_to_one_less_reordering"]
    assert found["smallest"]["value"] == pytest.approx(0.1)  # rotary's 0.1, then sinusoidal's 0.1
    assert found["rotary"]["value"] == pytest.approx((0.1 + 0.4) / 2)
    assert every["sinusoidal_less"]["rotary"]["value"] == pytest.approx((0.3 + 0.1) / 2)
    more = [head(experiment.ANCHORED, "rotary", seed, number=0.9) for seed in numbers]
    every = experiment.differences(pd.DataFrame([*rows, *more]))
    assert every["anchored_less_free"]["rotary"]["value"] == pytest.approx(0.25)
    found = experiment.differences(pd.DataFrame(rows[:-1]))["one_to_one_less_reordering"]
    assert found["smallest"]["n"] == 1  # a seed without a kind, rotary on reordering, has no smallest
    found = experiment.differences(pd.DataFrame([*rows[:-1], rows[-1] | {"learned": 0}]))
    assert found["one_to_one_less_reordering"]["smallest"]["n"] == 1  # nor has one that did not learn it
    nothing = experiment.differences(pd.DataFrame([row | {"learned": 0} for row in rows]))["sinusoidal_less"]
    assert nothing["rotary"]["value"] is None
