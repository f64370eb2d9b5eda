"""Where attention rests: shares and agreement worked by hand, and tiny networks end to end."""

from types import SimpleNamespace

import pytest
import torch

from attnlib.errors import BadInput, DataUnavailable, NotMeasured, UnknownName
from companion.data import labelled_sets
from companion.results.result import Result
from companion.results.run import run
from companion.runs.recipe import Recording
from notebooks.learn.resting_attention.drawing import (
    CLASSES,
    PLACE_LOOKS,
    class_name,
    pairs_of_seeds,
    resting_places,
)
from notebooks.learn.resting_attention.experiment import PROFILES, Config, asks, compute, models, rows
from notebooks.learn.resting_attention.measure import measure_apart, measure_resting
from notebooks.learn.resting_attention.sentences import (
    apart_table,
    networks_caption,
    outcome_sentences,
    resting_sentences,
    resting_table,
)

TINY = {
    "data": ("known_polarity",), "beside": (), "seeds": 3, "n_train": 60, "n_validation": 20, "width": 3,
    "embedding_width": 4, "steps": 4,
}  # fmt: skip


def recorded(attention, log_polarity, lengths, labels, seed=0):
    """A classifier looked at twice; the first look is empty, so that only the last can be meant."""
    values = {"attention": attention, "log_polarity": log_polarity}
    tensors = {
        "validation.offsets": torch.tensor([0, *lengths]).cumsum(0),
        "validation.labels": torch.tensor(labels),
    }
    for name, last in values.items():
        last = torch.tensor(last, dtype=torch.float32)
        tensors[f"validation.{name}"] = torch.stack([torch.zeros_like(last), last])
    return Recording(SimpleNamespace(seed=seed, setting=f"seed {seed}"), tensors, {})


# Three texts of label 0 and one of label 1: <bos> a b <eos>, twice <bos> a <eos>, and <bos> a b <eos>.
LENGTHS, LABELS = (4, 3, 3, 4), (0, 0, 0, 1)
ONE = [0.4, 0.3, 0.2, 0.1, 0.2, 0.2, 0.6, 0.5, 0.5, 0.0, 0.1, 0.6, 0.2, 0.1]
OTHER = [0.1, 0.3, 0.2, 0.4, 0.6, 0.3, 0.1, 0.1, 0.2, 0.7, 0.1, 0.6, 0.2, 0.1]
SURE = [1.0, -1, -1, 2.0, -1.0, 5, 1.0, 3.0, -1, -2.0, -4.0, 9, 9, 1.0]


def test_shares_are_of_the_texts_of_a_label():
    found = measure_resting(recorded(ONE, SURE, LENGTHS, LABELS))
    assert found == {
        "0": {
            "texts": 3,
            "begin": pytest.approx(200 / 3),  # the third has two largest, of which the first is the mark
            "end": pytest.approx(100 / 3),
            "begin_right": pytest.approx(200 / 3),
            "end_right": pytest.approx(200 / 3),
            "begin_weight": pytest.approx(110 / 3),
            "end_weight": pytest.approx(70 / 3),
        },
        "1": {"texts": 1, "begin": 0, "end": 0, "begin_right": 0, "end_right": 100}
        | {"begin_weight": pytest.approx(10), "end_weight": pytest.approx(10)},
    }


def test_what_disagrees_over_all_positions_may_agree_among_the_words():
    first, second = (recorded(values, SURE, LENGTHS, LABELS) for values in (ONE, OTHER))
    found = measure_apart(first, second)
    assert {label: cell["agreement"] for label, cell in found["all"].items()} == {
        "both": 25,
        "0": 0,
        "1": 100,
    }
    assert {label: cell["agreement"] for label, cell in found["words"].items()} == dict.fromkeys(
        ("both", "0", "1"), 100
    )
    # One of four, three, three and four positions; among words one of two, one, one and two.
    assert found["all"]["both"]["chance"] == pytest.approx(100 * (1 / 4 + 1 / 3 + 1 / 3 + 1 / 4) / 4)
    assert found["words"]["both"]["chance"] == pytest.approx(75)
    assert found["words"]["1"]["chance"] == pytest.approx(50)


def test_only_the_same_texts_are_compared():
    first = recorded(ONE, SURE, LENGTHS, LABELS)
    second = recorded(OTHER, SURE, (3, 4, 3, 4), LABELS)
    with pytest.raises(BadInput, match="other texts"):
        measure_apart(first, second)


