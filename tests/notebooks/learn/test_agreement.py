"""The experiment on agreement: which runs are compared, what is refused, and the whole way on tiny runs."""

import math
from itertools import permutations, product

import numpy as np
import pytest

from companion.claims.estimates import Estimate
from companion.claims.model import Claim
from companion.claims.published import Published, Reference
from companion.claims.verdicts import Judgement, Tolerance, Verdict
from companion.claims.verify import ClaimVerdict
from companion.results.result import Result
from notebooks.learn.agreement import experiment, tables
from notebooks.learn.agreement.experiment import Config, courses, over_pairs, row, rows, weakest
from notebooks.learn.agreement.tables import (
    agreement_table,
    distances_table,
    printed_agreement,
)
from notebooks.shared.agreement import COLUMNS, classifier_runs, gathered
from notebooks.shared.intervals import mean_interval
from tests.notebooks.given import Given
from tests.notebooks.shared.agreement_recordings import recorded


def test_what_is_compared_differs_in_seed_and_attention_alone():
    runs = classifier_runs(3, 2, {"data": "known_polarity"}, 8)
    assert [spec.seed for spec in runs.normal] == [0, 1, 2]
    seeds = {column: [(a.seed, b.seed) for a, b in runs.pairs(column)] for column in COLUMNS}
    assert seeds.pop("alpha_alpha_frozen") == [(0, 1), (1, 0)]  # there are two networks frozen
    for found in seeds.values():
        assert found == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    for normal, uniform in runs.pairs("alpha_beta_uf"):
        assert {name for name, _ in set(normal.settings) ^ set(uniform.settings)} == {"attention", "saliency"}


