"""Tables and sentences of the agreement page, from numbers set by hand."""

import pytest

from attnlib.companion.sentences import agreement_printed
from attnlib.companion.sentences.agreement import (
    absent_sentence,
    agreement_table,
    both_choices,
    choice_table,
    frozen_table,
    networks_caption,
    runs_behind,
    variants,
    weakest_sentence,
)
from attnlib.companion.sentences.agreement_outcomes import outcome_sentences
from attnlib.companion.sentences.agreement_printed import baselines_sentence, printed_agreement
from attnlib.experiments.agreement import PROFILES
from attnlib.experiments.agreement_runs import COLUMNS
from attnlib.experiments.result import Result
from attnlib.plotting.agreement import DATA_NAMES, along_training, at_the_best, data_of, reading_off
from companion.data import labelled_sets, parallel

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
def result():
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


def test_no_data_set_of_a_result_is_dropped(result):
    assert data_of(result) == ["sst", "iwslt14_de_en"]
    result.values["brand_new"] = result.values["sst"]
    assert list(agreement_table(result).index) == ["SST", "IWSLT14 De–En (part)", "brand_new"]
    labels = [label.get_text() for label in at_the_best(result).axes[0].get_yticklabels()]
    assert labels == ["brand_new", "IWSLT14 De–En (part)", "SST"]


def test_the_weakest_set_is_named(result):
    assert "𝒜(α, βᵘᶠ) on IWSLT14 De–En (part), 3 ± 1;" in weakest_sentence(result)


