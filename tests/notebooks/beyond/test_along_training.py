"""The measure against plain loops, the order of takeovers by hand, and the experiment on tiny networks."""

import math
from itertools import combinations, pairwise

import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.plots.style import as_svg
from attnlib.training.corpus import collate
from companion.results.config import override, plain
from companion.results.result import Result
from companion.runs.along_training import Settings, load_task, network_at
from companion.runs.store import Store
from notebooks.beyond.along_training.drawing import DOTS, FIGURES, courses, held_uniform, spread, takeovers
from notebooks.beyond.along_training.experiment import (
    PROFILES,
    QUANTITIES,
    Config,
    after,
    compute,
    models,
    order_values,
)
from notebooks.beyond.along_training.measure import (
    _links,
    log_probe,
    measure_along_training,
    positions_of_words,
    word_knowledge,
)
from notebooks.beyond.along_training.sentences import (
    changed_mind_sentences,
    elsewhere_sentence,
    order_sentences,
    order_table,
    prediction_table,
    share_table,
    takeover_sentences,
    term_sentences,
    term_table,
    uniform_sentences,
)

TINY = Config(
    task=("reordering", "copying_sample"),
    uniform=("copying_sample",),
    seeds=2,
    fewest_phrases=2,
    most_phrases=3,
    length=5,
    n_train=80,
    n_held_out=20,
    width=6,
    steps=4,
    batch_size=16,
    looks_per_doubling=1,
    fitted=40,
    judged=10,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    torch.set_num_threads(1)
    return Store(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def recording(store):
    return store.recording(models(TINY)[0])


def test_the_probe_is_what_the_network_says_with_all_attention_on_one_position(recording):
    network, task = network_at(recording, -1), load_task(recording.spec.resolved)
    batch = collate(task.held_out, range(6))
    trace = network(batch)
    found = log_probe(network, trace).exp()
    for t in range(batch.source.shape[1]):
        context = trace.encoder_states[:, t, None].expand_as(trace.decoder_states)
        logits = network.readout(torch.cat([trace.decoder_states, context], -1))
        right = logits.softmax(-1).gather(-1, batch.target_output[..., None])[..., 0]
        valid = batch.target_mask & batch.source_mask[:, t, None]
        torch.testing.assert_close(found[:, :, t][valid], right[valid])
        assert not found[:, :, t][~valid].any()


def test_the_measure_is_that_of_a_loop_over_words(recording):
    """Sample by sample without padding, at the last look."""
    measured = measure_along_training(recording, fitted=40, judged=10)
    network, task = network_at(recording, -1), load_task(recording.spec.resolved)
    sums = dict.fromkeys(("translation", "on_word", "on_end", "token_accuracy", "chance"), 0.0)
    words = 0
    for sample in range(10):
        batch = collate(task.held_out, [sample])
        with torch.no_grad():
            trace = network(batch)
        probe, attention = log_probe(network, trace)[0].exp(), trace.attention[0]
        source = batch.source[0].tolist()
        for target, place in task.gold[sample]:
            same = [t for t, word in enumerate(source) if word == source[place]]
            sums["translation"] += float(probe[target, same].sum() / probe[target].sum())
            sums["on_word"] += float(attention[target, same].sum())
            sums["on_end"] += float(attention[target, -1])
            sums["chance"] += len(same) / len(source)
            sums["token_accuracy"] += float(
                trace.logits[0, target].argmax() == batch.target_output[0, target]
            )
            words += 1
    for name, total in sums.items():
        value = measured[name] if name == "chance" else measured[name][-1]
        assert value == pytest.approx(total / words, abs=1e-6), name


def test_shares_sum_to_one_and_all_terms_would_rebuild_everything(recording):
    measured = measure_along_training(recording, fitted=40, judged=10)
    for look in range(len(measured["steps"])):
        shares = [values[look] for name, values in measured.items() if name.startswith("share.")]
        assert len(shares) == 9
        assert sum(shares) == pytest.approx(1)
        for name in ("temporal_only", "input_only", "with_input", "no_residual"):
            assert 0 <= measured[f"rebuilt.{name}"][look] + measured["uniform"][look] <= 1
    assert measured["seen"] == [1.0] * len(measured["steps"])


def test_text_without_gold_links_is_linked_by_its_counts(tmp_path):
    """Pairs of words of a lexicon, the second one first in the target: IBM Model 1 finds who is who."""
    lexicon = {"red": "rouge", "owl": "hibou", "sees": "voit", "two": "deux"}
    lines = list(combinations(lexicon, 2)) * 20
    for name, side in (("a", lines), ("b", [[lexicon[word] for word in line[::-1]] for line in lines])):
        (tmp_path / name).write_text("\n".join(map(" ".join, side)) + "\n", encoding="utf-8")
    options = (("source", str(tmp_path / "a")), ("target", str(tmp_path / "b")))
    assert load_task(Settings(task="parallel", options=options)).gold is None
    assert _links("parallel", options, 8) == (frozenset({(0, 1), (1, 0)}),) * 8


def _measured(**courses):
    """Three looks, at 0, 1 and 3 updates."""
    names = ("translation", "best_over_mean", "word_accuracy", "rebuilt.temporal_only", "rebuilt.input_only")
    found = {"steps": [0, 1, 3], "uniform": [1, 0.9, 0.5], "rebuilt.with_input": [0, 0, 0]}
    found |= {name: [0.0, 0.0, 0.0] for name in (*names, "on_word", "agreement", "token_accuracy")}
    found |= {f"share.{name}_{name}": [0.1, 0.1, 0.1] for name in ("temporal", "input")}
    return found | courses


def test_the_order_of_two_takeovers_is_by_hand():
    measured = _measured(**{"translation": [0, 0.5, 1], "rebuilt.temporal_only": [0, 0, 1]})
    # translation at 1; temporal halfway from log2(2) to log2(4): 2 ** 1.5 - 1
    assert after(measured, "temporal", "translation", 0.05) == pytest.approx(math.log2(2**1.5 - 1))
    assert after(measured, "input", "translation", 0.05) is None
    values = order_values({"scan": [({"seed": 0}, measured), ({"seed": 1}, _measured())]}, 0.05)
    assert values["order"]["scan"]["temporal_after_translation"]["n"] == 1
    assert values["order"]["scan"]["input_after_translation"]["value"] is None


def test_beyond_is_what_temporal_terms_do_not_rebuild():
    measured = _measured(**{"rebuilt.temporal_only": [0.0, 0.05, 0.3]})
    assert [QUANTITIES["beyond"](measured, i) for i in range(3)] == pytest.approx([0, 0.05, 0.2])


def test_values_and_tables_have_every_task(store):
    values, tables = compute(TINY, store)
    for task in TINY.task:
        assert set(values["takeover"][task]) == set(QUANTITIES) == set(values["left_out"][task])
        assert {"temporal_after_translation", "input_after_translation"} <= set(values["order"][task])
        assert values["last"][task]["uniform"]["n"] == 2
        for name in QUANTITIES:
            assert values["left_out"][task][name] == 2 - values["takeover"][task][name]["n"]
    assert set(values["uniform"]) == {"copying_sample"}
    found = values["uniform"]["copying_sample"]
    assert found["above_chance"]["value"] == pytest.approx(found["translation"]["value"] - 1 / 6, abs=1e-6)
    learned = values["last"]["copying_sample"]["translation"]["value"]
    assert found["less_learned"]["value"] == pytest.approx(found["translation"]["value"] - learned, abs=1e-6)
    looks = [0, 2, 4]
    rows = [r for r in tables["courses"] if (r["task"], r["attention"]) == ("reordering", "learned")]
    assert [r["step"] for r in rows] == looks * len(QUANTITIES)
    assert len(tables["networks"]) == 2 * 2 * len(QUANTITIES)


def test_predictions_have_their_keys_at_the_profiles_that_judge_them():
    assert {"one_to_one", "reordering", "copying_sample", "copying_permutation"} == set(
        PROFILES["quick"].task
    )
    assert "multi30k_en_fr" in PROFILES["paper"].task


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"task": "copying_samples"}, UnknownName, "did you mean 'copying_sample'"),
        ({"judged": 0}, BadInput, "judged is 0"),
        ({"least": 0.0}, BadInput, "least is 0"),
        ({"steps": 0}, BadInput, "steps is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        override(PROFILES["quick"], given)


# The figures and sentences of the chapter say what their result says, and survive what is missing.

SENTENCES = (
    takeover_sentences,
    order_sentences,
    term_sentences,
    elsewhere_sentence,
    uniform_sentences,
    changed_mind_sentences,
)
TASKS = ("one_to_one", "reordering", "copying_sample", "copying_permutation")
TINY_DRAWN = Config(
    seeds=2, shortest=5, longest=5, fewest_phrases=2, most_phrases=2, length=5, n_train=40, n_held_out=12,
    width=4, steps=2, batch_size=16, fitted=20, judged=8,
)  # fmt: skip


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    torch.set_num_threads(1)
    values, tables = compute(TINY_DRAWN, Store(tmp_path_factory.mktemp("models")))
    return Result("along_training", "quick", plain(TINY_DRAWN), values, tables, {}, {})


@pytest.fixture
def without(result):
    """A result of a run that asked for one task and no uniform attention."""
    values = {
        name: {task: own for task, own in content.items() if task == "reordering"}
        for name, content in result.values.items()
    }
    values["uniform"] = {}
    tables = {
        name: [r for r in rows if r["task"] == "reordering" and r.get("attention") != "uniform"]
        for name, rows in result.tables.items()
    }
    return Result("along_training", "quick", result.config, values, tables, {}, {})


def found(result, task, quantity, value, half=0.25, left_out=0):
    """Sets a takeover in a result."""
    row = next(r for r in result.tables["takeovers"] if (r["task"], r["quantity"]) == (task, quantity))
    interval = {"value": value, "low": None, "high": None, "n": 2 - left_out}
    if value is not None:
        interval |= {"low": value - half, "high": value + half}
    row |= interval | {"left_out": left_out}
    result.values["takeover"][task][quantity] = interval


def test_there_is_a_panel_a_task_with_a_label_a_line(result):
    axes = courses(result).get_axes()
    assert [a.get_title(loc="left") for a in axes] == [
        "one-to-one", "reordering", "copying samples", "copying permutations",
    ]  # fmt: skip
    assert {text.get_text() for text in axes[0].texts} == {
        "temporal terms", "input terms", "terms with an input", "translation", "words right",
    }  # fmt: skip


def test_dots_stand_where_the_table_has_them_and_what_never_rises_is_said(result):
    for task in TASKS:
        for quantity in QUANTITIES:
            found(result, task, quantity, 3.0)
    found(result, "reordering", "input", None, left_out=2)
    found(result, "copying_sample", "input", 4.0, left_out=1)
    axes = takeovers(result).get_axes()[0]
    assert {text.get_text() for text in axes.texts} == {"never", "never in 1 of 2"}
    dots = [line for line in axes.get_lines() if line.get_marker() == DOTS["temporal"][2]]
    assert [line.get_xdata()[0] for line in dots if line.get_color() == DOTS["temporal"][1]] == [3.0] * 4
    text = takeover_sentences(result)
    assert "temporal terms at 8.0 [6.7, 9.5]" in text
    assert "Never, in no network: input terms." in text


def test_labels_are_spread_within_the_axes():
    apart = spread([0.0, 0.0, 0.01], 0.1)
    assert apart[0] >= 0
    assert all(b - a >= 0.099 for a, b in pairwise(apart))
    assert spread([0.2, 0.8], 0.1) == [0.2, 0.8]
    assert spread([1.0, 1.0], 0.1)[-1] <= 1.02


def test_words_on_order_follow_the_intervals(result):
    order = result.values["order"]["reordering"]
    order["temporal_after_translation"] = {"value": -1.0, "low": -1.5, "high": -0.5, "n": 2}
    order["on_word_after_translation"] = {"value": 0.1, "low": -0.5, "high": 0.7, "n": 2}
    order["input_after_translation"] = {"value": None, "low": None, "high": None, "n": 0}
    lines = dict(line.split("**: ") for line in order_sentences(result).splitlines())
    assert "before translation in reordering (−1.00 [−1.50, −0.50])" in lines["* **Temporal terms"]
    assert "not to be told from that of translation in reordering" in lines["* **Attention on the right word"]
    assert "not comparable in" in lines["* **Input terms"]


def test_predictions_are_judged_from_the_values_and_undefined_ones_fail(result):
    table = prediction_table(result)
    assert len(table) == 4
    result.values["order"]["one_to_one"]["temporal_after_translation"] = {
        "value": -1.0, "low": -1.5, "high": -0.5, "n": 2,
    }  # fmt: skip
    result.values["order"]["reordering"]["input_after_translation"] = {
        "value": None, "low": None, "high": None, "n": 0,
    }  # fmt: skip
    table = prediction_table(result)
    verdict = {says.split()[0] + says.split()[1]: row["verdict"] for says, row in table.iterrows()}
    assert verdict["Inone-to-one"] == "reproduced"
    assert verdict["Wherewords"] == "not reproduced"


@pytest.mark.parametrize("figure", FIGURES)
def test_figures_are_drawn_of_much_and_of_little(figure, result, without):
    assert as_svg(figure(result)).startswith("<?xml")
    assert as_svg(figure(without)).startswith("<?xml")


def test_twins_are_two_lines_and_chance_a_third(result):
    for axes in held_uniform(result).get_axes():
        assert len(axes.get_lines()) == 3


@pytest.mark.parametrize("sentences", SENTENCES)
def test_sentences_are_written_of_much_and_of_little(sentences, result, without):
    assert "None" not in sentences(result)
    assert sentences(without)


def test_tables_have_a_row_a_task(result, without):
    assert list(term_table(result).columns) == [a + b for a in "μχΔ" for b in "μχΔ"]
    assert len(order_table(result)) == 3 * len(TASKS)
    assert list(share_table(without).index) == ["reordering"]


def interval(low, high):
    return {"value": (low + high) / 2, "low": low, "high": high, "n": 5}


def test_what_would_change_our_mind_is_held_against_the_intervals(without):
    values, task = without.values, "reordering"
    open_, below = interval(-1.0, 1.0), interval(-2.0, -1.0)
    values["uniform"] = {task: {"above_chance": interval(0.1, 0.2)}}
    values["last"][task] |= {"on_word": interval(0.5, 0.6), "chance": interval(0.1, 0.1)}
    values["order"][task]["input_after_translation"] = open_
    values["order_by_accuracy"][task] |= {
        "input_after_translation": open_,
        "on_word_after_translation": open_,
    }
    assert changed_mind_sentences(without) == "Not seen here: the first, second and third."
    values["order"][task]["input_after_translation"] = below
    assert changed_mind_sentences(without) == (
        "The third has happened in reordering (by the share of β −1.50 [−2.00, −1.00], by the largest β "
        "0.00 [−1.00, 1.00]). Not seen here: the first and second."
    )
    values["order_by_accuracy"][task]["on_word_after_translation"] = below
    values["uniform"][task]["above_chance"] = interval(-0.1, 0.1)
    assert changed_mind_sentences(without).startswith(
        "The first has happened in reordering (0.00 [−0.10, 0.10] above chance). The second has happened in "
    )
    assert "Not seen" not in changed_mind_sentences(without)


# The three measures by hand: two rows of three positions, one with a word that stands twice, and padding.

SOURCE = torch.tensor([[7, 8, 7, 0]])
MASK = torch.tensor([[True, True, True, False]])
LINKS = torch.zeros(1, 4, 4, dtype=torch.bool)
LINKS[0, 0, 2] = LINKS[0, 1, 1] = True  # word 7 at its second place, word 8; the rest has no link
PROBE = torch.tensor([[0.1, 0.2, 0.1, 0], [0.3, 0.1, 0.1, 0], [0.2, 0.2, 0.2, 0], [0, 0, 0, 0]])[None].log()


def test_words_stand_wherever_their_source_word_stands():
    found = positions_of_words(SOURCE, LINKS)[0]
    assert found.int().tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [0] * 4, [0] * 4]


