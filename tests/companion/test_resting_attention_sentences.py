"""Tables, sentences and figures on where attention rests, from numbers set by hand."""

import pytest

from attnlib.companion.sentences.resting_attention import (
    apart_table,
    networks_caption,
    outcome_sentences,
    resting_sentences,
    resting_table,
)
from attnlib.errors import DataUnavailable
from attnlib.experiments.result import Result
from attnlib.plotting.resting_attention import (
    CLASSES,
    PLACE_LOOKS,
    class_name,
    pairs_of_seeds,
    resting_places,
)
from companion.data import labelled_sets


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
