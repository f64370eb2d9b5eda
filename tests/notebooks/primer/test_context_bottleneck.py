"""The bottleneck's numbers by hand, its experiment on tiny networks, and the recipe behind it."""

import math

import numpy as np
import pytest
import torch

from attnlib.errors import BadInput, UnknownName
from attnlib.training.vocabulary import EOS, PAD
from companion.data import registry
from companion.results.config import override
from companion.results.result import Result
from companion.runs.keys import model_key
from companion.runs.recipe import RecipeSpec
from companion.runs.sequence_course import judged_samples
from companion.runs.store import Store
from notebooks.primer.context_bottleneck.drawing import bits_by_length, probe_by_position, quality_by_length
from notebooks.primer.context_bottleneck.experiment import (
    PROFILES,
    Config,
    asks,
    capacity,
    compute,
    middle,
    models,
    quarter,
    slope,
)
from notebooks.primer.context_bottleneck.sentences import (
    bottleneck_sentences,
    judged_sentence,
    slopes_sentence,
    wider_sentence,
)
from notebooks.shared.measure import exact_matches, measure_by_length, measure_summary_bits

TINY = Config(width=(6, 8), seeds=2, longest=5, probed=(3, 4), n_train=300, judged=60, steps=4, samples=80)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    torch.set_num_threads(1)
    return Store(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def recording(store):
    return store.recording(models(TINY)[0])


def test_a_shared_capacity_has_slope_minus_one_and_a_word_of_its_own_zero():
    lengths = list(range(4, 20))
    shared = {"lengths": lengths, "bits_of_word": [18 / n for n in lengths], "bits": [18.0] * 16}
    own = {"lengths": lengths, "bits_of_word": [3.0] * 16, "bits": [3.0 * n for n in lengths]}
    assert slope(shared) == pytest.approx(-1)
    assert slope(own) == pytest.approx(0)
    assert capacity(shared) == pytest.approx(18)
    assert capacity(own) == pytest.approx(3 * 18)  # mean of the three longest, 17, 18 and 19 words
    assert slope(shared | {"bits_of_word": [1.0] * 15 + [-0.1]}) is None
    assert quarter({"x": [1.0, 2.0, 3.0, 4.0, 5.0]}, "x", last=True) == 5


def test_bits_are_what_is_left_of_the_words_surprise(recording):
    """Against a loop over samples and positions."""
    found, judged = measure_by_length(recording), judged_samples(recording.spec.resolved)
    assert found["vocabulary"] == 10
    place = found["lengths"].index(4)
    rows = [i for i in range(len(judged)) if len(judged.target(i)) == 4]
    bits, right = [], []
    for i in rows:
        losses = recording["loss"][-1, i, :4].tolist()
        bits.append(sum(math.log2(10) - loss / math.log(2) for loss in losses))
        right += recording["right"][-1, i, :4].tolist()
    assert found["bits"][place] == pytest.approx(np.mean(bits))
    assert found["bits_of_word"][place] == pytest.approx(np.mean(bits) / 4)
    assert found["token_accuracy"][place] == pytest.approx(np.mean(right))
    assert found["samples"][place] == len(rows)


def test_an_exact_match_has_every_word_and_the_end_mark(recording):
    judged = judged_samples(recording.spec.resolved)
    longest = int(judged.target_lengths.max()) + 1
    written = torch.full((len(judged), longest + 1), PAD, dtype=torch.int32)
    for i in range(len(judged)):
        words = [*judged.target(i).tolist(), EOS]
        written[i, : len(words)] = torch.tensor(words)
    written[1, 0] += 1  # a wrong word
    written[2, int((written[2] != PAD).sum()) - 1] = PAD  # no end mark
    changed = type(recording)(recording.spec, dict(recording.tensors) | {"written": written}, {})
    assert np.flatnonzero(~exact_matches(changed, judged)).tolist() == [1, 2]


def test_the_probe_reads_the_one_vector_position_by_position(recording):
    found = measure_summary_bits(recording, length=3, samples=80)
    assert len(found["bits"]) == 3
    assert max(found["bits"]) < math.log2(10)


def test_values_and_tables_have_every_kind(store):
    values, tables = compute(TINY, store)
    assert set(values["initial"]) == {"width_6", "width_8"}
    assert values["widest"]["attention"] == values["attention"]["width_8"]
    assert values["attention_gains"]["n"] == values["wider"]["initial"]["n"] == 2
    assert {(row["link"], row["width"]) for row in tables["lengths"]} == {
        (link, width) for link in ("initial", "attention") for width in (6, 8)
    }
    assert {row["link"] for row in tables["probe"]} == {"initial"}
    assert len(tables["probe"]) == 2 * (3 + 4)
    assert values["read"]["initial"]["more"]["n"] == 2
    assert values["read"]["initial"]["decoder_over_probe"]["n"] == 2


def told(spec, measure, *, length=None, samples=None):
    """Hand-made answers: one vector loses words with length, attention hardly; more samples read more."""
    seed, attends = spec.resolved.seed, spec.resolved.link == "attention"
    if measure is measure_summary_bits:
        found = [3.0, 1.0, 0.5, 0.5, 0.25] if samples == 80 else [2.0, 1.0, 0.5, 0.5, 0.25]
        return {"bits": [bit + seed for bit in found], "length": 5, "vocabulary": 10}
    accuracy = [1.0, 0.9, 0.9] if attends else [0.9, 0.6, 0.4]
    exact = [1.0, 0.9, 0.75] if attends else [0.5, 0.25, 0.125]
    return {
        "lengths": [3, 4, 5],
        "token_accuracy": accuracy,
        "exact_match": [share - 0.125 * seed for share in exact],
        "bits": [9.0, 8.0, 6.0 + 3 * seed + spec.resolved.width],
        "bits_of_word": [3.0, 2.0, 1.5],
        "parameters": 7,
    }


class Told:
    def kept(self, spec, measure, **settings):
        return told(spec, measure, **settings)


def test_signs_of_what_the_claims_read():
    config = Config(width=(6, 8), seeds=2, longest=5, probed=(5,), samples=80)
    values, _ = compute(config, Told())
    assert values["widest"]["initial"]["falls"]["value"] == pytest.approx(0.5)
    assert values["widest"]["attention"]["falls"]["value"] == pytest.approx(0.1)
    assert values["widest"]["initial"]["slope"]["value"] < 0
    gains = values["attention_gains"]  # seeds take the same from both
    assert (gains["value"], gains["low"]) == (pytest.approx(0.625), pytest.approx(0.625))
    assert values["wider"]["initial"]["value"] == pytest.approx(2 / 3)
    read = values["read"]["initial"]
    assert read["together"]["value"] == pytest.approx(5.25 + 2.5)
    assert (read["more"]["value"], read["more"]["low"]) == (pytest.approx(1), pytest.approx(1))
    middle_half = (1.0 + 0.5 + 0.5) / 3
    assert read["first_over_middle"]["value"] == pytest.approx(3 - middle_half)
    assert read["last_over_middle"]["value"] == pytest.approx(0.25 - middle_half)
    assert read["decoder_over_probe"]["value"] == pytest.approx((14 + 17) / 2 - 7.75)
    assert middle([9.0, 1.0, 2.0, 9.0]) == pytest.approx(1.5)


def test_half_the_samples_are_asked_of_the_widest_vectors_and_longest_sentences_alone():
    config = Config(width=(6, 8), seeds=1, probed=(4, 5), samples=80)
    halved = [a for a in asks(config) if dict(a.settings).get("samples") == 40]
    assert {(a.spec.resolved.link, a.spec.resolved.width) for a in halved} == {("initial", 8)}
    assert {dict(a.settings)["length"] for a in halved} == {5}


def test_one_width_has_none_that_is_wider():
    assert compute(Config(width=(6,), seeds=2, longest=5, probed=(5,), samples=80), Told())[0]["wider"] == {}


def test_short_sentences_leave_enough_to_fit_a_probe_on(recording):
    """Of a thousand sentences of three words at most a quarter is kept to judge."""
    assert len(measure_summary_bits(recording, length=3, samples=2_000)["bits"]) == 3


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"link": "atention"}, UnknownName, "did you mean 'attention'"),
        ({"cell": "vanilla"}, UnknownName, "no cell 'vanilla'"),
        ({"shortest": 9, "longest": 8}, BadInput, "shortest ≤ longest"),
        ({"shortest": 2}, BadInput, "give 3 or more"),
        ({"steps": 0}, BadInput, "steps is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        override(PROFILES["quick"], given)


def test_a_run_does_not_depend_on_the_order_of_the_tasks_options():
    options = (("n_words", 5), ("max_length", 16))
    one, other = (RecipeSpec.of("recurrent_sequences", options=own) for own in (options, options[::-1]))
    assert one == other
    assert RecipeSpec.from_json(one.to_json()) == one
    assert registry.builder("one_to_one") in one.roots
    assert model_key(one) != model_key(RecipeSpec.of("recurrent_sequences", options=options[:1]))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"scoring": "dott"}, UnknownName, "did you mean 'dot'"),
        ({"source": "a.en"}, BadInput, "source and target go together"),
        ({"steps": 0}, BadInput, "steps is 0"),
    ],
)
def test_a_run_that_cannot_be_is_refused(settings, error, message):
    with pytest.raises(error, match=message):
        RecipeSpec.of("recurrent_sequences", **settings)


