"""The experiment on agreement: which runs are compared, what is refused, and the whole way on tiny runs."""

import math

import numpy as np
import pytest

from attnlib.errors import BadInput, NotMeasured, UnknownName
from companion.claims import Claim, ClaimVerdict, Estimate, Judgement, Tolerance, Verdict
from companion.claims.published import Published, Reference
from companion.data import labelled_sets, parallel
from companion.results.result import Result
from companion.results.run import run
from companion.results.statistics import mean_interval
from companion.runs.recipe import RecipeSpec
from notebooks.learn.agreement import experiment, sentences
from notebooks.learn.agreement.experiment import (
    PROFILES,
    Column,
    Config,
    courses,
    models,
    rows,
    weakest,
)
from notebooks.learn.agreement.experiment import (
    row as row_of_agreement_summary,
)
from notebooks.learn.agreement.sentences import (
    absent_sentence,
    agreement_table,
    baselines_sentence,
    both_choices,
    choice_table,
    frozen_table,
    networks_caption,
    outcome_sentences,
    printed_agreement,
    printed_tables,
    readings_sentences,
    runs_behind,
    variants,
    weakest_sentence,
)
from notebooks.learn.optimal_attention import experiment as optimal_attention
from notebooks.shared.agreement import COLUMNS, Runs, classifier_runs, gathered
from notebooks.shared.agreement_drawing import DATA_NAMES, along_training, at_the_best, data_of, reading_off
from tests.notebooks.shared.agreement_recordings import recorded

TINY = {
    "seeds": 2, "frozen": 0, "steps": 10, "n_train": 60,
    "n_validation": 8, "width": 8, "embedding_width": 8, "translation_steps": 50,
    "train_pairs": 60, "validation_pairs": 8, "pieces": 60,
}  # fmt: skip


class Unmeasured:
    """A store that has measured nothing."""

    def kept(self, spec, measure, **settings):
        raise NotMeasured(spec.setting)


def test_what_is_compared_differs_in_seed_and_attention_alone():
    runs = classifier_runs(3, 2, {"data": "known_polarity"}, 8)
    assert [spec.seed for spec in runs.normal] == [0, 1, 2]
    seeds = {column: [(a.seed, b.seed) for a, b in runs.pairs(column)] for column in COLUMNS}
    assert seeds.pop("alpha_alpha_frozen") == [(0, 1), (1, 0)]  # there are two networks frozen
    for found in seeds.values():
        assert found == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    for normal, uniform in runs.pairs("alpha_beta_uf"):
        assert {name for name, _ in set(normal.settings) ^ set(uniform.settings)} == {"attention", "saliency"}


def test_what_the_paper_profile_trains_on_sentence_pairs():
    found = rows(experiment.PROFILES["paper"])
    expected = {  # networks of each kind, updates, validation and training pairs looked at
        "multi30k_en_de": (3, 36_250, 0, 1_014),
        "multi30k_de_en": (3, 36_250, 0, 1_014),
        "iwslt14_de_en": (3, 16_180, 1_014, 1_014),
    }
    for name, (networks, *settings) in expected.items():
        for kind in ("normal", "uniform", "proxy"):
            specs = getattr(found[name], kind)
            assert len(specs) == networks
            for spec in specs:
                chosen = spec.resolved
                assert chosen.dataset == name
                assert [chosen.steps, chosen.probed_validation, chosen.probed_training] == settings
    assert (
        dict(rows(Config(only_at_hand=0, training_part=1))["known_lexicon"].normal[0].settings)[
            "probed_training"
        ]
        == 40
    )  # as many as there are of the validation part
    shorter = rows(Config(translation=("iwslt14_de_en",), only_at_hand=0))["iwslt14_de_en"].normal[0].resolved
    assert (shorter.steps, shorter.n_validation, shorter.probed_validation) == (400, 40, 0)


def test_no_set_of_the_paper_profile_has_fewer_than_three_networks_of_a_kind():
    """Of two, an interval spans six times their difference on either side."""
    config = experiment.PROFILES["paper"]
    found = {name: len(runs.normal) for name, runs in rows(config).items()}
    assert set(found) == {*config.classification, *config.translation}
    assert {name: count for name, count in found.items() if count != 4} == dict.fromkeys(
        (*experiment.LONG, *config.translation), 3
    )