def test_a_readers_own_data_is_the_only_row(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("text\tlabel\n" + "".join(f"a b c{i}\t{'yes' if i % 2 else 'no'}\n" for i in range(40)))
    (own,), (part,) = (rows(Config(data=path, **given)).values() for given in ({}, {"n_train": 30}))
    settings = dict(own.normal[0].settings)
    assert settings["data"] == str(path)
    assert not {"n_train", "n_validation"} & set(settings)  # all of it, whatever the profile takes of others
    assert dict(part.normal[0].settings)["n_train"] == 30
    assert {one.spec for one in experiment.measurements(Config(data=path))} <= set(own.specs)
    files = {"source": tmp_path / "my.en", "target": tmp_path / "my.de"}
    for file in files.values():
        file.write_text("a b c\n" * 30)
    (pairs,) = rows(Config(**files, seeds=4)).values()
    assert len(pairs.normal) == 4


def test_sets_that_are_not_at_hand_are_left_out_where_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(experiment.labelled_sets, "available", lambda name: name != "sst")
    monkeypatch.setattr(experiment.parallel, "available", lambda name: name == "known_lexicon")
    assert list(rows(Config())) == ["known_polarity", "known_lexicon"]
    assert len(rows(Config(only_at_hand=0))) == 4
    values, tables = experiment.compute(Config(), Given(lambda *_, **__: None))
    assert values["sst"] == {"cannot_be_run": "data: sst is not at hand"}
    assert values["weakest"]["alpha_beta"]["above_chance"]["n"] == 0
    assert tables == {"courses": [], "ties": []}


# The numbers of the agreement tables and their intervals, each worked by hand.

NORMAL = {
    "attention": ["0000 0000", "1111 1100"],
    "saliency": ["0000 0001", "1111 1000"],
    "log_polarity": ["0000 0011", "0111 0110"],
}
OTHERS = {
    "uniform": {"log_polarity": ["0001 0000", "0000 0111"]},
    "proxy": {"log_polarity": ["0000 1110", "0011 0000"]},
    "alone": {"attention": ["0000 0111", "1111 0000"]},
}


def answered(runs, train=None):
    """What is asked of the runs, answered from recordings by the kind of the run."""
    recordings = {
        spec: recorded(spec.seed, train=train, **tops)
        for kind, tops in ({"normal": NORMAL} | OTHERS).items()
        for spec in getattr(runs, kind)
    }

    def answer(spec, measure, *, beside=(), **settings):
        return measure(*(recordings[one] for one in (spec, *beside)), **settings)

    return gathered(runs.measurements(), Given(answer))


@pytest.fixture
def table():
    runs = classifier_runs(2, 2, {"data": "known_polarity"}, 8)
    return runs, answered(runs)


@pytest.fixture
def accuracy(table):
    return row(*table)["validation"]["accuracy"]


def at(found, *names):
    return tuple(found[name]["value"] for name in names)


# Ours: the first run at its first snapshot (best on the half that selects), the second where it agrees most
# on that half, read on the other four texts. The paper's: both where they are best on all eight.
@pytest.mark.parametrize(
    ("column", "ours", "optimistic"),
    [
        ("alpha_beta_uf", 25, 37.5),  # 0000|0000 with 0000|0111; 1111|1100 with 0001|0000
        ("delta_beta_uf", 50, 50),  # 0000|0001 with 0000|0111; 1111|1000 with 0001|0000
        ("beta_uf_beta_px", 50, 87.5),  # 0000|1110 of the proxy with 0000|0111; 0011|0000 with 0001|0000
        ("alpha_beta", 50, 62.5),  # 0000|0000 with 0000|0011; 1111|1100 with 0111|0110
        ("alpha_alpha", 100, 100),
        ("alpha_alpha_frozen", 25, 75),  # 0000|0000 with 0000|0111; 1111|1100 with 1111|0000
    ],
)
def test_every_column_by_hand(accuracy, column, ours, optimistic):
    found = accuracy[column]
    assert at(found, "agreement", "agreement_optimistic") == (ours, optimistic)
    # In rows of two words τ is 1 where the tops are the same and −1 elsewhere.
    assert at(found, "kendall", "kendall_optimistic") == (2 * ours - 100, 2 * optimistic - 100)
    assert at(found, "above_chance") == (ours - 50,)


def test_xi_is_read_on_the_samples_that_its_agreement_is_read_on(accuracy):
    """α agrees with that of the other seed 100 and 50 % on the half that reports; the paper's way 25, 100."""
    xi, starred = (
        [f"agreement_{what}{choice}" for choice in ("", "_optimistic")] for what in ("xi", "starred")
    )
    # 100 > 25 at once, where no text that reports is right; 25 is not more than 37.5, on the half it would be
    assert at(accuracy["alpha_beta_uf"], *xi, *starred) == (0, 75, 0, 0)
    assert at(accuracy["alpha_alpha"], *xi, *starred) == (100, 75, 1, 1)
    assert at(accuracy, "final", "final_optimistic") == (100, 75)


def test_rise_and_fall_are_read_where_the_other_half_has_its_best(accuracy):
    assert at(accuracy["alpha_beta_uf"], "rises", "falls") == (25 - 100, 25 - 25)
    assert (*at(accuracy, "chance"), accuracy["majority"]) == (50, 50)


# 0000|0000 at the first snapshot, 1111|1100 at the second, with 0001|0000 and 0000|0111
@pytest.mark.parametrize(
    ("train", "expected", "at_first"),
    [(["1111 1111", "0000 0000"], (25, 87.5), 87.5), (["0000 0000", "1111 1111"], (50, 37.5), 37.5)],
)
def test_training_samples_are_read_where_the_first_run_was_best_on_them(train, expected, at_first):
    runs = classifier_runs(2, 0, {"data": "known_polarity"}, 8)
    answers = answered(runs, train)
    found = row(runs, answers)["train"]["accuracy"]["alpha_beta_uf"]
    assert at(found, "agreement", "agreement_optimistic") == expected
    lines = [line for line in courses(runs, answers) if line["column"] == "alpha_beta_uf"]
    first = {line["part"]: line["agreement"] for line in lines if line["step"] == 0}
    assert first == {"validation": 37.5, "train": at_first}


def test_the_weakest_column_is_that_of_the_lowest_interval(table):
    values = {"even": row(*table), "odd": row(*table)}
    column = values["odd"]["validation"]["accuracy"]["alpha_beta"]
    column["above_chance"] = {"value": 60, "low": -20, "high": 100, "n": 2}
    named = column["above_chance"] | {"weakest_of": ["even", "odd"]}
    assert weakest(values)["alpha_beta"] == {"above_chance": named, "data": "odd"}


def test_courses_have_every_checkpoint_of_every_pair(table):
    lines = courses(*table)
    assert len(lines) == 2 * 2 * 6  # checkpoints, ordered pairs of two seeds, columns
    first = next(line for line in lines if line["column"] == "alpha_beta_uf")
    # 1111|1100, where all samples have it best, with 0001|0000
    assert (first["step"], first["agreement"], first["accuracy"]) == (0, 37.5, 50)
    assert all(line["seed"] != line["second_seed"] for line in lines)


def test_what_has_not_been_asked_leaves_gaps_not_errors(table):
    runs, answers = table
    found = row(runs, {asked: answer for asked, answer in answers.items() if runs.normal[1] not in asked})
    own = found["validation"]["accuracy"]["alpha_beta_uf"]
    assert (own["agreement"]["value"], own["agreement"]["n"], own["agreement_xi"]["n"]) == (25, 1, 0)
    assert math.isnan(own["agreement"]["low"])
    assert at(found["validation"]["accuracy"]["alpha_beta"], "agreement") == (None,)
    assert found["validation"]["accuracy"]["final"]["n"] == 1
    nothing = row(runs, {asked: answer for asked, answer in answers.items() if len(asked) == 1})
    assert nothing["validation"]["accuracy"]["alpha_beta"]["agreement_xi"]["n"] == 0


def pairs_of(values):
    """``values[i][j]`` of runs i and j, by ordered pair."""
    return {pair: values[pair[0]][pair[1]] for pair in permutations(range(len(values)), 2)}


def test_two_seeds_have_an_interval_unless_both_pairs_are_of_the_same_two_runs():
    numbers = pairs_of([[None, 40.0], [44.0, None]])
    for column in COLUMNS:
        found = over_pairs(numbers, column)
        if column in ("alpha_alpha", "alpha_beta"):
            assert (found["value"], found["n"]) == (42, 2)
            assert math.isnan(found["low"])
        else:
            assert found == pytest.approx(mean_interval([40.0, 44.0]).as_dict())


def test_of_what_each_network_adds_the_interval_is_students():
    """With 𝒜 of runs i and j the sum of what either adds, jackknife and Student's interval are one."""
    adds = np.array([3.0, 5.0, 10.0])
    found = over_pairs(pairs_of(adds[:, None] + adds), "alpha_alpha")
    assert found == pytest.approx(mean_interval(2 * adds).as_dict())


@pytest.mark.slow
@pytest.mark.parametrize("networks", [3, 4])
@pytest.mark.parametrize("column", ["alpha_alpha", "alpha_beta_uf"])
def test_the_interval_of_pairs_covers_as_often_as_it_says(networks, column):
    """Agreement is what either run adds and what the pair alone has; of (α, α) the same either way round."""
    draw, trials, covered, naive = np.random.default_rng(7), 600, 0, 0
    for _ in range(trials):
        first, second, own = (draw.normal(size=shape) for shape in (networks, networks, (networks, networks)))
        if column == "alpha_alpha":
            second, own = first, np.triu(own) + np.triu(own).T
        values = 50 + 2 * (first[:, None] + second) + 0.5 * own
        found = over_pairs(pairs_of(values), column)
        covered += found["low"] <= 50 <= found["high"]
        np.fill_diagonal(values, np.nan)
        means = mean_interval(np.nanmean(values, 1))  # the second runs come back in every mean
        naive += means.low <= 50 <= means.high
    assert covered / trials > 0.93
    assert naive / trials < (0.8 if column == "alpha_alpha" else 0.935)


# Tables of the agreement page, from numbers set by hand.


def interval(value, half=1.0):
    return {"value": value, "low": value - half, "high": value + half, "n": 3}


def numbers(base, *, starred=0.0, majority=None):
    """Of one set and part: every agreement is ``base``, ξ 30 more; the paper's choice adds 5 to each."""
    column = {}
    for measure, (choice, more) in product(("agreement", "kendall"), (("", 0), ("_optimistic", 5))):
        column[f"{measure}{choice}"] = interval(base + more)
        column[f"{measure}_xi{choice}"] = interval(base + more + 30)
        column[f"{measure}_starred{choice}"] = interval(starred if choice else 0)
    ends = {"chance": interval(8, 0), "final": interval(80), "final_optimistic": interval(85)}
    return {"accuracy": dict.fromkeys(COLUMNS, column) | ends | {"majority": majority}}


def by_hand(**values):
    return Result("agreement", "quick", {}, values, {"courses": []}, {"modules": [], "hash": ""}, {})


@pytest.mark.parametrize(
    ("asked", "choice", "expected"),
    [
        ({}, "apart", {"SST": "20 50 80", "IWSLT14 De–En (part)": "30 60 80"}),
        ({"quality": "bleu"}, "apart", {"IWSLT14 De–En (part)": "40 70 80"}),
        ({"part": "training"}, "as in the paper", {"SST": "30 60 85", "IWSLT14 De–En (part)": "55 85* 85"}),
    ],
)
def test_one_table_for_every_part_quality_and_choice(asked, choice, expected):
    pairs = {
        "validation": numbers(30) | {"bleu": numbers(40)["accuracy"]},
        "training": numbers(50, starred=0.67),
    }
    texts = {"validation": numbers(20), "train": numbers(25)}
    result = by_hand(iwslt14_de_en=pairs, sst=texts, yelp={"cannot_be_run": "data: yelp is not at hand"})
    table = agreement_table(result, **asked).xs(choice, level=1)[["𝒜(α, βᵘᶠ)", "ξ(α, βᵘᶠ)", "ξ*"]]
    assert {name: " ".join(cells).replace(" ± 1", "") for name, cells in table.T.items()} == expected
    kendall = agreement_table(result, "kendall", **asked)
    assert ("τ(α, βᵘᶠ)" in kendall, "chance" in kendall) == (True, False)


def test_printed_numbers_stand_beside_both_readings_of_a_set():
    found = printed_agreement()
    assert found["sst", "alpha_beta_uf"] == 19.85
    assert found["multi30k_en_de", "alpha_beta"] == found["multi30k_de_en", "alpha_beta"] == 48.78
    assert found["sst", "alpha_beta"] == found["sst_as_text", "alpha_beta"] == 25.33


def test_the_commonest_answer_is_that_of_sets_that_are_printed_and_run(tmp_path, monkeypatch, pytestconfig):
    """Of 72.16 to 78.16 half of the way is 3; SMS is not printed in Table 5."""
    (tmp_path / "claims").symlink_to(pytestconfig.rootpath / "claims")
    monkeypatch.setattr(tables, "find_root", lambda: tmp_path)
    right = {"sst": 72.16, "sms_spam": 87.0, "sst_as_text": 50.0}
    result = by_hand(**{name: {"validation": numbers(20, majority=share)} for name, share in right.items()})
    assert tables.baselines_table(result).empty
    result.save(tmp_path / "results" / "paper")
    found = tables.baselines_table(result)
    assert found.loc["SST"].tolist() == ["72.2", "78.16 ± 3"]
    assert found.loc["SST, as the text says"].tolist() == ["50.0", "78.16 ± 5"]
    assert len(found) == 2
    assert tables.baselines_table(by_hand(own={})).empty


# Which reading of a printed name comes nearer to its numbers, from rows set by hand.


def printed(data, quantity, printed, ours=None, table="5"):
    key = f"{data}.validation.{quantity}"
    published = Published(printed, Reference(table=table, dataset="SST", quantity=quantity))
    claim = Claim(
        id="printed", paper="p", place="Table", says="It.", published=published, experiment="agreement",
        keys=(key,), judge=Tolerance(absolute=5, published=printed), profiles=("paper",), number=True,
    )  # fmt: skip
    evidence = {} if ours is None else {key: Estimate(ours)}
    return ClaimVerdict(claim, "paper", Judgement(Verdict.PARTLY, evidence))


def distances(rows):
    """(printed numbers, mean distance, nearer) of the first reading and of the second."""
    return [tuple(cells) for cells in distances_table(rows).iloc[:, 1:].to_numpy()]


def test_the_mean_distance_is_over_numbers_that_both_have():
    rows = [
        printed("sst", "a", 20, 21), printed("sst_as_text", "a", 20, 26),
        printed("sst", "b", 80, 77), printed("sst_as_text", "b", 80, 82),
        printed("sst", "c", 50, 10), printed("sst_as_text", "c", 50),
        printed("sst", "d", 7, 7), printed("sst_as_text", "d", 7, 7),
    ]  # fmt: skip
    assert distances(rows) == [(3, "1.3", 1), (3, "2.7", 1)]
    assert distances([printed("sst", "a", 20, 21), printed("multi30k_en_de", "a", 20, 30)]) == []


def test_a_number_that_is_printed_twice_counts_once_with_most_digits():
    twice = [printed(data, "a", 20, 23, table="2") for data in ("sst", "sst_as_text")]
    exact = [printed("sst", "a", 21.5, 23), printed("sst_as_text", "a", 21.5, 25)]
    assert distances(twice + exact) == [(1, "1.5", 1), (1, "3.5", 0)]


def test_two_probes_count_once_where_they_are_printed_by_accuracy_and_by_bleu():
    """The proxy has no BLEU, so the pair is the same; its ξ is not."""

    def away(*quantities):
        both = product(quantities, (("en_de", 1), ("de_en", 2)))
        return [printed(f"multi30k_{way}", of, 20, 20 + times * apart) for (of, apart), (way, times) in both]

    once = away(
        ("accuracy.beta_uf_beta_px.agreement_optimistic", 6),
        ("accuracy.alpha_beta.agreement_optimistic", 1),
        ("bleu.alpha_beta.agreement_optimistic", 2),
        ("bleu.beta_uf_beta_px.agreement_xi_optimistic", 3),
    )
    again = away(*((f"bleu.beta_uf_beta_px.{name}_optimistic", 6) for name in ("agreement", "kendall")))
    assert distances(once)[0] == (4, "3.0", 4)
    assert distances(once + again) == distances(once)
