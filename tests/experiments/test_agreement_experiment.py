"""The experiment on agreement: which runs are compared, what is refused, and the whole way on tiny runs."""

import pytest

from attnlib.companion.sentences.agreement import (
    agreement_table,
    choice_table,
    frozen_table,
    weakest_sentence,
)
from attnlib.companion.sentences.agreement_printed import printed_agreement, printed_tables
from attnlib.errors import BadInput, NotMeasured, UnknownName
from attnlib.experiments import agreement as experiment
from attnlib.experiments import optimal_attention
from attnlib.experiments.agreement import Config, models, rows
from attnlib.experiments.agreement_runs import COLUMNS, classifier_runs
from attnlib.experiments.run import run
from attnlib.plotting.agreement import along_training, at_the_best
from attnlib.recipes.recipe import RecipeSpec

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
    monkeypatch.setattr(experiment.translation, "at_hand", lambda name: name == "known_lexicon")
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
