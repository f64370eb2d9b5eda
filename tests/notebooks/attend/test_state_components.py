"""Variance explained and pictures: against plain loops and known answers, on tiny models."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from attnlib.decomposition import Components
from attnlib.errors import BadInput, UnknownName
from attnlib.plots.style import PART_COLOURS
from companion.results.config import override
from companion.results.result import Result
from companion.results.run import run
from companion.runs.store import Store
from notebooks.attend.state_components.drawing import (
    LABELLED,
    averages_against_exact,
    in_one_space,
    input_clusters,
    temporal_curves,
    variance_explained,
)
from notebooks.attend.state_components.experiment import PROFILES, Config, asks
from notebooks.attend.state_components.measure import (
    Drawn,
    HeldOutVariance,
    difference,
    measure_state_components,
    space_of,
)
from notebooks.attend.state_components.sentences import (
    exact_sentences,
    outcome_sentences,
    said,
    variance_sentences,
)

TINY = {"task": "one_to_one", "seeds": 1, "width": 8, "steps": 2, "fit_samples": 60}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def batch(seed, samples=50, length=6, n_tokens=5, width=3):
    rng = np.random.default_rng(seed)
    tokens = np.minimum(rng.geometric(0.4, size=(samples, length)), n_tokens - 1)
    tokens[:, 0] = 0
    states = rng.normal(size=(samples, length, width)) + tokens[:, :, None] + np.arange(length)[:, None]
    mask = np.arange(length) < rng.integers(2, length + 1, size=(samples, 1))
    return torch.from_numpy(states), torch.from_numpy(tokens), torch.from_numpy(mask)


def fitted(parts):
    states, _, mask = parts
    components = Components(5, mask.shape[1], states.shape[2], method="least_squares")
    return components.update(*parts)


def test_held_out_shares_agree_with_a_loop():
    training, held_out = batch(0), batch(1)
    exact = fitted(training)
    found = HeldOutVariance(exact).update(*held_out).result()
    averages = Components(5, 6, 3).update(*training)
    states, tokens, mask = training
    by_token = {w: states[mask & (tokens == w)].mean(0) for w in range(5)}
    errors, rows = dict.fromkeys(found, 0.0), []
    for sample, t in held_out[2].nonzero().tolist():
        h, w = held_out[0][sample, t], int(held_out[1][sample, t])
        rows.append(h)
        errors["temporal"] += float((h - states[mask[:, t], t].mean(0)).square().sum())
        errors["input"] += float((h - by_token[w]).square().sum())
        errors["additive"] += float((h - exact.temporal[t] - exact.input[w]).square().sum())
        errors["averages"] += float((h - averages.temporal[t] - averages.input[w]).square().sum())
    rows = torch.stack(rows)
    total = float((rows - rows.mean(0)).square().sum())
    for name in ("temporal", "input", "additive", "averages"):
        assert found[name] == pytest.approx(1 - errors[name] / total), name
    assert found["input_unique"] == pytest.approx(found["additive"] - found["temporal"])
    assert found["temporal_unique"] == pytest.approx(found["additive"] - found["input"])


def test_distance_of_the_two_fits_agrees_with_a_loop():
    training = batch(2)
    exact, averages = fitted(training), Components(5, 6, 3).update(*training)
    states, tokens, mask = training
    rows = states[mask]
    gaps = [
        exact.temporal[t] + exact.input[w] - averages.temporal[t] - averages.input[w]
        for t, w in zip(mask.nonzero()[:, 1].tolist(), tokens[mask].tolist(), strict=True)
    ]
    expected = torch.stack(gaps).square().sum() / (rows - rows.mean(0)).square().sum()
    assert difference(exact)["fit"] == pytest.approx(float(expected.sqrt()))
    assert difference(exact)["temporal"] > 0


def test_axes_of_components_in_a_known_plane():
    """mu along the first axis, chi along the second: one space of each part is that axis."""
    tokens = torch.tensor([[0, 1], [1, 0]])
    states = torch.zeros(2, 2, 3)
    states[:, :, 0] = torch.tensor([-2.0, 2.0])
    states[:, :, 1] = tokens * 2.0 - 1
    components = Components(2, 2, 3, method="least_squares").update(states + 7, tokens, tokens >= 0)
    drawn = Drawn.of(components)
    assert torch.allclose(drawn.temporal[:, 0], torch.tensor([-2.0, 2.0]).double())
    temporal = space_of([drawn], ("temporal",))
    assert torch.allclose(temporal.axes[0].abs(), torch.tensor([1.0, 0, 0]).double())
    assert temporal.explained.tolist() == pytest.approx([1, 0, 0], abs=1e-12)
    together = space_of([drawn], ("temporal", "input"))
    assert together.explained.tolist() == pytest.approx([0.8, 0.2, 0], abs=1e-12)
    assert together.project(drawn.input)[:, 1].abs().tolist() == pytest.approx([1, 1])


def test_every_architecture_has_values_and_pictures(tmp_path, models):
    result = run("state_components", out=tmp_path, models=models, overrides=TINY)
    assert set(result.values["one_to_one"]) == {"VED", "AED", "AO"}
    shares = result.values["one_to_one"]["AO"]["encoder"]
    assert 0 < shares["held_out"]["additive"]["value"] <= 1
    assert shares["fitted"]["additive"]["value"] >= shares["fitted"]["temporal"]["value"]
    assert all(result.tables.values())
    assert {record["word"] for record in result.tables["input"]} >= {"A", "<eos>", "a", "<bos>"}


def test_the_start_mark_is_all_temporal_in_pictures(models):
    trained = Store(models).model(asks(override(PROFILES["quick"], TINY))[0].spec)
    pictures = measure_state_components(trained, fit_samples=60)["pictures"]
    at = pictures["decoder"]["words"].index("<bos>")
    assert pictures["decoder"]["input"][at] == pytest.approx([0, 0, 0], abs=1e-3)


def test_only_the_first_seed_is_drawn():
    first, second = (
        ask.spec.seed for ask in asks(Config(task=("one_to_one",), architecture=("AO",), seeds=2))
    )
    assert (first, second) == (0, 1)


def test_settings_that_cannot_be():
    for settings, error, message in (
        ({"task": "one_to_won"}, UnknownName, "did you mean 'one_to_one'"),
        ({"architecture": "ADE"}, UnknownName, "did you mean"),
        ({"fit_samples": 0}, BadInput, "at least 1"),
        ({"width": 7}, BadInput, "odd"),
        ({"architecture": "VED", "task": "reversal"}, BadInput, "no model is left"),
    ):
        with pytest.raises(error, match=message):
            override(PROFILES["quick"], settings)


# State components as pictures: axes named, intervals there, labels that do not cover each other.

SHARES = ("temporal", "input", "additive", "averages", "temporal_unique", "input_unique")


def interval(value, half=0.05):
    return {"value": value, "low": value - half, "high": value + half, "n": 3}


def side(temporal, word):
    held_out = dict.fromkeys(SHARES, interval(0.5)) | {
        "additive": interval(0.9),
        "temporal_unique": interval(temporal),
        "input_unique": interval(word),
    }
    difference = {"temporal": interval(0.2), "input": interval(0.1), "fit": interval(0.1)}
    return {"held_out": held_out, "gain": interval(0.03), "difference": difference}


@pytest.fixture
def result() -> Result:
    found = {"encoder": side(0.1, 0.4), "decoder": side(0.3, 0.31)}
    tables: dict = {"temporal": [], "input": [], "states": [], "explained": []}
    for kind in ("VED", "AED"):
        name = {"task": "scan", "architecture": kind, "kind": kind}
        tables["explained"] += [
            name | {"space": space, "axis": axis, "share": 0.5 - 0.1 * axis}
            for space in ("temporal", "input", "together")
            for axis in range(3)
        ]
        for which in ("encoder", "decoder"):
            here = name | {"side": which}
            for i in range(4):
                place = {f"{axis}{n}": float(i * n) for axis in ("pc", "together") for n in (1, 2, 3)}
                tables["temporal"].append(here | {"position": i} | place)
                tables["input"].append(here | {"word": f"<{which}{i}>"} | place)
                tables["states"].append(here | {"word": f"<{which}{i}>", "pc1": 1.0, "pc2": 2.0})
    return Result("state_components", "quick", {"task": ["scan"], "seeds": 3},
                  {"scan": {"AED": found, "VED": deepcopy(found)}}, tables, {}, {})  # fmt: skip


@pytest.mark.parametrize("draw", [temporal_curves, input_clusters, in_one_space])
def test_a_panel_a_kind_with_the_axes_share_of_variance(result, draw):
    figure = draw(result, ("scan",))
    assert [axes.get_title() for axes in figure.get_axes()] == ["SCAN, VED", "SCAN, AED"]
    for axes in figure.get_axes():
        assert axes.get_xlabel() == "axis 1 (50 % of variance)"
        assert axes.get_ylabel() == "axis 2 (40 %)"


def test_words_are_labelled_without_their_marks(result):
    axes = input_clusters(result, ("scan",)).get_axes()[0]
    written = [text.get_text() for text in axes.texts]
    assert "encoder0" in written
    assert len(written) <= 2 * LABELLED


def test_both_sides_have_a_point_and_an_interval_for_every_share(result):
    left, right = variance_explained(result).get_axes()
    assert (left.get_title(), right.get_title()) == ("encoder states", "decoder states")
    for axes in (left, right):
        assert axes.get_xlabel() == "share of variance, held out"
        lines = [
            line for line in axes.get_lines() if len(line.get_xdata()) == 2 and line.get_color() != "#e5e5e5"
        ]
        assert len(lines) == 2 * 5
        assert {PART_COLOURS["temporal"], PART_COLOURS["input"]} <= {line.get_color() for line in lines}


def test_a_single_seed_has_points_without_intervals(result):
    for kind in result.values["scan"].values():
        for which in ("encoder", "decoder"):
            for share in kind[which]["held_out"].values():
                share["low"] = share["high"] = None
    lines = variance_explained(result).get_axes()[0].get_lines()
    assert not [
        line for line in lines if line.get_color() in PART_COLOURS.values() and len(line.get_xdata()) == 2
    ]


def test_the_two_fits_side_by_side(result):
    left, right = averages_against_exact(result).get_axes()
    assert left.get_xlabel().startswith("held-out share")
    assert "s.d." in right.get_xlabel()


def test_sentences_come_from_the_numbers(result):
    text = variance_sentences(result)
    assert "smaller in 2, and not to be told apart (intervals overlap) in 2" in text
    assert "0.90 [0.85, 0.95]" in text
    assert "4 of 4 sides" in exact_sentences(result)
    result.values["scan"]["AED"]["encoder"]["gain"] = interval(0.001)
    assert "3 of 4 sides" in exact_sentences(result)
    assert said({"value": -0.5, "low": None, "high": None, "n": 1}) == "−0.50"


def test_outcomes_name_the_sides_that_meet_a_condition_and_count_them(result):
    kinds = result.values["scan"]
    kinds["AED"]["quality"] = {"token_accuracy": interval(0.95)}
    kinds["VED"]["quality"] = {"token_accuracy": interval(0.6)}  # has not learned its task
    for kind in kinds.values():
        kind["decoder"]["held_out"]["additive"] = interval(0.4)
    assert outcome_sentences(result).splitlines() == [
        "* Less than half of the variance explained, where more than 90 % of the words are right: decoder of "
        "AED on SCAN (0.40 [0.35, 0.45]); 1 of 2 sides.",
        "* A unique part under 0.05: nowhere here.",
    ]
    kinds["AED"]["decoder"]["held_out"] |= {"additive": interval(0.9), "input_unique": interval(0.02, 0.01)}
    first, second = outcome_sentences(result).splitlines()
    assert first.endswith("right: nowhere here.")
    assert second.endswith("under 0.05: χ in the decoder of AED on SCAN (0.02 [0.01, 0.03]).")