class Given:
    """A store that knows what the networks of some seeds attend to: seed 2 rests elsewhere."""

    def __init__(self, *seeds):
        self.seeds = seeds

    def kept(self, spec, measure, beside=()):
        seeds = [run.seed for run in (spec, *beside)]
        if not set(seeds) <= set(self.seeds):
            raise NotMeasured("unknown")
        if measure is measure_resting:
            begin = 5.0 if spec.seed == 2 else 80.0
            common = {"texts": 9, "begin": begin, "end": 85 - begin, "begin_right": 100.0, "end_right": 90.0}
            common |= {"begin_weight": 30.0, "end_weight": 20.0}
            rarer = {"texts": 3, "begin": 0.0, "end": 10.0, "begin_right": 40.0 * spec.seed}
            return {"0": common, "1": common | rarer}
        alike = 10.0 if 2 in seeds else 90.0
        cell = {"agreement": alike, "chance": 8.0}
        return {"all": {"both": cell}, "words": {"both": cell | {"agreement": 50.0 + sum(seeds)}}}


def test_places_and_pairs_are_counted_and_averaged():
    values, tables = compute(Config(data=("known_polarity",), beside=()), Given(0, 1, 2))
    found = values["known_polarity"]
    assert found["common"] == "0"
    assert found["resting"] == {"begin": 2, "end": 1, "words": 0, "nowhere": 0}
    # Seeds 0 and 1 rest on the begin mark, right in 0 and 40 % of the rarer; 2 on the end, in 90 %.
    assert found["own_mark"]["right"]["1"] == {"0": 0, "1": 40, "2": 90}
    assert (found["own_mark"]["default"], found["own_mark"]["n"]) == (2, 3)
    assert found["by_mark"]["same"]["all"] == {"mean": 90, "lowest": 90, "highest": 90, "n": 2}
    assert found["by_mark"]["different"]["words"] == {"mean": 52.5, "lowest": 52, "highest": 53, "n": 4}
    assert found["labels"]["0"]["begin"]["value"] == 55
    assert found["labels"]["1"]["words"] == {"value": 90, "low": 90, "high": 90, "n": 3}
    both = found["pairs"]["all"]["both"]
    assert both["agreement"]["value"] == pytest.approx((90 * 2 + 10 * 4) / 6)
    assert (both["lowest"], both["highest"]) == (10, 90)
    # A third of the pairs is 80 higher: a variance of 80² · 2/9, of which three networks leave a third.
    assert both["spread"]["value"] == pytest.approx(80 * (2 / 3) ** 0.5)
    words = found["pairs"]["words"]["both"]
    assert (words["agreement"]["value"], words["lowest"], words["highest"]) == (52, 51, 53)
    assert (len(tables["networks"]), len(tables["pairs"])) == (6, 12)
    assert tables["networks"][0]["words"] == 15


def test_a_network_without_a_majority_rests_nowhere():
    class Torn(Given):
        def kept(self, spec, measure, beside=()):
            found = super().kept(spec, measure, beside)
            return (
                {label: row | {"begin": 40.0, "end": 30.0} for label, row in found.items()}
                if not beside
                else found
            )

    values, _ = compute(Config(data=("known_polarity",), beside=()), Torn(0, 1, 2))
    found = values["known_polarity"]
    assert found["resting"] == {"begin": 0, "end": 0, "words": 0, "nowhere": 3}
    assert (found["by_mark"], found["own_mark"]["n"]) == ({}, 0)


def test_what_is_not_known_yet_is_left_out():
    config = Config(data=("known_polarity",), beside=())
    assert compute(config, Given()) == ({}, {"networks": [], "pairs": []})
    values, tables = compute(config, Given(0))
    assert values["known_polarity"]["pairs"] == {}
    assert len(tables["networks"]) == 2


def test_the_paper_profile_shares_its_networks_with_the_agreement_tables():
    from notebooks.learn.agreement import experiment as agreement

    shared = set(agreement.models(agreement.PROFILES["paper"]))
    found = rows(PROFILES["paper"])
    assert {name: sum(run in shared for run in runs) for name, runs in found.items()} == {
        "sms_spam": 4, "sst": 4, "sst_as_text": 4
    }  # fmt: skip
    assert len(found["sms_spam"]) == 12
    assert len(asks(PROFILES["paper"])) == 12 + 12 * 11 + 2 * (4 + 4 * 3)


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match="at least 2"):
        Config(seeds=1)
    with pytest.raises(BadInput, match="steps is 0"):
        Config(steps=0)
    for field in ("data", "beside"):
        with pytest.raises(UnknownName):
            Config(**{field: ("tweets",)})


def test_sets_that_are_not_at_hand_are_left_out_or_not(monkeypatch):
    monkeypatch.setattr(labelled_sets, "at_hand", lambda name: name == "known_polarity")
    assert list(rows(Config())) == ["known_polarity"]
    assert list(rows(Config(only_at_hand=0))) == ["known_polarity", "sms_spam", "sst"]


