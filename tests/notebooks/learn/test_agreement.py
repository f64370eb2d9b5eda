"""Agreement: what is measured of recordings, numbers of the tables and their intervals, worked by hand."""

import json
import math
from functools import partial
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import one_hot

from attnlib.probes.agreement import agreement, halves
from companion.results.frames import Table
from companion.runs.columns import INTERVAL
from companion.runs.store import Store
from notebooks.learn.agreement import experiment
from notebooks.learn.agreement.drawing import is_shown_only
from notebooks.learn.agreement.experiment import Config, best_checkpoint, contextualise, over_pairs, rows
from notebooks.shared import agreement as measures
from notebooks.shared.agreement import measure_agreement, measure_course, measure_salient_words
from notebooks.shared.intervals import mean_interval
from notebooks.shared.trainings.translation import padded_cells
from tests.attnlib.refusals import assert_refused
from tests.notebooks.figure_builders import Given, computed, recording_of
from tests.notebooks.worked import assert_answer
from tests.tables import beside

# Recordings of classifiers whose every agreement can be worked by hand.

TEXTS = 8
# Right at first on all texts that select and none that report, then on half of those that select and all that
# report: 50 % and 75 % of all. So the half that selects takes the first snapshot, all take the second.
CORRECT = ("1111 0000", "1100 1111")


def by_text(snapshots):
    """In the order of the texts; ``"0000 0111"`` has a digit a text, those that select first."""
    digits = torch.tensor([list(map(int, pattern.replace(" ", ""))) for pattern in snapshots])
    return digits[:, torch.cat(halves(TEXTS)).argsort()]