def test_multi30k_is_trained_once_for_this_chapter_and_for_optimal_attention():
    ours = models(experiment.PROFILES["paper"])
    others = optimal_attention.models(optimal_attention.PROFILES["paper"])
    main = [spec for spec in others if spec.recipe == "translation" and spec.resolved.form == "joined"]
    assert len(main) == 3
    assert set(main) <= set(ours)
    assert set(main) == set(rows(experiment.PROFILES["paper"])["multi30k_en_de"].normal)


def test_a_readers_own_data_is_the_only_row(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("text\tlabel\n" + "".join(f"a b c{i}\t{'yes' if i % 2 else 'no'}\n" for i in range(40)))
    (own,) = rows(Config(data=path)).values()
    settings = dict(own.normal[0].settings)
    assert settings["data"] == str(path)
    assert not {"n_train", "n_validation"} & set(settings)  # all of it, whatever the profile takes of others
    (part,) = rows(Config(data=path, n_train=30)).values()
    assert dict(part.normal[0].settings)["n_train"] == 30
    assert set(models(Config(data=path))) == set(own.specs)


def test_own_pairs_are_trained_on_as_often_as_asked(tmp_path):
    for side in ("en", "de"):
        (tmp_path / f"my.{side}").write_text("a b c\n" * 30)
    (own,) = rows(Config(source=tmp_path / "my.en", target=tmp_path / "my.de", seeds=4)).values()
    assert len(own.normal) == 4


def test_own_files_that_cannot_be_used_are_refused_before_any_training(tmp_path):
    table = tmp_path / "three.tsv"
    table.write_text("text\tlabel\n" + "".join(f"a{i}\t{i % 3}\n" for i in range(40)))
    with pytest.raises(BadInput, match="expected two different labels, found 3"):
        Config(data=table)
    (tmp_path / "my.en").write_text("a\nb\n")
    (tmp_path / "my.de").write_text("a\n")
    with pytest.raises(BadInput, match="line 2"):
        Config(source=tmp_path / "my.en", target=tmp_path / "my.de")


def test_settings_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(BadInput, match="source and target go together"):
        Config(source=tmp_path)
    with pytest.raises(BadInput, match="give one of them"):
        Config(data=tmp_path, source=tmp_path, target=tmp_path)
    for name in ("seeds", "long_seeds", "main_seeds"):
        with pytest.raises(BadInput, match=f"{name} is 1; a network is compared with others of other seeds"):
            Config(**{name: 1})
    with pytest.raises(BadInput, match="frozen is 1"):
        Config(frozen=1)
    with pytest.raises(BadInput, match="translation_steps is -1"):
        Config(translation_steps=-1)
    with pytest.raises(UnknownName, match="did you mean 'sst'"):
        Config(classification=("sts",))


def test_sets_that_are_not_at_hand_are_left_out_where_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(experiment.labelled_sets, "at_hand", lambda name: name != "sst")
    monkeypatch.setattr(experiment.parallel, "at_hand", lambda name: name == "known_lexicon")
    assert list(rows(Config())) == ["known_polarity", "known_lexicon"]
    assert len(rows(Config(only_at_hand=0))) == 4
    values, tables = experiment.compute(Config(), Unmeasured())
    assert values["sst"] == {"cannot_be_run": "data: sst is not at hand"}
    assert values["weakest"]["alpha_beta"]["above_chance"]["n"] == 0
    assert tables == {"courses": [], "ties": []}


MADE_BY_RULE = TINY | {"classification": ("known_polarity",), "translation": ("known_lexicon",)}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agreement")
    return run("agreement", out=folder, models=folder / "models", overrides=MADE_BY_RULE)


def test_the_whole_way_on_both_corpora_made_by_rule(result):
    assert result.values.keys() == {"known_polarity", "known_lexicon", "weakest"}
    assert result.values["known_polarity"]["validation"].keys() == {"accuracy"}
    assert result.values["known_lexicon"].keys() == {"validation", "saliency", "ties"}
    assert result.values["known_lexicon"]["validation"].keys() == {"accuracy", "bleu"}
    for name in ("known_polarity", "known_lexicon"):
        found = result.values[name]["validation"]["accuracy"]
        assert 0 <= found["alpha_beta_uf"]["agreement"]["value"] <= 100
        assert found["alpha_beta_uf"]["agreement"]["n"] == 2
        assert 0 < found["chance"]["value"] < 100
    assert {line["data"] for line in result.tables["courses"]} == {"known_polarity", "known_lexicon"}
    assert isinstance(models(Config(**MADE_BY_RULE))[0], RecipeSpec)


def test_figures_and_tables_have_a_place_for_every_data_set(result):
    titles = [axes.get_title(loc="left") for axes in along_training(result).axes]
    assert titles == ["known polarity", "known lexicon"]
    printed = {("known_polarity", "alpha_beta"): 60.0}
    labels = [text.get_text() for text in at_the_best(result, printed).legends[0].get_texts()]
    assert labels[-2:] == ["chance", "as printed"]
    for table in (agreement_table(result), choice_table(result)):
        assert list(table.index) == ["known polarity", "known lexicon"]
    assert list(frozen_table(result).index) == []  # none was asked for
    assert "𝒜(α, βᵘᶠ) on known lexicon" in weakest_sentence(result)


def test_printed_numbers_are_found_by_our_names(result):
    found = printed_agreement()
    assert (found["sst", "alpha_beta_uf"], found["multi30k_en_de", "alpha_beta"]) == (19.85, 48.78)
    table = printed_tables(result, "10")
    assert "Table 10: attention trained with the lexical probe frozen" in table
    assert "| Yelp | 8" in table


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


class Given:
    """A store whose answers are made from recordings by the kind of the run."""

    def __init__(self, runs):
        self.recordings = {spec: recorded(spec.seed, **NORMAL) for spec in runs.normal}
        for kind, tops in OTHERS.items():
            self.recordings |= {spec: recorded(spec.seed, **tops) for spec in getattr(runs, kind)}

    def kept(self, spec, measure, *, beside=(), **settings):
        return measure(*(self.recordings[one] for one in (spec, *beside)), **settings)


@pytest.fixture
def table():
    runs = classifier_runs(2, 2, {"data": "known_polarity"}, 8)
    return runs, gathered(runs.asks(), Given(runs))


@pytest.fixture
def accuracy(table):
    return row_of_agreement_summary(*table)["validation"]["accuracy"]


# Ours: the first run at its first look (best on the half that selects), the second where it agrees most on
# that half, read on the other four texts. The paper's: both where they are best on all eight.
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
    assert found["agreement"]["value"] == ours
    assert found["agreement_optimistic"]["value"] == optimistic
    # In rows of two words τ is 1 where the tops are the same and −1 elsewhere.
    assert found["kendall"]["value"] == 2 * ours - 100
    assert found["kendall_optimistic"]["value"] == 2 * optimistic - 100
    assert found["above_chance"]["value"] == ours - 50


def test_xi_is_read_on_the_samples_that_its_agreement_is_read_on(accuracy):
    """α agrees with that of the other seed 100 and 50 % on the half that reports; the paper's way 25, 100."""
    found = accuracy["alpha_beta_uf"]
    assert found["agreement_xi"]["value"] == 0  # 100 > 25 at once, where no text that reports is right
    assert (
        found["agreement_xi_optimistic"]["value"] == 75
    )  # 25 is not more than 37.5, on the half it would be
    assert found["agreement_starred"]["value"] == found["agreement_starred_optimistic"]["value"] == 0
    never = accuracy["alpha_alpha"]
    assert never["agreement_starred"]["value"] == never["agreement_starred_optimistic"]["value"] == 1
    assert (never["agreement_xi"]["value"], never["agreement_xi_optimistic"]["value"]) == (100, 75)
    assert (accuracy["final"]["value"], accuracy["final_optimistic"]["value"]) == (100, 75)


def test_rise_and_fall_are_read_where_the_other_half_has_its_best(accuracy):
    found = accuracy["alpha_beta_uf"]
    assert (found["rises"]["value"], found["falls"]["value"]) == (25 - 100, 25 - 25)
    assert accuracy["chance"]["value"] == 50
    assert accuracy["majority"] == 50


def test_training_samples_are_read_where_the_first_run_was_best_on_them():
    runs = classifier_runs(2, 0, {"data": "known_polarity"}, 8)
    given = Given(runs)
    first_is_best, last_is_best = ["1111 1111", "0000 0000"], ["0000 0000", "1111 1111"]
    for train in (first_is_best, last_is_best):
        given.recordings |= {spec: recorded(spec.seed, train=train, **NORMAL) for spec in runs.normal}
        for kind, tops in OTHERS.items():
            given.recordings |= {
                spec: recorded(spec.seed, train=train, **tops) for spec in getattr(runs, kind)
            }
        answers = gathered(runs.asks(), given)
        found = row_of_agreement_summary(runs, answers)["train"]["accuracy"]["alpha_beta_uf"]
        # 0000|0000 at the first look, 1111|1100 at the second, with 0001|0000 and 0000|0111
        expected = {0: (25, 87.5), 1: (50, 37.5)}[train.index("1111 1111")]
        assert (found["agreement"]["value"], found["agreement_optimistic"]["value"]) == expected
        lines = [line for line in courses(runs, answers) if line["column"] == "alpha_beta_uf"]
        at_first = {line["part"]: line["agreement"] for line in lines if line["step"] == 0}
        assert at_first == {"validation": 37.5, "train": {0: 87.5, 1: 37.5}[train.index("1111 1111")]}


def test_the_weakest_column_is_that_of_the_lowest_interval(table):
    values = {"even": row_of_agreement_summary(*table), "odd": row_of_agreement_summary(*table)}
    column = values["odd"]["validation"]["accuracy"]["alpha_beta"]
    column["above_chance"] = {"value": 60, "low": -20, "high": 100, "n": 2}
    named = column["above_chance"] | {"weakest_of": ["even", "odd"]}
    assert weakest(values)["alpha_beta"] == {"above_chance": named, "data": "odd"}
    assert weakest({})["alpha_beta"]["above_chance"]["n"] == 0


def test_courses_have_every_checkpoint_of_every_pair(table):
    lines = courses(*table)
    assert len(lines) == 2 * 2 * 6  # checkpoints, ordered pairs of two seeds, columns
    first = next(line for line in lines if line["column"] == "alpha_beta_uf")
    # 1111|1100, where all samples have it best, with 0001|0000
    assert (first["step"], first["agreement"], first["accuracy"]) == (0, 37.5, 50)
    assert all(line["seed"] != line["second_seed"] for line in lines)


def test_what_has_not_been_asked_leaves_gaps_not_errors(table):
    runs, answers = table
    kept = {key: answer for key, answer in answers.items() if runs.normal[1] not in key}
    found = row_of_agreement_summary(runs, kept)["validation"]["accuracy"]
    assert found["alpha_beta_uf"]["agreement"]["value"] == 25
    assert found["alpha_beta_uf"]["agreement"]["n"] == 1
    assert math.isnan(found["alpha_beta_uf"]["agreement"]["low"])
    assert found["alpha_beta_uf"]["agreement_xi"]["n"] == 0
    assert found["alpha_beta"]["agreement"]["value"] is None
    assert found["final"]["n"] == 1


TEXTS = 1_000_000  # so that any share can be given


def column_of(values, column="alpha_alpha"):
    """A column whose agreement of runs i and j is ``values[i][j]``, in percent."""
    kinds = ("normal", "uniform", "proxy", "alone")
    runs = Runs(*(tuple(RecipeSpec(kind, (), seed) for seed in range(len(values))) for kind in kinds))
    answers, sides = {}, COLUMNS[column][2]
    for one, other in runs.pairs(column):
        half = [[values[one.seed][other.seed] / 100 * TEXTS, TEXTS, 0]]
        means = {name: {"selecting": half, "reporting": half} for name in ("agreement", "kendall")}
        best = {"validation": {"accuracy": {"all": 0, "selecting": 0}}}
        answers[one, other] = {"steps": [0], "best": best, "parts": {"validation": {sides: {"0": means}}}}
    return Column(runs, answers, column, "validation", "accuracy")


def test_two_seeds_have_an_interval_unless_both_pairs_are_of_the_same_two_runs():
    values = [[None, 40.0], [44.0, None]]
    for column in ("alpha_alpha", "alpha_beta"):
        once = column_of(values, column).interval("agreement")
        assert (once["value"], once["n"]) == (pytest.approx(42), 2)
        assert math.isnan(once["low"])
    for column in ("alpha_beta_uf", "delta_beta_uf", "beta_uf_beta_px", "alpha_alpha_frozen"):
        found = column_of(values, column).interval("agreement")
        assert found == pytest.approx(mean_interval([40.0, 44.0]).as_dict())


def test_of_what_each_network_adds_the_interval_is_students():
    """With 𝒜 of runs i and j the sum of what either adds, jackknife and Student's interval are one."""
    adds = np.array([3.0, 5.0, 10.0])
    found = column_of(adds[:, None] + adds).interval("agreement")
    assert found == pytest.approx(mean_interval(2 * adds).as_dict())


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
        found = column_of(values, column).interval("agreement")
        covered += found["low"] <= 50 <= found["high"]
        np.fill_diagonal(values, np.nan)
        means = mean_interval(np.nanmean(values, 1))  # the second runs come back in every mean
        naive += means.low <= 50 <= means.high
    assert covered / trials > 0.93
    assert naive / trials < (0.8 if column == "alpha_alpha" else 0.935)


# Tables and sentences of the agreement page, from numbers set by hand.

MEASURED = [f"{measure}{what}" for measure in ("agreement", "kendall") for what in ("", "_xi", "_starred")]


def interval(value, half=1.0, n=3):
    return {"value": value, "low": value - half, "high": value + half, "n": n}


def numbers(base, *, starred=0.0, frozen=True):
    """Of one set, part and quality: every number of a column is ``base`` plus its place among the columns.

    Kendall's τ is 20 less, ξ 30 more, and the paper's choice adds 5 to each.
    """
    found = {}
    for place, column in enumerate(COLUMNS):
        own = {"above_chance": interval(base + place - 8), "rises": interval(4), "falls": interval(2)}
        for name in MEASURED:
            value = base + place - 20 * name.startswith("kendall") + 30 * name.endswith("_xi")
            for choice, more in (("", 0), ("_optimistic", 5)):
                share = interval(starred if choice else 0.0, 0)
                own[name + choice] = share if name.endswith("_starred") else interval(value + more)
        found[column] = own
    if not frozen:
        found["alpha_alpha_frozen"]["agreement"] = {"value": None, "low": None, "high": None, "n": 0}
    return found | {"chance": interval(8, 0), "final": interval(80), "final_optimistic": interval(85)}


@pytest.fixture
def result_in_words():
    weak = {"above_chance": interval(3), "data": "iwslt14_de_en"}
    values = {
        "iwslt14_de_en": {
            "validation": {"accuracy": numbers(30, frozen=False), "bleu": numbers(40, frozen=False)},
            "training": {"accuracy": numbers(50, starred=0.67), "bleu": numbers(60)},
        },
        "sst": {"validation": {"accuracy": numbers(20)}, "train": {"accuracy": numbers(25)}},
        "yelp": {"cannot_be_run": "data: yelp is not at hand"},
        "weakest": dict.fromkeys(COLUMNS, weak),
    }
    return Result("agreement", "quick", {}, values, {"courses": []}, {"modules": [], "hash": ""}, {})


def test_every_set_of_a_profile_and_every_set_that_can_be_read_has_a_name():
    config = PROFILES["paper"]
    known = {*labelled_sets.names(), *parallel.NAMES, *config.classification, *config.translation}
    assert known - {parallel.OWN} <= set(DATA_NAMES)
    assert len(set(DATA_NAMES.values())) == len(DATA_NAMES)


def test_no_data_set_of_a_result_is_dropped(result_in_words):
    assert data_of(result_in_words) == ["sst", "iwslt14_de_en"]
    result_in_words.values["brand_new"] = result_in_words.values["sst"]
    assert list(agreement_table(result_in_words).index) == ["SST", "IWSLT14 De–En (part)", "brand_new"]
    labels = [label.get_text() for label in at_the_best(result_in_words).axes[0].get_yticklabels()]
    assert labels == ["brand_new", "IWSLT14 De–En (part)", "SST"]


def test_the_weakest_set_is_named(result_in_words):
    assert "𝒜(α, βᵘᶠ) on IWSLT14 De–En (part), 3 ± 1;" in weakest_sentence(result_in_words)


def test_what_would_change_our_mind_is_answered_a_point_a_line(result_in_words):
    apart = "the widest interval 2 from end to end"
    assert outcome_sentences(result_in_words).splitlines() == [
        "* **Agreement of α and βᵘᶠ at chance**",
        "  * *not happened*: SST (12 ± 1 above); IWSLT14 De–En (part) (22 ± 1 above)",
        "* **Frozen networks that attend as usual**",  # there are no frozen translators
        "  * *not ruled out*: SST (25 ± 1 % with a free one, two free ones 24 ± 1 %)",
        "* **Intervals as wide as the differences**",
        f"  * *not happened*: SST (between 20 and 23, {apart}); "
        f"IWSLT14 De–En (part) (between 30 and 33, {apart})",
    ]


@pytest.mark.parametrize(
    ("column", "name", "low", "high", "expected"),
    [
        ("alpha_beta_uf", "above_chance", -1.0, 25.0, "*not ruled out*: SST (12 ± 13 above)"),
        ("alpha_beta_uf", "above_chance", 0.0, 24.0, "*not ruled out*: SST (12 ± 12 above)"),
        ("alpha_beta_uf", "above_chance", -9.0, -1.0, "*happened*: SST (12 ± 4 above)"),
        ("alpha_alpha_frozen", "agreement", 20.0, 22.5, "*not happened*: SST (25 ± 1 % with a free"),  # < 23
        ("alpha_alpha_frozen", "agreement", 25.5, 27.0, "*happened*: SST (25 ± 1 % with a free"),  # > 25
        # 3 wide, as far as they lie apart
        ("alpha_beta", "agreement", 21.0, 24.0, "*happened*: SST (between 20 and 23, the widest interval 3"),
    ],
)
def test_each_point_can_come_out_either_way(result_in_words, column, name, low, high, expected):
    result_in_words.values["sst"]["validation"]["accuracy"][column][name] |= {"low": low, "high": high}
    assert expected in outcome_sentences(result_in_words)


def test_without_intervals_nothing_is_decided(result_in_words):
    for column in COLUMNS:
        for one in ("sst", "iwslt14_de_en"):
            for name in ("agreement", "above_chance"):
                found = result_in_words.values[one]["validation"]["accuracy"][column][name]
                found |= {"low": None, "high": None}
    assert "happened" not in outcome_sentences(result_in_words)
    assert outcome_sentences(result_in_words).count("not ruled out") == 2
    for name in ("sst", "iwslt14_de_en"):
        del result_in_words.values[name]
    assert outcome_sentences(result_in_words) == "No set has been run yet."


def test_sets_without_numbers_are_named(result_in_words):
    assert absent_sentence(result_in_words) == ""  # settings without sets
    result_in_words.config.update(
        {"classification": ["sst", "imdb", "yelp"], "translation": [], "data": None}
    )
    assert absent_sentence(result_in_words) == "Without numbers here: of labelled texts IMDB and Yelp (part)."
    result_in_words.config["translation"] = ["iwslt14_de_en", "multi30k_en_de"]
    assert absent_sentence(result_in_words).endswith(
        "IMDB and Yelp (part); of sentence pairs Multi30k En–De and News Commentary It–Pt, En–Nl and En–Pt "
        "(*cannot be run: data*)."
    )
    result_in_words.config["data"] = "my.tsv"
    assert absent_sentence(result_in_words) == ""


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, {"SST": ("20 ± 1", "50 ± 1", "80 ± 1"), "IWSLT14 De–En (part)": ("30 ± 1", "60 ± 1", "80 ± 1")}),
        (
            {"choice": "_optimistic"},
            {"SST": ("25 ± 1", "55 ± 1", "85 ± 1"), "IWSLT14 De–En (part)": ("35 ± 1", "65 ± 1", "85 ± 1")},
        ),
        ({"quality": "bleu"}, {"IWSLT14 De–En (part)": ("40 ± 1", "70 ± 1", "80 ± 1")}),
        (
            {"part": "training"},
            {"SST": ("25 ± 1", "55 ± 1", "80 ± 1"), "IWSLT14 De–En (part)": ("50 ± 1", "80 ± 1", "80 ± 1")},
        ),
        ({"part": "training", "quality": "bleu"}, {"IWSLT14 De–En (part)": ("60 ± 1", "90 ± 1", "80 ± 1")}),
    ],
)
def test_one_table_for_every_part_quality_and_choice(result_in_words, asked, expected):
    table = agreement_table(result_in_words, **asked)
    columns = ["𝒜(α, βᵘᶠ)", "ξ(α, βᵘᶠ)", "ξ*"]
    found = {name: tuple(row) for name, row in zip(table.index, table[columns].to_numpy(), strict=True)}
    assert found == expected
    assert set(table["n"]) == {"3"}