def test_measures_are_those_by_hand():
    found = word_knowledge(PROBE, positions_of_words(SOURCE, LINKS), MASK)
    assert found.share[0, :2].tolist() == pytest.approx([0.5, 0.2])
    assert found.chance[0, :2].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert found.right[0, :2].tolist() == [0, 0]
    logs = [math.log(0.2 / (0.4 / 3)), math.log(0.3 / (0.5 / 3)), 0]
    assert found.best_over_mean[0, :3].tolist() == pytest.approx(logs, abs=1e-6)


def test_rows_without_a_word_and_padding_have_no_share():
    found = word_knowledge(PROBE, positions_of_words(SOURCE, LINKS), MASK)
    for value in (found.share, found.chance, found.right):
        assert value[0, 2:].isnan().all()
    assert found.best_over_mean[0, 3].isnan()


def test_even_probes_are_at_chance_and_ties_are_shared():
    words = positions_of_words(SOURCE, LINKS)
    even = torch.full((1, 4, 4), 0.25).log().masked_fill(~MASK[:, None], -torch.inf)
    found = word_knowledge(even, words, MASK)
    torch.testing.assert_close(found.share[0, :2], found.chance[0, :2])
    torch.testing.assert_close(found.right[0, :2], found.chance[0, :2])


def test_a_factor_of_a_whole_row_changes_nothing():
    words = positions_of_words(SOURCE, LINKS)
    found, scaled = word_knowledge(PROBE, words, MASK), word_knowledge(PROBE - 3.0, words, MASK)
    torch.testing.assert_close(found.share, scaled.share, equal_nan=True)
    torch.testing.assert_close(found.best_over_mean, scaled.best_over_mean, equal_nan=True)


def test_a_word_at_padding_and_shapes_that_differ_are_refused():
    with pytest.raises(BadInput, match="stands at padding"):
        word_knowledge(PROBE, torch.ones(1, 4, 4, dtype=torch.bool), MASK)
    with pytest.raises(BadInput, match="expected"):
        word_knowledge(PROBE[:, :, :3], LINKS, MASK)