def test_tiny_networks_end_to_end(tmp_path):
    result = run("resting_attention", out=tmp_path, models=tmp_path / "models", overrides=TINY)
    assert len(models(Config(**TINY))) == 3
    assert not result.missing
    found = result.values["known_polarity"]
    for label in found["labels"].values():
        assert sum(label[place]["value"] for place in ("begin", "end", "words")) == pytest.approx(100)
    assert sum(found["resting"].values()) == 3
    for positions in found["pairs"].values():
        assert positions["both"]["lowest"] <= positions["both"]["agreement"]["value"]


# Tables, sentences and figures on where attention rests, from numbers set by hand.


def interval(value, half=2.0, n=3):
    return {"value": value, "low": value - half, "high": value + half, "n": n}


def cell(value, lowest, highest):
    numbers = {"agreement": interval(value), "spread": interval(value / 2), "chance": interval(9, 0)}
    return numbers | {"lowest": lowest, "highest": highest}


def label(texts, begin, end):
    places = {"begin": begin, "end": end, "words": 100 - begin - end, "begin_right": 99, "end_right": 7}
    places |= {"begin_weight": begin / 2, "end_weight": end / 2}
    return {"texts": texts} | {name: interval(value) for name, value in places.items()}


def parted(mean, lowest, highest, n):
    return {"mean": mean, "lowest": lowest, "highest": highest, "n": n}


# Two names that leave no room for a title.
IN_SHORT = {("very negative or negative", "positive or very positive"): ("negative", "positive")}
SMS = {
    "common": "0",
    "labels": {"0": label(1400, 60, 30), "1": label(200, 4, 2)},
    "resting": {"begin": 2, "end": 1, "words": 0, "nowhere": 1},
    "own_mark": {
        "right": {"0": {"0": 100, "1": 99, "2": 98}, "1": {"0": 0, "1": 4, "2": 80}},
        "default": 2,
        "n": 3,
    },
    "by_mark": {
        "same": {"all": parted(85, 59, 95, 2), "words": parted(57, 48, 66, 2)},
        "different": {"all": parted(14, 6, 27, 4), "words": parted(56, 49, 63, 4)},
    },
    "pairs": {
        "all": {"both": cell(62, 12, 92), "0": cell(60, 4, 96), "1": cell(64, 50, 70)},
        "words": {"both": cell(58, 53, 61), "0": cell(57, 52, 62), "1": cell(61, 49, 70)},
    },
}
NETWORKS = [
    {"data": "sms_spam", "seed": seed, "label": label, "begin": begin, "end": 20.0, "words": 80.0 - begin}
    for seed, begin in ((0, 70.0), (1, 5.0), (2, 75.0))
    for label in ("0", "1")
]
PAIRS = [
    {"data": "sms_spam", "seed": one, "second_seed": other, "positions": positions, "label": "both"}
    | {
        "agreement": 10.0 * one + other,
        "chance": 9.0,
        "marks": "same" if 1 not in (one, other) else "different",
    }
    for one in range(3)
    for other in range(3)
    if one != other
    for positions in ("all", "words")
]


@pytest.fixture
def result():
    return Result(
        "resting_attention", "paper", {}, {"sms_spam": SMS}, {"networks": NETWORKS, "pairs": PAIRS}, {}, {}
    )


def test_sentences_count_networks_and_give_the_ends_of_pairs(result):
    assert resting_sentences(result) == (
        "* **SMS.** 4 networks, by what they attend to most in more than half of the texts that are ham, the "
        "commoner label: 2 to the begin mark, 1 to the end mark and 1 to none of these. Two seeds agree in "
        "62 ± 2 % of all texts (12 to 92, standard deviation 31 [29, 33]); among the words alone in 58 ± 2 % "
        "of all texts (53 to 61, standard deviation 29 [27, 31]), where chance has 9 %."
    )


def test_captions_say_how_many_networks_a_set_has(result):
    assert networks_caption(result) == "n, networks: 4 on SMS"


def test_of_a_single_network_no_pairs_are_spoken_of(result):
    result.values["sms_spam"] = SMS | {"pairs": {}}
    assert resting_sentences(result).endswith("and 1 to none of these.")
    assert not len(apart_table(result))
    assert pairs_of_seeds(result).axes == []