def test_kendall_has_its_letter_and_no_chance(result_in_words):
    table = agreement_table(result_in_words, measure="kendall")
    assert list(table.columns)[:3] == ["n", "τ(α, βᵘᶠ)", "τ(βᵘᶠ, βᵖˣ)"]
    assert table.loc["SST", "τ(α, βᵘᶠ)"] == "0 ± 1"
    assert "chance" not in table


def test_either_choice_has_a_row_and_its_own_asterisk(result_in_words):
    table = both_choices(result_in_words, part="training")
    name = "IWSLT14 De–En (part)"
    assert list(table.index)[2:] == [(name, "apart"), (name, "as in the paper")]
    assert list(table["ξ(α, βᵘᶠ)"])[2:] == ["80 ± 1", "85 ± 1*"]


def test_variants_are_folded_one_for_each_table_that_there_are_numbers_of(result_in_words):
    shown = variants(result_in_words)
    assert [number in shown for number in ("Table 3", "Table 4", "Table 6", "Table 7", "Table 8")] == [
        True
    ] * 5
    assert "| IWSLT14 De–En (part) | apart | 3 | 50 ± 1 |" in shown
    assert "|  | as in the paper | 3 | 55 ± 1 |" in shown
    assert "85 ± 1\\* |" in shown
    del result_in_words.values["iwslt14_de_en"]
    assert [number in variants(result_in_words) for number in ("Table 3", "Table 4", "Table 7")] == [
        True,
        False,
        True,
    ]