def recorded(seed=0, correct=CORRECT, train=None, **by_position):
    """A classifier looked at twice, on eight texts of two words; which word is the top is given as 0 or 1.

    With ``train``, what is right of that part, it was looked at on the training texts too, and alike.
    """
    tensors = {
        "steps": torch.tensor([0, 10]),
        "validation.offsets": torch.arange(0, 2 * TEXTS + 1, 2),
        "validation.labels": torch.tensor([0, 1] * (TEXTS // 2)),
        "validation.correct": by_text(correct).bool(),
    }
    for name, snapshots in by_position.items():
        tensors[f"validation.{name}"] = one_hot(by_text(snapshots), 2).float().flatten(1)
    if train is not None:
        tensors |= {name.replace("validation", "train"): value.clone() for name, value in tensors.items()}
        tensors["train.correct"] = by_text(train).bool()
    return recording_of(tensors, seed)


# What is measured of recordings, one alone or two together.

SAME = {name: ["0000 0000"] * 2 for name in ("attention", "saliency", "log_polarity")}


def sums(measured, sides, place, measure="agreement"):
    """Of each half, by checkpoint: the total over its four texts."""
    by_half = measured["parts"]["validation"][sides][str(place)][measure]
    assert all(rest == [4, 0] for snapshots in by_half.values() for _, *rest in snapshots)
    return {half: [total for total, *_ in snapshots] for half, snapshots in by_half.items()}


def of_two_runs():
    first = recorded(attention=["0000 0000", "1111 1111"], train=["1100 0000", "0000 1000"])
    second = recorded(log_polarity=["0001 0111", "0000 0011"], train=["0000 0000"] * 2)
    return measure_agreement(first, second, pairs="attention~probe")


def test_the_best_snapshot_is_where_a_half_or_all_of_a_part_have_it_best():
    best = of_two_runs()["best"]
    assert best["validation"] == {"accuracy": {"all": 1, "selecting": 0}}
    assert best["train"] == {"accuracy": {"all": 0, "selecting": 0}}


def test_the_first_run_is_taken_at_its_best_snapshots():
    parts = of_two_runs()["parts"]
    assert list(parts["validation"]["attention~probe"]) == ["0", "1"]
    assert list(parts["train"]["attention~probe"]) == ["0"]


def test_the_second_run_is_taken_at_every_snapshot():
    measured = of_two_runs()
    assert sums(measured, "attention~probe", 0) == {"selecting": [3, 4], "reporting": [1, 2]}
    assert sums(measured, "attention~probe", 1) == {"selecting": [1, 0], "reporting": [3, 2]}
    assert sums(measured, "attention~probe", 0, "kendall") == {"selecting": [2, 4], "reporting": [-2, 0]}


def test_the_majority_is_that_of_each_part():
    run = recorded(log_polarity=["0001 0111", "0000 0011"], train=["0000 0000"] * 2)
    run.tensors["train.labels"] = torch.tensor([0, 1, 1, 1, 0, 1, 1, 1])
    assert measure_course(run)["majority"] == {"validation": 50, "train": 75}


def test_the_earliest_of_equals_is_the_best():
    never_best = recorded(correct=["1111 1111", "1111 1111"], **SAME)
    never_best.tensors["validation.saliency"][1] = torch.nan
    measured = measure_agreement(never_best, recorded(**SAME), pairs="saliency~probe")
    assert sums(measured, "saliency~probe", 0)["reporting"] == [4, 4]


def test_a_run_alone_has_its_quality_by_half():
    measured = measure_course(recorded(attention=["0000 0000"] * 2, log_polarity=["0000 0000"] * 2))
    accuracy = {"all": [50, 75], "selecting": [100, 50], "reporting": [0, 100]}
    assert measured["parts"]["validation"] == {"accuracy": accuracy}


def test_a_run_alone_has_what_chance_agrees_with():
    measured = measure_course(recorded(attention=["0000 0000"] * 2, log_polarity=["0000 0000"] * 2))
    assert measured["chance"] == {"validation": {"attention": 0.5, "probe": 0.5}}


def test_a_run_alone_has_its_steps():
    measured = measure_course(recorded(attention=["0000 0000"] * 2, log_polarity=["0000 0000"] * 2))
    assert measured["steps"] == [0, 10]


def test_a_run_alone_has_its_majority():
    measured = measure_course(recorded(attention=["0000 0000"] * 2, log_polarity=["0000 0000"] * 2))
    assert measured["majority"] == {"validation": 50}


def test_with_ties_any_word_is_among_the_largest():
    uniform = recorded(log_polarity=["0000 0000"] * 2)
    uniform.tensors["validation.log_polarity"][:] = 0  # ties
    assert measure_course(uniform)["chance"] == {"validation": {"probe": 1}}


# Attention and the saliency of words.


def test_attention_is_compared_with_saliency_where_the_network_is_most_accurate():
    run = recorded(attention=["0000 0000", "0000 1111"], saliency=["1111 1111", "0000 0011"])
    measured = measure_salient_words(run, run)["validation"]
    assert measured == {"attention_saliency": 75, "saliency_attention": 75, "kendall": 50, "chance": 50}


def test_saliency_of_another_network_is_taken_where_that_one_is_most_accurate():
    first = recorded(attention=["0000 0000", "0000 1111"])
    second = recorded(correct=("1111 1111", "0000 0000"), saliency=["0000 0001", "1111 0000"])
    second.tensors["validation.saliency"][1] = torch.nan
    assert measure_salient_words(first, second)["validation"]["attention_saliency"] == 62.5


def test_a_network_without_saliency_where_it_is_most_accurate_is_refused():
    run = recorded(**SAME)
    run.tensors["validation.saliency"][1] = torch.nan
    assert_refused(lambda: measure_salient_words(run, run), "no saliency at its best checkpoint")


# Variants of saliency, held against a probe.


RUNS = measures.translator_runs(2, {
    "dataset": "known_lexicon", "width": 8, "pieces": 60, "steps": 100, "learning_rate": 0.01, "n_train": 60,
    "n_validation": 8,
})  # fmt: skip


@pytest.mark.slow
def test_the_logits_reading_agrees_as_the_recorded_saliency_does(tmp_path):
    """The last snapshot is the best, so that its saliency has been recorded."""
    store = Store(tmp_path, "cpu")
    first, second = store.recording(RUNS.normal[0]), store.recording(RUNS.uniform[1])
    saliency = first["validation.saliency"][-1]
    assert not saliency.isnan().any()
    masks = second["validation.source_mask"], second["validation.target_mask"]
    cells = saliency, second["validation.log_probe"][-1]
    saliency, probe = (padded_cells(flat, *masks, fill=-float("inf")) for flat in cells)
    expected = agreement(saliency, probe, masks[0][:, None, :].expand(saliency.shape))[masks[1]].mean()
    measured = measures.measure_saliency_variants(first, second)
    assert measured["steps"] == second["steps"].tolist()
    assert measured["logit"]["agreement"][-1] == pytest.approx(100 * float(expected), abs=1e-6)
    assert measured["logit"] != measured["log_probability"]


# Which runs are compared, and what is refused.


def test_runs_of_a_classifier_have_different_seeds():
    runs = measures.classifier_runs(3, 2, {"data": "known_polarity"}, 8)
    assert [spec.seed for spec in runs.normal] == [0, 1, 2]


def test_every_run_is_compared_with_those_of_other_seeds():
    runs = measures.classifier_runs(3, 2, {"data": "known_polarity"}, 8)
    seeds = {column: [(a.seed, b.seed) for a, b in runs.pairs(column)] for column in measures.COLUMNS}
    assert seeds.pop("alpha_alpha_frozen") == [(0, 1), (1, 0)]  # there are two networks frozen
    for pairs in seeds.values():
        assert pairs == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


def test_networks_of_two_groups_are_not_compared():
    runs = measures.classifier_runs(2, 1, {"data": "known_polarity"}, 8, groups=2)
    seeds = {column: [(a.seed, b.seed) for a, b in runs.pairs(column)] for column in measures.COLUMNS}
    assert seeds.pop("alpha_alpha_frozen") == []  # one frozen network a group has no other
    for pairs in seeds.values():
        assert pairs == [(0, 1), (1, 0), (2, 3), (3, 2)]


def test_a_second_group_leaves_the_first_as_it_is():
    single, double = (
        measures.classifier_runs(3, 2, {"data": "known_polarity"}, 8, groups=groups) for groups in (1, 2)
    )
    assert set(single.measurements()) < set(double.measurements())
    assert [run.seed for run in double.alone] == [0, 1, 3, 4]


def test_learned_attention_differs_from_uniform_in_its_settings_alone():
    runs = measures.classifier_runs(3, 2, {"data": "known_polarity"}, 8)
    for normal, uniform in runs.pairs("alpha_beta_uf"):
        assert {name for name, _ in set(normal.settings) ^ set(uniform.settings)} == {"attention", "saliency"}


def labelled_file(folder, labels):
    path = folder / "mine.tsv"
    texts = "".join(f"a b c{number}\t{number % labels}\n" for number in range(40))
    path.write_text("text\tlabel\n" + texts)
    return path


def parallel_files(folder):
    files = {"source": folder / "my.en", "target": folder / "my.de"}
    for file in files.values():
        file.write_text("".join(f"a b c{number}\n" for number in range(30)))
    return files


def test_a_readers_own_data_is_the_only_row(tmp_path):
    path = labelled_file(tmp_path, labels=2)
    (row,) = rows(Config(data=path)).values()
    assert dict(row.normal[0].settings)["data"] == str(path)
    requested = {measurement.spec for measurement in experiment.measurements(Config(data=path))}
    assert {dict(spec.settings)["data"] for spec in requested} == {str(path)}


def test_all_of_a_readers_own_data_is_used(tmp_path):
    """Whatever the profile takes of others."""
    (row,) = rows(Config(data=labelled_file(tmp_path, labels=2))).values()
    assert not {"n_train", "n_validation"} & set(dict(row.normal[0].settings))


def test_a_part_of_a_readers_own_data_is_used_on_request(tmp_path):
    (row,) = rows(Config(data=labelled_file(tmp_path, labels=2), n_train=30)).values()
    assert dict(row.normal[0].settings)["n_train"] == 30


def test_a_readers_own_sentence_pairs_are_the_only_row(tmp_path):
    (row,) = rows(Config(**parallel_files(tmp_path), seeds=4)).values()
    assert len(row.normal) == 4


def test_files_of_different_length_are_refused_before_any_training(tmp_path):
    files = parallel_files(tmp_path)
    files["target"].write_text("a\n")
    assert_refused(lambda: Config(**files), "line 2")


def test_three_labels_are_refused_before_any_training(tmp_path):
    path = labelled_file(tmp_path, labels=3)
    assert_refused(lambda: Config(data=path), "expected two different labels, found 3")


def test_a_set_that_is_not_at_hand_says_so(monkeypatch):
    monkeypatch.setattr(experiment.labelled_sets, "available", lambda name: name != "sst")
    values = computed(Config(), Given(lambda *_, **__: None)).values
    assert values["sst"] == {"cannot_be_run": "data: sst is not available here"}


# The numbers of the agreement tables and their intervals, each worked by hand.

BY_HAND = beside(__file__, "agreement")


@pytest.fixture
def table():
    """Runs, and what is asked of them, answered from recordings by the kind of the run."""
    runs = measures.classifier_runs(2, 2, {"data": "known_polarity"}, 8)
    recordings = {
        spec: recorded(spec.seed, **tops)
        for kind, tops in BY_HAND["tops"].items()
        for spec in getattr(runs, kind)
    }

    def answer(spec, measure, *, other_specs=(), **settings):
        return measure(*(recordings[run] for run in (spec, *other_specs)), **settings)

    return runs, measures.gathered(runs.measurements(), Given(answer))


def accuracy_of(runs, answers):
    tables = experiment.tables_of([experiment.Asked("texts", runs, answers)])
    tables["absent"] = Table.of([], experiment.DATA | experiment.ABSENT, "a set")
    return experiment.values(Config(), tables)["texts"]["validation"]["accuracy"]


@pytest.fixture
def accuracy(table):
    return accuracy_of(*table)


def at(column, *names):
    return tuple(column[name]["value"] for name in names)


@pytest.mark.parametrize(("column", "ours", "optimistic"), BY_HAND["columns"])
def test_every_column_by_hand(accuracy, column, ours, optimistic):
    estimates = accuracy[column]
    assert at(estimates, "agreement", "agreement_optimistic") == (ours, optimistic)
    # In rows of two words τ is 1 where the tops are the same and −1 elsewhere.
    assert at(estimates, "kendall", "kendall_optimistic") == (2 * ours - 100, 2 * optimistic - 100)
    assert at(estimates, "above_chance") == (ours - 50,)


def test_xi_is_read_on_the_samples_that_its_agreement_is_read_on(accuracy):
    """α agrees with that of the other seed 100 and 50 % on the half that reports; the paper's way 25, 100."""
    xi, starred = ([f"agreement_{name}{of}" for of in ("", "_optimistic")] for name in ("xi", "starred"))
    # 100 > 25 at once, where no text that reports is right; 25 is not more than 37.5, on the half it would be
    assert at(accuracy["alpha_beta_uf"], *xi, *starred) == (0, 75, 0, 0)
    assert at(accuracy["alpha_alpha"], *xi, *starred) == (100, 75, 1, 1)
    assert at(accuracy, "final", "final_optimistic") == (100, 75)
    # rise and fall are read where the other half has its best
    assert at(accuracy["alpha_beta_uf"], "rises", "falls") == (25 - 100, 25 - 25)
    assert (*at(accuracy, "chance"), accuracy["majority"]) == (50, 50)


def test_a_second_reading_of_saliency_that_agrees_as_much_has_the_same_xi(table, accuracy):
    runs, answers = table
    column = accuracy["delta_beta_uf"]
    values = {
        name: [-100.0, column[f"{name}_optimistic"]["value"], -100.0] for name in ("agreement", "kendall")
    }
    asked = {pair: dict.fromkeys(measures.SALIENCY_VARIANTS, values) for pair in runs.pairs("delta_beta_uf")}
    of_set = experiment.Asked("texts", runs, answers, gradients=asked)
    read = {(row["variant"], row["measure"]): row for row in experiment.saliency_of(of_set)}
    xi = {(row["measure"], row["quality"]): row for row in experiment.saliency_xi_of(of_set)}
    for name, (_, largest, _) in values.items():
        assert read["log_probability", name]["value"] == largest
        assert (xi[name, "accuracy"]["value"],) == at(column, f"{name}_xi_optimistic")
        assert xi[name, "bleu"]["n"] == 0  # texts have none


def test_saliency_of_the_same_network_is_another_row_than_that_of_another_seed():
    runs = measures.classifier_runs(2, 2, {"data": "known_polarity"}, 8, salient=(0, 1))
    first, second = runs.salient
    in_common = {(first, first): 60.0, (second, second): 62.0, (first, second): 30.0, (second, first): 50.0}
    rest = {"saliency_attention": 50.0, "kendall": 0.0, "chance": 10.0}
    answers = {
        pair: {"validation": rest | {"attention_saliency": share}} for pair, share in in_common.items()
    }
    of_set = experiment.Asked("texts", runs, {}, salient=answers)
    estimates = {(row["pair"], row["quantity"]): row for row in experiment.salient_of(of_set)}
    assert estimates["same", "above_chance"] == pytest.approx(
        {"data": "texts", "part": "validation", "pair": "same", "quantity": "above_chance"}
        | mean_interval([50.0, 52.0])
    )
    assert estimates["other", "attention_saliency"]["value"] == 40


def test_what_rises_from_the_first_checkpoint_to_the_last_has_a_rank_correlation_of_one(table):
    rising = {row["quantity"]: row for row in experiment.rising_of(experiment.Asked("texts", *table))}
    assert at(rising, "performance", "attention") == (1, 1)
    assert rising["performance_until_best"]["n"] == 0  # the half that chooses has its best at once


def networks_that_end_at(**finals):
    ends = {"part": "validation", "quality": "accuracy", "choice": "apart", "quantity": "final", "n": 2}
    records = [ends | {"data": data, "value": value} for data, value in finals.items()]
    columns = experiment.DATA | experiment.PART | experiment.QUALITY | experiment.CHOICE
    columns |= experiment.quantity_of(experiment.OF_NETWORKS) | INTERVAL
    return Table.of(records, columns, "an estimate")


def test_the_set_with_the_least_accurate_networks_is_named():
    (least,) = experiment.least_accurate(networks_that_end_at(b=40.0, a=60.0)).records()
    assert (least["data"], least["value"], least["weakest_of"]) == ("b", 40, "a b")


def test_without_networks_no_set_has_the_least_accurate():
    assert experiment.least_accurate(networks_that_end_at()).records() == []


def test_what_has_not_been_asked_leaves_gaps_not_errors(table):
    runs, answers = table
    known = {asked: answer for asked, answer in answers.items() if runs.normal[1] not in asked}
    accuracy = accuracy_of(runs, known)
    column = accuracy["alpha_beta_uf"]
    assert (column["agreement"]["value"], column["agreement"]["n"], column["agreement_xi"]["n"]) == (25, 1, 0)
    assert column["agreement"]["low"] is None
    assert (*at(accuracy["alpha_beta"], "agreement"), accuracy["final"]["n"]) == (None, 1)


def pairs_of(values):
    """``values[i][j]`` of runs i and j, by ordered pair."""
    return {pair: values[pair[0]][pair[1]] for pair in permutations(range(len(values)), 2)}


def test_two_seeds_have_an_interval_unless_both_pairs_are_of_the_same_two_runs():
    numbers = pairs_of([[None, 40.0], [44.0, None]])
    of_four_runs = mean_interval([40.0, 44.0])
    of_two_runs = of_four_runs | {"low": math.nan, "high": math.nan}
    for column in measures.COLUMNS:
        expected = of_two_runs if column in ("alpha_alpha", "alpha_beta") else of_four_runs
        assert over_pairs(numbers, column) == pytest.approx(expected, nan_ok=True)


def test_frozen_networks_are_compared_free_network_by_free_network():
    """What a free network has in both numbers does not count: 10 more by each, whatever it has."""
    level = {0: 20.0, 1: 50.0, 2: 80.0}
    uniform, frozen = (
        {(first, second): level[first] + more for first, second in permutations(level, 2)}
        for more in (10.0, 0.0)
    )
    less = experiment.less_than_frozen(uniform, frozen)
    assert (less["value"], less["low"], less["high"], less["n"]) == pytest.approx((10, 10, 10, 3))


def test_of_what_each_network_adds_the_interval_is_students():
    """With 𝒜 of runs i and j the sum of what either adds, jackknife and Student's interval are one."""
    adds = np.array([3.0, 5.0, 10.0])
    interval = over_pairs(pairs_of(adds[:, None] + adds), "alpha_alpha")
    assert interval == pytest.approx(mean_interval(2 * adds))


@pytest.mark.slow
@pytest.mark.parametrize("networks", [3, 4])
@pytest.mark.parametrize("column", ["alpha_alpha", "alpha_beta_uf"])
def test_the_interval_of_pairs_covers_as_often_as_it_says(networks, column):
    """Agreement is what either run adds and what the pair alone has; of (α, α) the same either way round."""
    draw, trials, covered, naive = np.random.default_rng(7), 600, 0, 0
    for _ in range(trials):
        first, second, noise = (
            draw.normal(size=shape) for shape in (networks, networks, (networks, networks))
        )
        if column == "alpha_alpha":
            second, noise = first, np.triu(noise) + np.triu(noise).T
        values = 50 + 2 * (first[:, None] + second) + 0.5 * noise
        interval = over_pairs(pairs_of(values), column)
        covered += interval["low"] <= 50 <= interval["high"]
        np.fill_diagonal(values, np.nan)
        means = mean_interval(np.nanmean(values, 1))  # the second runs come back in every mean
        naive += means["low"] <= 50 <= means["high"]
    assert covered / trials > 0.93
    assert naive / trials < (0.8 if column == "alpha_alpha" else 0.935)


# Contextualised agreement, and the choice of a checkpoint.

shares = st.integers(0, 20).map(lambda number: number / 20)


@given(st.lists(st.tuples(shares, shares), min_size=1, max_size=12), shares)
def test_it_is_a_search_through_the_checkpoints(curve, agreement):
    above = [performance for reached, performance in curve if reached > agreement]
    expected = (above[0], False) if above else (curve[-1][1], True)
    assert contextualise(agreement, *zip(*curve, strict=True)) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Checkpoints without rows are passed over.
        pytest.param((0.0, [math.nan, 0.5], [0.1, 0.2]), [0.2, False], id="checkpoints_without_rows")
    ],
)
def test_contextualise_by_hand(given, expected):
    assert_answer(contextualise(*given), expected)