def test_two_networks_have_no_standard_deviation(result):
    nothing = {"value": None, "low": None, "high": None, "n": 2}
    both = SMS["pairs"]["all"]["both"] | {"spread": nothing}
    pairs = SMS["pairs"] | {"all": SMS["pairs"]["all"] | {"both": both}}
    result.values["sms_spam"] = SMS | {"pairs": pairs}
    assert "62 ± 2 % of all texts (12 to 92); among" in resting_sentences(result)
    assert apart_table(result).loc[("SMS, all texts", "all positions"), "their standard deviation"] == "–"


def test_outcomes_part_pairs_by_mark_and_say_what_the_marks_say(result):
    assert outcome_sentences(result) == (
        "* SMS: pairs that rest on one mark (2) agree in 85 % (59 to 95) of the texts, pairs that rest on "
        "two (4) in 14 % (6 to 27); among the words alone in 57 % (48 to 66) and 56 % (49 to 63).\n"
        "* SMS: with all attention on the mark that it rests on, the median of 3 networks is nearly always "
        "right on ham (99 %, single networks 98 to 100) and nearly never on spam (4 %, 0 to 80). At 2 of 3 "
        "the mark says ham in more than half of the texts of either label."
    )


@pytest.mark.parametrize(
    ("ham", "spam", "told"),
    [
        (
            (100, 100),
            (0, 0),
            "median of 2 networks is always right on ham (100 %, each) and never on spam (0 %,",
        ),
        (
            (99.6, 100),
            (0.2, 0.4),
            "nearly always right on ham (99.8 %, single networks 99.6 to 100) and nearly",
        ),
        (
            (70, 80),
            (0, 40),
            "more often than not right on ham (75 %, single networks 70 to 80) and less often",
        ),
        ((50,), (50,), "the network is as often as not right on ham (50 %) and as often as not on spam"),
    ],
)
def test_how_often_a_mark_is_right_is_told_in_words(result, ham, spam, told):
    right = {label: dict(enumerate(found)) for label, found in (("0", ham), ("1", spam))}
    own = {"right": right, "default": 0, "n": len(ham)}
    result.values["sms_spam"] = SMS | {"by_mark": {}, "own_mark": own}
    words = outcome_sentences(result)
    assert told in words
    assert f"At none of {len(ham)} the mark says ham" in words


def test_without_networks_that_rest_the_outcome_says_so(result):
    result.values["sms_spam"] = SMS | {"by_mark": {}, "own_mark": {"right": {}, "default": 0, "n": 0}}
    assert outcome_sentences(result) == "* No network rests on a mark."


def test_tables_have_a_row_a_label(result):
    table = resting_table(result)
    assert list(table.index) == ["SMS, ham", "SMS, spam"]
    assert table.loc["SMS, ham", "at the end mark"] == "30 ± 2"
    assert table.loc["SMS, spam", "begin mark right"] == "99 ± 2"
    assert table.loc["SMS, ham", "weight on both marks"] == "45"
    apart = apart_table(result)
    texts = ["SMS, all texts", "SMS, ham", "SMS, spam"]
    assert list(apart.index) == [(name, of) for name in texts for of in ("all positions", "words alone")]
    assert apart.loc[("SMS, ham", "all positions"), "single pairs"] == "4 to 96"
    assert apart.loc[("SMS, all texts", "words alone"), "agreement"] == "58 ± 2"
    assert apart.loc[("SMS, spam", "all positions"), "their standard deviation"] == "32 [30, 34]"


def test_labels_have_the_names_of_their_set():
    assert class_name("sms_spam", "1") == "spam"
    assert class_name("something.csv", "1") == "label 1"


def test_every_set_has_names_for_its_labels():
    assert CLASSES.keys() == set(labelled_sets.names())


@pytest.mark.parametrize("name", CLASSES)
def test_labels_are_called_what_the_texts_call_them(name):
    try:
        classes = labelled_sets.load_labelled(name, n_train=100, n_validation=50).classes
    except DataUnavailable as error:
        pytest.skip(f"data: {error}")
    assert CLASSES[name] == IN_SHORT.get(classes, classes)


def test_every_network_is_a_whole_bar_on_either_side(result):
    for axes in resting_places(result).axes:
        assert len(axes.patches) == 3 * len(PLACE_LOOKS)
        assert [bar.get_x() + bar.get_width() for bar in axes.patches[-3:]] == pytest.approx([100] * 3)


def test_every_pair_is_a_dot_once_with_the_marks_and_once_without(result):
    (axes,) = pairs_of_seeds(result).axes
    clouds = [sorted(line.get_xdata()) for line in axes.lines if line.get_marker() == "o"]
    assert clouds == [[2, 20], [1, 10, 12, 21], []] * 2
    means = [line.get_xdata()[0] for line in axes.lines if line.get_linewidth() == 2]
    assert means == [58, 62]  # from below
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["SMS, words alone", "SMS, all positions"]