def test_frozen_networks_have_rows_where_there_are_any(result_in_words):
    table = frozen_table(result_in_words)
    assert list(table.index) == [("SST", "apart"), ("SST", "as in the paper")]
    assert list(table["𝒜(α, αᶠʳ)"]) == ["25 ± 1", "30 ± 1"]  # the sixth column


def test_the_number_of_networks_is_on_every_row(result_in_words):
    assert runs_behind([interval(1, n=2), interval(1, n=4), interval(1, n=0)]) == "2–4"
    assert runs_behind([interval(1, n=0)]) == "–"
    result_in_words.values["sst"]["validation"]["accuracy"]["alpha_beta"]["agreement"] |= {"n": 2}
    assert list(agreement_table(result_in_words)["n"]) == ["2–3", "3"]
    assert list(choice_table(result_in_words)["n"]) == ["3", "3"]


def test_captions_say_how_many_networks_of_each_kind(result_in_words):
    assert (
        networks_caption(result_in_words) == "n, networks of each kind: 3 on SST; 3 on IWSLT14 De–En (part)"
    )
    result_in_words.values["sst"]["validation"]["accuracy"]["alpha_beta"]["agreement"] |= {"n": 2}
    assert "2–3 on SST;" in networks_caption(result_in_words)
    result_in_words.values.clear()
    assert networks_caption(result_in_words) == "no networks yet"