# The bottleneck drawn: what stands in which panel, and what it is held against.

LENGTHS, WIDTHS = (4, 8, 12), (16, 32, 64)
A_WORD = 3.0  # of 8 words
SIZES = {"judged": 90, "shortest": 4, "longest": 12}


def bits(link: str, width: int, length: int) -> float:
    """All of the sentence with attention, as many as the vector is wide by hand without."""
    return A_WORD * length if link == "attention" else min(A_WORD * length, width / 4)


@pytest.fixture
def result() -> Result:
    whole = {"value": 0.5, "low": 0.4, "high": 0.6}
    rows = [
        {"link": link, "width": width, "length": n, "quantity": quantity}
        | {"value": value, "low": value - 1, "high": value + 1}
        for link in ("initial", "attention")
        for width in WIDTHS
        for n in LENGTHS
        for quantity, value in (
            ("bits", bits(link, width, n)), ("bits_of_word", bits(link, width, n) / n),
            ("exact_match", 0.5), ("token_accuracy", 0.5),
        )
    ]  # fmt: skip
    probe = [
        {"link": "initial", "width": width, "length": n, "position": place} | whole
        for width in WIDTHS
        for n in LENGTHS
        for place in range(n)
    ]
    end = {"bits_of_word": whole, "exact_match": whole}
    values = {
        link: {
            f"width_{width}": {
                "capacity": {"value": most, "low": None, "high": None}, "slope": whole, "parameters": 1,
                "of_each": {"capacity": [most - 1, most + 1], "slope": [-1.0, None]},
                "shortest": end, "longest": dict(end),
            }
            for width in WIDTHS
            for most in (bits(link, width, LENGTHS[-1]),)
        }
        for link in ("initial", "attention")
    } | {"wider": {"initial": whole}}  # fmt: skip
    config = {"words": 8, "width": list(WIDTHS), "probed": list(LENGTHS)} | SIZES
    return Result("context_bottleneck", "quick", config, values, {"lengths": rows, "probe": probe}, {}, {})


