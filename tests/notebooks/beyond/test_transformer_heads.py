"""Heads of Transformers: what holds by construction, correlations, and the report of the tutorial."""

import html
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from attnlib.adapters.library_models import transformer_pass
from attnlib.analysis.fit import Fit
from attnlib.analysis.judge import JudgedSums
from attnlib.decomposition.components import Components
from companion.results.result import Result
from companion.results.run import computed
from notebooks.beyond.transformer_heads import experiment
from notebooks.beyond.your_own_model import experiment as your_own_model
from notebooks.beyond.your_own_model.report import framed_report
from notebooks.shared.intervals import spearman
from tests.attnlib.models.model_builders import SMALL, batch_of, transformer
from tests.notebooks.figure_builders import tiny

KINDS = ("cross", "encoder_self", "decoder_self")

pytestmark = pytest.mark.usefixtures("few_resamples")


def head(task, seed, **numbers):
    """A row of cross-attention with zeros but for these."""
    kind = {"positions": "sinusoidal", "kind": "cross", "state": "trained", "varies": 1, "learned": 1}
    return {"task": task, "seed": seed} | kind | dict.fromkeys(experiment.AGAINST, 0.0) | numbers


@pytest.mark.parametrize("positions", ["sinusoidal", "relative", "rotary"])
def test_shares_of_a_head_sum_to_one_and_a_bias_is_counted(positions):
    texts = np.random.default_rng(0).integers(4, 8, size=(60, 5)).tolist()
    one = transformer_pass(transformer(positions=positions), batch_of(pairs=[(text, text) for text in texts]))
    judgement = JudgedSums(Fit(method="means").update(one)).update(one)
    rows = experiment.numbers_of_heads(judgement)
    assert len(rows) == len(KINDS) * SMALL.layers * SMALL.heads
    shares = judgement.heads["cross.1", 0].shares.covariance
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
    sums = Components(1, n_tokens=2, n_positions=2, method="least_squares")
    sums.update((3.0 * tokens + place)[..., None], tokens, everywhere)
    signs = Components(1, n_tokens=2, n_positions=2, method="least_squares")
    signs.update(((2.0 * tokens - 1) * (2 * place - 1))[..., None], tokens, everywhere)
    added, product = experiment.state_rows({"added": sums, "product": signs})
    assert (added["input_unique"], added["temporal_unique"]) == pytest.approx((0.9, 0.1))  # 9 : 1
    assert (added["residual"], product["residual"]) == (0, 1)


@pytest.mark.long
def test_the_first_layer_holds_what_it_must(store):
    """As the page says: nothing left before the norm; without added positions nothing after it either."""
    config = tiny("transformer_heads")
    states = experiment.compute(config, store)[0]["states"]["one_to_one"]
    for positions in config.positions:
        sites = "encoder.embedded", "encoder.0.self"
        before, after = (states[positions][site]["trained"] for site in sites)
        assert (before["residual"]["value"], before["residual"]["high"]) == (0, 0)
        bare = positions not in ("sinusoidal", "learned")
        assert (after["residual"]["value"] == 0, after["temporal_unique"]["value"] == 0) == (bare, bare)


def test_correlation_is_over_heads_and_leaves_out_those_without_shares():
    draw = np.random.default_rng(3)
    rows, left_out = [], []
    for task, seed in product(("one_to_one", "reordering"), range(3)):
        for typical, share in draw.random((4, 2)):
            shares = {"temporal_share": typical**3, "input_share": share}
            rows.append(head(task, seed, typicality=typical, **shares))
        left_out.append(head(task, seed, typicality=0.99, temporal_share=None, varies=0))
    found = experiment.correlations(pd.DataFrame([*rows, *left_out]))
    own = found["temporal"]
    assert (own["value"], own["low"], own["high"]) == pytest.approx((1, 1, 1))
    assert (own["heads"], own["left_out"], own["n"]) == (24, 6, 6)
    plain = spearman(*(np.array([row[name] for row in rows]) for name in ("typicality", "input_share")))
    assert found["input"]["value"] == pytest.approx(plain)
    assert found["residual"]["value"] is None  # constant
    assert found["temporal_rebuilds"]["heads"] == 24  # which all heads have: the same are left out


def test_correlation_resamples_tasks_and_not_what_codes_their_positions(monkeypatch):
    drawn = []
    monkeypatch.setattr(experiment, "bootstrapped", lambda groups, *_: drawn.append(groups) or {})
    kinds = product(("one_to_one", "scan"), ("sinusoidal", "rotary"), range(2))
    rows = [head(task, seed, positions=positions, typicality=0.5) for task, positions, seed in kinds]
    experiment.correlations(pd.DataFrame(rows))
    assert {task: len(networks) for task, networks in drawn[0].items()} == {"one_to_one": 4, "scan": 4}


def test_of_a_source_with_one_position_the_lexical_probe_is_the_networks_own_probability():
    network, batch = transformer(), batch_of(pairs=[([], [4, 7]), ([], [5])])  # end marks alone
    trace = network(batch)
    own = trace.logits.softmax(-1).gather(2, trace.target_outputs[..., None])[..., 0]  # (batch, target)
    probe = your_own_model.lexical_probe(network, trace)
    torch.testing.assert_close(probe, (own * trace.target_mask)[..., None])


def test_positions_of_a_source_have_different_lexical_probes():
    network, batch = transformer(), batch_of()
    probe = your_own_model.lexical_probe(network, network(batch))
    first, second = probe[0, 0, :2].tolist()
    assert first != pytest.approx(second)


def test_the_report_says_how_well_the_model_predicts_and_agrees_with_the_probe(store):
    outcome = computed(your_own_model, tiny("your_own_model"), store)
    assert outcome.values["learned"]["sentences"] > 0
    cross = [row for row in outcome.tables["heads"] if row["kind"] == "cross"]
    assert all(0 <= row["agreement_with_probe"] <= 1 for row in cross)


def test_every_column_of_a_measured_report_is_declared(store):
    config = tiny("your_own_model")
    (measurement,) = your_own_model.measurements(config)
    measured, tables = measurement.answer(store), your_own_model.compute(config, store)
    for name in your_own_model.ROWS:
        assert set(measured[name][0]) == set(tables[name].frame)


def test_the_frame_of_the_report_holds_the_page_and_lets_nothing_run(store):
    config = tiny("your_own_model")
    outcome = computed(your_own_model, config, store)
    numbers = {"values": outcome.values, "tables": outcome.tables}
    frame = framed_report(Result("your_own_model", "quick", vars(config), data={}, **numbers))
    assert re.match(r'<iframe [^<>]*sandbox="" [^<>]*></iframe>$', frame)
    page = html.unescape(frame.partition('srcdoc="')[2])
    assert page.count("<h2") >= 5
    assert not re.search(r"<script|<[^<>]*\s(on\w+|src)=", page)