@pytest.mark.parametrize(
    ("given", "expected"), [pytest.param(([math.nan, 0.5, 0.7, 0.7],), 2, id="first_of_two_equal_ones")]
)
def test_best_checkpoint_by_hand(given, expected):
    assert_answer(best_checkpoint(*given), expected)


@pytest.mark.parametrize(
    ("given", "message"), [pytest.param(([math.nan],), "no checkpoint has a row", id="nothing was measured")]
)
def test_best_checkpoint_refuses(given, message):
    assert_refused(partial(best_checkpoint, *given), message)


@pytest.mark.parametrize(
    ("given", "message"), [pytest.param((math.nan, [0.1], [0.2]), "is NaN", id="is_nan")]
)
def test_contextualise_refuses(given, message):
    assert_refused(partial(contextualise, *given), message)


@pytest.mark.parametrize(
    ("data", "printed"),
    [("ag_news", "ag-news"), ("yelp", "yelp"), ("amazon", "amzn"), ("imdb", "imdb"), ("sst", "sst")],
)
def test_published_numbers_are_pale_where_none_is_judged(pytestconfig, data, printed):
    expected = json.loads((pytestconfig.rootpath / "claims" / "expected.json").read_text())
    verdict = expected[f"number-5-{printed}-a-alpha-beta-uf"]["paper"]
    assert is_shown_only(data) == (verdict == "cannot be judged")