def test_what_would_change_our_mind_is_answered_a_point_a_line(result):
    apart = "the widest interval 2 from end to end"
    assert outcome_sentences(result).splitlines() == [
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
def test_each_point_can_come_out_either_way(result, column, name, low, high, expected):
    result.values["sst"]["validation"]["accuracy"][column][name] |= {"low": low, "high": high}
    assert expected in outcome_sentences(result)


def test_without_intervals_nothing_is_decided(result):
    for column in COLUMNS:
        for one in ("sst", "iwslt14_de_en"):
            for name in ("agreement", "above_chance"):
                found = result.values[one]["validation"]["accuracy"][column][name]
                found |= {"low": None, "high": None}
    assert "happened" not in outcome_sentences(result)
    assert outcome_sentences(result).count("not ruled out") == 2
    for name in ("sst", "iwslt14_de_en"):
        del result.values[name]
    assert outcome_sentences(result) == "No set has been run yet."


def test_sets_without_numbers_are_named(result):
    assert absent_sentence(result) == ""  # settings without sets
    result.config.update({"classification": ["sst", "imdb", "yelp"], "translation": [], "data": None})
    assert absent_sentence(result) == "Without numbers here: of labelled texts IMDB and Yelp (part)."
    result.config["translation"] = ["iwslt14_de_en", "multi30k_en_de"]
    assert absent_sentence(result).endswith(
        "IMDB and Yelp (part); of sentence pairs Multi30k En–De and News Commentary It–Pt, En–Nl and En–Pt "
        "(*cannot be run: data*)."
    )
    result.config["data"] = "my.tsv"
    assert absent_sentence(result) == ""


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
def test_one_table_for_every_part_quality_and_choice(result, asked, expected):
    table = agreement_table(result, **asked)
    columns = ["𝒜(α, βᵘᶠ)", "ξ(α, βᵘᶠ)", "ξ*"]
    found = {name: tuple(row) for name, row in zip(table.index, table[columns].to_numpy(), strict=True)}
    assert found == expected
    assert set(table["n"]) == {"3"}


def test_kendall_has_its_letter_and_no_chance(result):
    table = agreement_table(result, measure="kendall")
    assert list(table.columns)[:3] == ["n", "τ(α, βᵘᶠ)", "τ(βᵘᶠ, βᵖˣ)"]
    assert table.loc["SST", "τ(α, βᵘᶠ)"] == "0 ± 1"
    assert "chance" not in table


def test_either_choice_has_a_row_and_its_own_asterisk(result):
    table = both_choices(result, part="training")
    name = "IWSLT14 De–En (part)"
    assert list(table.index)[2:] == [(name, "apart"), (name, "as in the paper")]
    assert list(table["ξ(α, βᵘᶠ)"])[2:] == ["80 ± 1", "85 ± 1*"]


def test_variants_are_folded_one_for_each_table_that_there_are_numbers_of(result):
    shown = variants(result)
    assert [number in shown for number in ("Table 3", "Table 4", "Table 6", "Table 7", "Table 8")] == [
        True
    ] * 5
    assert "| IWSLT14 De–En (part) | apart | 3 | 50 ± 1 |" in shown
    assert "|  | as in the paper | 3 | 55 ± 1 |" in shown
    assert "85 ± 1\\* |" in shown
    del result.values["iwslt14_de_en"]
    assert [number in variants(result) for number in ("Table 3", "Table 4", "Table 7")] == [True, False, True]


def test_frozen_networks_have_rows_where_there_are_any(result):
    table = frozen_table(result)
    assert list(table.index) == [("SST", "apart"), ("SST", "as in the paper")]
    assert list(table["𝒜(α, αᶠʳ)"]) == ["25 ± 1", "30 ± 1"]  # the sixth column


def test_the_number_of_networks_is_on_every_row(result):
    assert runs_behind([interval(1, n=2), interval(1, n=4), interval(1, n=0)]) == "2–4"
    assert runs_behind([interval(1, n=0)]) == "–"
    result.values["sst"]["validation"]["accuracy"]["alpha_beta"]["agreement"] |= {"n": 2}
    assert list(agreement_table(result)["n"]) == ["2–3", "3"]
    assert list(choice_table(result)["n"]) == ["3", "3"]


def test_captions_say_how_many_networks_of_each_kind(result):
    assert networks_caption(result) == "n, networks of each kind: 3 on SST; 3 on IWSLT14 De–En (part)"
    result.values["sst"]["validation"]["accuracy"]["alpha_beta"]["agreement"] |= {"n": 2}
    assert "2–3 on SST;" in networks_caption(result)
    result.values.clear()
    assert networks_caption(result) == "no networks yet"


def test_printed_numbers_stand_beside_both_readings_of_a_set():
    found = printed_agreement()
    assert found["multi30k_en_de", "alpha_beta"] == found["multi30k_de_en", "alpha_beta"] == 48.78
    assert found["sst", "alpha_beta"] == found["sst_as_text", "alpha_beta"] == 25.33


def test_the_commonest_answer_is_told_of_sets_that_are_printed_and_run(
    result, tmp_path, monkeypatch, pytestconfig
):
    """Of 72.16 to 78.16 half of the way is 3; SMS is not printed in Table 5."""
    (tmp_path / "claims").symlink_to(pytestconfig.rootpath / "claims")
    monkeypatch.setattr(agreement_printed, "find_root", lambda: tmp_path)
    assert baselines_sentence(result) == ""
    sst, other = result.values["sst"], numbers(20)
    sst["validation"]["accuracy"]["majority"] = 72.16
    result.values["sms_spam"] = {"validation": {"accuracy": other | {"majority": 87.0}}}
    result.values["sst_as_text"] = {"validation": {"accuracy": other | {"majority": 50.0}}}
    del result.values["iwslt14_de_en"]
    result.save(tmp_path / "results" / "paper")
    printed = "The lowest accuracy that Table 5 prints, 78.16, is to be met within"
    assert baselines_sentence(result).splitlines()[2:] == [
        f"* SST: 72.2 %. {printed} 3.",
        f"* SST, as the text says: 50.0 %. {printed} 5.",
    ]
    result.values["own"] = sst
    assert baselines_sentence(result) == ""


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
def test_xi_is_read_off_the_mean_lines(result, column, attention, expected):
    lines = course_lines("alpha_beta_uf", column) + course_lines("alpha_alpha", attention)
    result.tables["courses"] = lines
    assert reading_off(result, "sst") == expected
    arrows = [text for text in along_training(result).axes[0].texts if "ξ" in text.get_text()]
    assert [text.get_text() for text in arrows] == ([] if expected is None else [f"ξ = {expected[-1]}"])
    result.tables["courses"] = course_lines("alpha_beta_uf", column)
    assert reading_off(result, "sst") is None
