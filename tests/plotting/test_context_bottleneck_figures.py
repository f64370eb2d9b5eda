"""The bottleneck drawn: what stands in which panel, and what it is held against."""

import math

import pytest

from attnlib.companion.sentences.context_bottleneck import (
    bottleneck_sentences,
    judged_sentence,
    slopes_sentence,
    wider_sentence,
)
from attnlib.experiments.result import Result
from attnlib.plotting.context_bottleneck import bits_by_length, probe_by_position, quality_by_length

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