def drawn(axes) -> list[list[float]]:
    return [list(line.get_ydata()) for line in axes.get_lines()]


def test_every_width_is_a_line_and_the_wider_is_the_darker(result):
    panels = quality_by_length(result).get_axes()
    assert [axes.get_title() for axes in panels[:2]] == ["one vector, at the start", "attention"]
    for axes in panels:
        shades = [line.get_alpha() for line in axes.get_lines()]
        assert shades == sorted(shades)
        assert len(set(shades)) == len(WIDTHS)


def test_bits_are_held_against_what_the_sentence_holds_and_the_widest_vector_shared(result):
    above_one, above_attention, below_one, below_attention = bits_by_length(result).get_axes()
    for axes in (above_one, above_attention):
        assert drawn(axes)[-1] == pytest.approx([A_WORD * n for n in LENGTHS])
    assert drawn(above_one)[2] == pytest.approx([12, 16, 16])  # width 64: 16 bits, if there are so many
    assert drawn(below_one)[-1] == pytest.approx([3, 2, 16 / 12])
    assert [text.get_text() for text in below_one.texts] == ["16 bits, shared"]
    assert len(below_attention.get_lines()) == len(below_one.get_lines()) - 1
    assert not below_attention.texts


def test_the_probe_has_a_panel_a_length_and_every_place_of_it(result):
    panels = probe_by_position(result).get_axes()
    assert [axes.get_title() for axes in panels] == ["4 words", "8 words", "12 words"]
    for axes, length in zip(panels, LENGTHS, strict=True):
        assert list(axes.get_lines()[0].get_xdata()) == list(range(1, length + 1))
        assert drawn(axes)[len(WIDTHS)][0] == pytest.approx(math.log2(8))


def test_networks_of_the_widest_vector_are_named_one_by_one(result):
    first, second = bottleneck_sentences(result).splitlines()
    assert first.endswith("Network by network the most is 15 and 17 bits, the power −1.00 and –.")
    assert second.endswith("Network by network the most is 35 and 37 bits, the power −1.00 and –.")


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ((0.4, 0.6), "the widest cannot be told from any other."),
        ((0.8, 0.9), "the widest is better than width 16 and width 32."),
        ((0.1, 0.2), "the widest is worse than width 16 and width 32."),
    ],
)
def test_whether_more_width_helps_attention_goes_by_intervals(result, ends, told):
    for width in WIDTHS:
        longest = result.values["attention"][f"width_{width}"]["longest"]
        longest["exact_match"] = {"value": 0.5, "low": 0.4, "high": 0.6}
    longest["exact_match"] = {"value": sum(ends) / 2, "low": ends[0], "high": ends[1]}
    assert wider_sentence(result).endswith(f"in the longest quarter are without a fault: {told}")


def test_slopes_that_are_not_below_zero_for_certain_are_named(result):
    for width in WIDTHS:
        result.values["initial"][f"width_{width}"]["slope"] = {"value": -1.0, "low": -1.5, "high": -0.5}
    assert "Of 3 kinds of one vector, 3 have a slope whose interval is below 0." in slopes_sentence(result)
    result.values["initial"]["width_64"]["slope"] = {"value": -1.0, "low": -2.5, "high": 0.5}
    assert "2 have a slope whose interval is below 0; not so: one vector, at the start, width 64." in (
        slopes_sentence(result)
    )


def test_a_point_of_a_curve_says_how_many_sentences_it_is_made_from(result):
    assert judged_sentence(result) == "The 90 held-out sentences have 9 lengths, so about 10 judge each."
