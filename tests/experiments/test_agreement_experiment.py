"""Agreement tables from recordings whose every number is known."""

import math
from types import SimpleNamespace

import pytest
import torch

from attnlib.companion.agreement_sentences import (
    agreement_table,
    choice_table,
    frozen_table,
    printed_agreement,
    printed_tables,
    weakest_sentence,
)
from attnlib.errors import BadInput, NotMeasured, UnknownName
from attnlib.experiments import agreement as experiment
from attnlib.experiments.agreement import Config, models, rows
from attnlib.experiments.agreement_runs import classifier_runs
from attnlib.experiments.agreement_summary import courses, gathered, row, weakest
from attnlib.experiments.measures.agreement import measure_agreement
from attnlib.experiments.measures.course_quality import measure_quality
from attnlib.experiments.run import run
from attnlib.plotting.agreement import along_training, at_the_best
from attnlib.probes.contextualised import halves
from attnlib.recipes.recipe import RecipeSpec, Recording

SELECTING, REPORTING = (half.tolist() for half in halves(4, 0))
TINY = {
    "seeds": 2, "long_seeds": 2, "frozen": 0, "steps": 10, "n_train": 60,
    "n_validation": 8, "width": 8, "embedding_width": 8, "translation_steps": 50,
    "train_pairs": 60, "validation_pairs": 8, "pieces": 60,
}  # fmt: skip


def recorded(seed=0, correct=((0, 0, 0, 0), (1, 1, 1, 0)), **by_position):
    """A classifier on four texts of two words, looked at twice; the top of a row is given as 0 or 1."""
    tensors = {
        "steps": torch.tensor([0, 10]),
        "validation.offsets": torch.arange(0, 10, 2),
        "validation.labels": torch.tensor([0, 1, 0, 1]),
        "validation.correct": torch.tensor(correct, dtype=torch.bool),
    }
    for name, tops in by_position.items():
        rows = torch.nn.functional.one_hot(torch.tensor(tops), 2).float()
        tensors[f"validation.{name}"] = rows.flatten(1)
    return Recording(SimpleNamespace(seed=seed, setting=f"seed {seed}"), tensors, {})


def test_the_first_run_is_taken_at_its_best_checkpoint_and_the_second_at_each():
    first = recorded(attention=[[1, 1, 1, 1], [0, 0, 0, 0]])
    second = recorded(log_polarity=[[0, 1, 1, 1], [0, 0, 0, 1]])
    found = measure_agreement(first, second, pairs="attention~probe")
    assert found["best"] == {"accuracy": 1}
    sums = found["parts"]["validation"]["attention~probe"]["accuracy"]["agreement"]
    agrees = [[1, 0, 0, 0], [1, 1, 1, 0]]  # with the first word everywhere
    for half, samples in (("selecting", SELECTING), ("reporting", REPORTING)):
        assert sums[half] == [[sum(look[i] for i in samples), 2, 0] for look in agrees]
    assert found["chance"] == {"validation": {"probe": 0.5}}


def test_a_run_agrees_with_itself_at_its_best():
    one = recorded(attention=[[1, 1, 0, 1], [0, 1, 0, 1]])
    found = measure_agreement(one, one, pairs="attention~attention")["parts"]["validation"]
    for measure in ("agreement", "kendall"):
        sums = found["attention~attention"]["accuracy"][measure]
        assert [sums[half][1] for half in ("selecting", "reporting")] == [[2.0, 2, 0]] * 2


def test_runs_that_looked_at_other_texts_are_not_compared():
    one, other = recorded(attention=[[0] * 4] * 2), recorded(seed=1, log_polarity=[[0] * 4] * 2)
    other.tensors["validation.offsets"][1] = 1
    with pytest.raises(BadInput, match="seed 0 and seed 1 were looked at on other samples"):
        measure_agreement(one, other, pairs="attention~probe")


@pytest.mark.parametrize("pairs", ["", "attention", "attention~loss"])
def test_pairs_that_cannot_be_read_are_refused(pairs):
    with pytest.raises(BadInput, match="expected such as 'attention~probe', of attention, saliency, probe"):
        measure_agreement(recorded(), recorded(), pairs=pairs)