def test_printed_numbers_stand_beside_both_readings_of_a_set():
    found = printed_agreement()
    assert found["multi30k_en_de", "alpha_beta"] == found["multi30k_de_en", "alpha_beta"] == 48.78
    assert found["sst", "alpha_beta"] == found["sst_as_text", "alpha_beta"] == 25.33


def test_the_commonest_answer_is_told_of_sets_that_are_printed_and_run(
    result_in_words, tmp_path, monkeypatch, pytestconfig
):
    """Of 72.16 to 78.16 half of the way is 3; SMS is not printed in Table 5."""
    (tmp_path / "claims").symlink_to(pytestconfig.rootpath / "claims")
    monkeypatch.setattr(sentences, "find_root", lambda: tmp_path)
    assert baselines_sentence(result_in_words) == ""
    sst, other = result_in_words.values["sst"], numbers(20)
    sst["validation"]["accuracy"]["majority"] = 72.16
    result_in_words.values["sms_spam"] = {"validation": {"accuracy": other | {"majority": 87.0}}}
    result_in_words.values["sst_as_text"] = {"validation": {"accuracy": other | {"majority": 50.0}}}
    del result_in_words.values["iwslt14_de_en"]
    result_in_words.save(tmp_path / "results" / "paper")
    printed = "The lowest accuracy that Table 5 prints, 78.16, is to be met within"
    assert baselines_sentence(result_in_words).splitlines()[2:] == [
        f"* SST: 72.2 %. {printed} 3.",
        f"* SST, as the text says: 50.0 %. {printed} 5.",
    ]
    result_in_words.values["own"] = sst
    assert baselines_sentence(result_in_words) == ""


def course_lines(column, agreements, accuracy=(10.0, 60.0, 90.0)):
    """Of two pairs of runs at steps 0, 10 and 20; the second pair's agreement is 2 above the first's."""
    return [
        {"data": "sst", "part": "validation", "column": column, "seed": seed, "second_seed": 1 - seed}
        | {"step": 10 * place, "agreement": agreement + 2 * seed, "accuracy": right + 2 * seed}
        for seed in (0, 1)
        for place, (agreement, right) in enumerate(zip(agreements, accuracy, strict=True))
    ]


@pytest.mark.parametrize(
    ("column", "attention", "expected"),
    [
        ((5, 30, 20), (1, 20, 40), (10, 31, 20, 91)),  # passed at the last look
        ((5, 30, 20), (1, 31, 25), (10, 31, 10, 61)),
        ((35, 30, 20), (40, 31, 25), (0, 36, 0, 11)),
        ((5, 30, 20), (1, 30, 30), None),  # as much is not more
    ],
)
def test_xi_is_read_off_the_mean_lines(result_in_words, column, attention, expected):
    lines = course_lines("alpha_beta_uf", column) + course_lines("alpha_alpha", attention)
    result_in_words.tables["courses"] = lines
    assert reading_off(result_in_words, "sst") == expected
    arrows = [text for text in along_training(result_in_words).axes[0].texts if "ξ" in text.get_text()]
    assert [text.get_text() for text in arrows] == ([] if expected is None else [f"ξ = {expected[-1]}"])
    result_in_words.tables["courses"] = course_lines("alpha_beta_uf", column)
    assert reading_off(result_in_words, "sst") is None