def test_quality_counts_words_not_sentences():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    tensors = {
        "steps": torch.tensor([0]),
        "validation.log_probe": torch.zeros(1, 4),
        "validation.target_mask": mask,
        "validation.right": torch.tensor([[1, 1]]),
        "validation.bleu_counts": torch.tensor(
            [[[4, 4, 4, 3, 2, 1, 4, 3, 2, 1], [1, 1, 0, 0, 0, 0, 1, 0, 0, 0]]]
        ),
    }
    found = measure_quality(Recording(SimpleNamespace(), tensors, {}))["parts"]["validation"]
    assert found["accuracy"]["all"] == [50.0]
    ((reports,),) = [halves(2, 0)[1].tolist()]
    assert found["accuracy"]["reporting"] == pytest.approx([100 / 3 if reports == 0 else 100.0])
    # four fifths of the words are right, and all longer n-grams; the lengths are equal
    assert found["bleu"]["all"] == pytest.approx([100 * 0.8**0.25])


class Given:
    """A store whose answers are made from recordings by the role of the run."""

    def __init__(self, runs, recordings):
        self.recordings = {spec: recordings(spec) for spec in runs.specs}

    def kept(self, spec, measure, *, beside=(), **settings):
        return measure(*(self.recordings[one] for one in (spec, *beside)), **settings)


class Unmeasured:
    """A store that has measured nothing."""

    def kept(self, spec, measure, **settings):
        raise NotMeasured(spec.setting)


@pytest.fixture
def table():
    runs = classifier_runs(2, 1, {"data": "known_polarity"}, 8)

    def recordings(spec):
        first = [[1, 1, 1, 1], [0, 0, 0, 0]]
        if spec in runs.uniform:  # agrees on every text at first, on one reporting text in the end
            late = [0 if i == REPORTING[0] else 1 for i in range(4)]
            return recorded(spec.seed, log_polarity=[[0, 0, 0, 0], late])
        if spec in runs.alone:  # never agrees
            return recorded(spec.seed, attention=[[1] * 4] * 2)
        if spec in runs.proxy:
            return recorded(spec.seed, log_polarity=first)
        return recorded(spec.seed, attention=first, saliency=first, log_polarity=first)

    return runs, gathered(runs, Given(runs, recordings))


def test_a_row_takes_the_best_checkpoint_of_the_second_run(table):
    found = row(*table)["validation"]["accuracy"]
    assert found["alpha_beta_uf"]["agreement"]["value"] == 100  # at its first checkpoint, not at its last
    assert found["alpha_beta_uf"]["kendall"] == {"value": 100, "low": 100, "high": 100, "n": 2}
    assert found["chance"]["value"] == 50
    right = [1, 1, 1, 0]
    assert found["final"]["value"] == 50 * sum(right[i] for i in REPORTING)


def test_an_agreement_that_no_checkpoint_exceeds_is_starred(table):
    found = row(*table)["validation"]["accuracy"]["alpha_beta_uf"]
    assert found["agreement_starred"]["value"] == found["agreement_starred_optimistic"]["value"] == 1
    assert found["agreement_xi_optimistic"]["value"] == 75  # three texts of four in the end


def test_rise_and_fall_are_read_where_the_other_half_has_its_best(table):
    found = row(*table)["validation"]["accuracy"]
    assert found["alpha_beta_uf"]["rises"]["value"] == 0
    assert found["alpha_beta_uf"]["falls"]["value"] == 50  # of the two texts that report one is lost
    assert found["alpha_alpha_frozen"]["agreement"] == {"value": 0, "low": None, "high": None, "n": 1} | {
        name: pytest.approx(math.nan, nan_ok=True) for name in ("low", "high")
    }


def test_the_weakest_column_is_that_of_the_lowest_interval(table):
    values = {"even": row(*table), "odd": row(*table)}
    column = values["odd"]["validation"]["accuracy"]["alpha_beta"]
    column["above_chance"] = {"value": 60, "low": 20, "high": 100, "n": 2}
    assert weakest(values)["alpha_beta"] == {"above_chance": column["above_chance"], "data": "odd"}
    assert weakest({})["alpha_beta"]["above_chance"]["n"] == 0


def test_courses_have_every_checkpoint_of_every_pair(table):
    runs, answers = table
    lines = courses(runs, answers)
    assert len(lines) == 2 * (2 * 5 + 1)  # checkpoints; columns of two seeds, and one network frozen
    first = next(line for line in lines if line["column"] == "alpha_beta_uf")
    assert (first["step"], first["agreement"], first["accuracy"]) == (0, 100, 0)


def test_what_has_not_been_asked_leaves_gaps_not_errors(table):
    runs, answers = table
    kept = {key: answer for key, answer in answers.items() if runs.normal[1] not in key}
    found = row(runs, kept)["validation"]["accuracy"]
    assert found["alpha_beta_uf"]["agreement"] == {
        "value": 100,
        "low": None,
        "high": None,
        "n": 1,
    } or math.isnan(found["alpha_beta_uf"]["agreement"]["low"])
    assert found["alpha_beta_uf"]["agreement_xi"]["n"] == 0
    assert found["alpha_beta"]["agreement"]["value"] is None
    assert found["final"]["n"] == 0


def test_networks_that_belong_together_differ_in_seed_or_attention_alone():
    runs = classifier_runs(3, 0, {"data": "known_polarity"}, 8)
    assert [spec.seed for spec in runs.normal] == [0, 1, 2]
    assert len(runs.pairs(("normal", "other"))) == 6
    for normal, uniform in runs.pairs(("normal", "uniform")):
        assert normal.seed == uniform.seed
        assert {name for name, _ in set(normal.settings) ^ set(uniform.settings)} == {"attention", "saliency"}


def test_a_readers_own_data_is_the_only_row(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("text\tlabel\n" + "".join(f"a b c{i}\t{'yes' if i % 2 else 'no'}\n" for i in range(40)))
    (own,) = rows(Config(data=path)).values()
    settings = dict(own.normal[0].settings)
    assert settings["data"] == str(path)
    assert not {"n_train", "n_validation"} & set(settings)  # all of it, whatever the profile takes of others
    (part,) = rows(Config(data=path, n_train=30)).values()
    assert dict(part.normal[0].settings)["n_train"] == 30
    assert models(Config(data=path)) == own.specs


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
    with pytest.raises(BadInput, match="compares a network with another seed"):
        Config(seeds=1)
    with pytest.raises(UnknownName, match="did you mean 'sst'"):
        Config(classification=("sts",))


def test_sets_that_are_not_at_hand_are_left_out_where_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(experiment.labelled_sets, "at_hand", lambda name: name != "sst")
    monkeypatch.setattr(experiment.translation, "at_hand", lambda name: name == "known_lexicon")
    assert list(rows(Config())) == ["known_polarity", "known_lexicon"]
    assert len(rows(Config(only_at_hand=0))) == 4
    values, tables = experiment.compute(Config(), Unmeasured())
    assert values["sst"] == {"cannot_be_run": "data: sst is not at hand"}
    assert values["weakest"]["alpha_beta"]["above_chance"]["n"] == 0
    assert tables == {"courses": []}


MADE_BY_RULE = TINY | {"classification": ("known_polarity",), "translation": ("known_lexicon",)}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agreement")
    return run("agreement", out=folder, models=folder / "models", overrides=MADE_BY_RULE)


def test_the_whole_way_on_both_corpora_made_by_rule(result):
    assert result.values.keys() == {"known_polarity", "known_lexicon", "weakest"}
    assert result.values["known_polarity"]["validation"].keys() == {"accuracy"}
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
    assert "above it" in weakest_sentence(result)


def test_printed_numbers_are_found_by_our_names(result):
    found = printed_agreement()
    assert (found["sst", "alpha_beta_uf"], found["multi30k_en_de", "alpha_beta"]) == (19.85, 48.78)
    table = printed_tables(result, "10")
    assert "Table 10: attention trained with the lexical probe frozen" in table
    assert "| Yelp | 8" in table