# Which reading of a printed name comes nearer to its numbers, from rows set by hand.


def row(data, quantity, printed, ours=None, table="5"):
    key = f"{data}.validation.{quantity}"
    published = Published(printed, Reference(table=table, dataset="SST", quantity=quantity))
    claim = Claim(
        id="printed", paper="p", place="Table", says="It.", published=published, experiment="agreement",
        keys=(key,), judge=Tolerance(absolute=5, published=printed), profiles=("paper",), number=True,
    )  # fmt: skip
    evidence = {} if ours is None else {key: Estimate(ours)}
    return ClaimVerdict(claim, "paper", Judgement(Verdict.PARTLY, evidence))


def test_the_mean_distance_is_over_numbers_that_both_have():
    rows = [
        row("sst", "a", 20, 21), row("sst_as_text", "a", 20, 26),
        row("sst", "b", 80, 77), row("sst_as_text", "b", 80, 82),
        row("sst", "c", 50, 10), row("sst_as_text", "c", 50),
        row("sst", "d", 7, 7), row("sst_as_text", "d", 7, 7),
    ]  # fmt: skip
    assert readings_sentences(rows) == (
        "* **SST.** Ours are 1.3 away from 3 printed numbers on average under the filter of labels that "
        "gives Table 9's counts, 2.7 under the text's filter; nearer under the first are 1 of them, under "
        "the second 1."
    )


def test_a_number_that_is_printed_twice_counts_once_with_most_digits():
    twice = [row(data, "a", 20, 23, table="2") for data in ("sst", "sst_as_text")]
    exact = [row("sst", "a", 21.5, 23), row("sst_as_text", "a", 21.5, 25)]
    words = readings_sentences(twice + exact)
    assert "1.5 away from 1 printed numbers" in words
    assert "3.5 under the text's filter" in words


def test_two_probes_count_once_where_they_are_printed_by_accuracy_and_by_bleu():
    """The proxy has no BLEU, so the pair is the same; its ξ is not."""

    def rows(*quantities):
        return [
            row(data, quantity, printed, ours)
            for quantity, printed, distance in quantities
            for data, ours in (
                ("multi30k_en_de", printed + distance),
                ("multi30k_de_en", printed + 2 * distance),
            )
        ]

    once = rows(
        ("accuracy.beta_uf_beta_px.agreement_optimistic", 34.4, 6),
        ("accuracy.alpha_beta.agreement_optimistic", 40, 1),
        ("bleu.alpha_beta.agreement_optimistic", 40, 2),
        ("bleu.beta_uf_beta_px.agreement_xi_optimistic", 11.4, 3),
    )
    again = rows(
        ("bleu.beta_uf_beta_px.agreement_optimistic", 34.4, 6),
        ("bleu.beta_uf_beta_px.kendall_optimistic", 28, 6),
    )
    assert "3.0 away from 4 printed numbers" in readings_sentences(once)
    assert readings_sentences(once + again) == readings_sentences(once)


def test_a_name_with_one_reading_is_left_out():
    assert readings_sentences([row("sst", "a", 20, 21), row("multi30k_en_de", "a", 20, 30)]) == ""
