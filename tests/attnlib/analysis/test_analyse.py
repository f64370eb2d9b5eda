"""A corpus to an analysis: what is held out, what is too small for it, and the sample that is shown."""

from dataclasses import replace

import pytest
import torch

from attnlib.analysis import Part, Stream, analyse
from attnlib.analysis.analyse import analyse_kept
from attnlib.analysis.fit import counted_attention
from attnlib.analysis.how_to_read import notes
from attnlib.analysis.readings import Keep, fit_part, judge_part
from attnlib.analysis.results import LONGEST_EXAMPLE, head_rows, state_rows, term_rows
from attnlib.errors import BadInput
from tests.attnlib.analysis.test_fit_and_judge import (
    ALL,
    HEADS,
    Toy,
    assert_same_rows,
    by_hand,
    fit_of,
    judged,
)

TOY = Toy(ALL, ignored=(3,), bias=True)


def stream_of(batches, toy=TOY):
    return Stream(toy, range(batches), toy.probe)


def rows_of(analysis):
    return [*analysis.heads, *analysis.terms, *analysis.states]


def expected_rows(fitted, judged_on, toy=TOY):
    fit = fit_of(map(toy, fitted))
    judgement = judged(fit, map(toy, judged_on), toy.probe)
    return [*head_rows(judgement), *term_rows(judgement), *state_rows(fit, judgement)]


def test_fitted_on_most_and_judged_on_the_rest():
    found = analyse(stream_of(12), every=4)
    held = (3, 7, 11)
    assert_same_rows(rows_of(found), expected_rows([n for n in range(12) if n not in held], held))
    assert found.held_out
    assert found.fitted + found.judged <= 12 * TOY.batch
    assert 0 < found.judged < found.fitted


@pytest.mark.parametrize("batches", [1, 4])
def test_a_corpus_too_small_to_hold_out_is_judged_on_itself_and_says_so(batches):
    found = analyse(stream_of(batches))
    assert not found.held_out
    assert found.fitted == found.judged > 0
    assert_same_rows(rows_of(found), expected_rows(range(batches), range(batches)))
    assert "same samples" in notes(found)[0]


def test_five_batches_are_enough():
    found = analyse(stream_of(5))
    assert found.held_out
    assert not any("same samples" in note for note in notes(found))


def test_who_holds_out_nothing_is_told_the_same():
    found = analyse(stream_of(6), every=1)
    assert not found.held_out
    assert found.fitted == found.judged
    assert "same samples" in notes(found)[0]


@pytest.mark.parametrize("passes", [[], [by_hand([[1.0, 2.0]], [True, True])] * 7])
def test_a_corpus_with_nothing_to_count_is_refused(passes):
    with pytest.raises(BadInput, match="no sample with a counted position"):
        analyse(Stream(lambda one: one, passes))


def test_a_corpus_of_single_positions_is_refused():
    """A row with one position to look at says nothing: without another there is nothing to report."""
    one = by_hand([[1.0], [2.0]], [False])
    with pytest.raises(BadInput, match="no row of attention has two positions to choose from"):
        analyse(Stream(lambda one: one, [one] * 6))


@pytest.mark.parametrize("heads", [[], ()])
def test_no_head_at_all_is_refused(heads):
    with pytest.raises(BadInput, match="heads is empty: name at least one, or give None"):
        analyse(stream_of(6), heads=heads)


def test_shares_that_the_page_shows_sum_to_one():
    """By hand from the nine terms; temporal, input, mixed, residual and bias."""
    for found in (analyse(stream_of(12)), analyse(stream_of(12, Toy(ALL)))):
        for row in found.heads:
            place = [row[name] for name in ("kind", "layer", "head")]
            shares = {
                term["term"]: term["covariance_share"]
                for term in found.terms
                if [term[name] for name in ("kind", "layer", "head")] == place
            }
            assert row["mixed_share"] == shares["temporal·input"] + shares["input·temporal"]
            assert abs(row["mixed_share"]) > 1e-4
            names = ("temporal_share", "input_share", "mixed_share", "residual_share", "position_bias_share")
            assert sum(row[name] for name in names) == pytest.approx(1)


def test_some_heads_alone():
    found = analyse(stream_of(6), heads=(1,))
    assert [(row["kind"], row["head"]) for row in found.heads] == [(kind, 1) for kind in ALL]
    assert {head for _, head in found.example.attention} == {1}


def test_progress_tells_of_every_batch():
    told = []
    analyse(stream_of(6), progress=lambda *one: told.append(one))
    assert told == [("fit", number) for number in range(1, 6)] + [("judge", 1)]


def test_rows_are_in_the_order_of_kinds_layers_and_heads():
    def trace(number):
        one = TOY(number)
        layers = [replace(own, layer=layer) for layer in (10, 2) for own in reversed(one.attended)]
        return replace(one, attended=tuple(layers))

    found = analyse(Stream(trace, range(5)))
    places = [(row["kind"], row["layer"], row["head"]) for row in found.heads]
    assert places == [(kind, layer, head) for kind in ALL for layer in (2, 10) for head in range(HEADS)]
    assert list(found.example.attention) == [(f"{kind}.{layer}", head) for kind, layer, head in places]


# The lexical probe.


def test_a_pass_brings_its_own_lexical_probe():
    def with_probe(number):
        one = TOY(number)
        return replace(one, lexical_probe=TOY.probe(one))

    brought, taken = (
        analyse(Stream(*given, probed=None))
        for given in ((with_probe, range(10)), (TOY, range(10), TOY.probe))
    )
    assert brought.heads == taken.heads
    fewer = analyse(Stream(with_probe, range(10), probed=1))
    assert fewer.heads[0]["agreement_with_probe"] != brought.heads[0]["agreement_with_probe"]


def test_rows_that_were_probed_are_counted():
    """Those at which something is predicted and something seen, in the batches that were probed."""
    one = TOY(4)
    rows = int((one.counted("target") & one.counted("source").any(1)[:, None]).sum())
    found = analyse(replace(stream_of(10), probed=1))
    assert {row["rows_probed"] for row in found.heads if row["kind"] == "cross"} == {rows}
    assert {row["rows_probed"] for row in found.heads if row["kind"] != "cross"} == {0}


# The sample that is shown.


def test_the_example_is_the_first_sample_judged_with_its_attention():
    found, one, ignored = analyse(stream_of(5)).example, TOY(4), 0
    valid = {side: one.mask(side)[0] for side in ("source", "target")}
    assert found.source.tolist() == one.source_tokens[0][valid["source"]].tolist()
    assert found.read.tolist() == one.target_tokens[0][valid["target"]].tolist()
    assert found.target.tolist() == one.target_outputs[0][valid["target"]].tolist()
    for attended in one.attended:
        asks, answers = (valid[side] for side in one.sides(attended.kind))
        for head in range(HEADS):
            full, _ = counted_attention(one, attended, head)
            counted = [one.counted(side)[0][valid[side]] for side in one.sides(attended.kind)]
            both, shown = counted[0][:, None] & counted[1], found.attention[attended.name, head]
            assert torch.equal(shown[both], full[0][asks][:, answers][both])
            assert shown[~both].isnan().all()  # what is ignored is no zero
            ignored += int((~both).sum())
    assert ignored > 0


def test_a_long_example_is_cut():
    length = LONGEST_EXAMPLE + 5
    one = by_hand([[1.0] * length] * 3, [False] * length)
    found = analyse(Stream(lambda one: one, [one] * 5)).example
    assert found.source.tolist() == list(range(LONGEST_EXAMPLE))
    assert found.attention["cross.0", 0].shape == (3, LONGEST_EXAMPLE)
    assert found.lengths == (length, 3)


# Kept.


def kept(folder, stream, shards=1, every=5):
    keep = Keep(folder, {"model": "toy"}, 0.0)
    parts = Part(0, shards, every).all_shards()
    fits = [fit_part(stream, part, keep=keep) for part in parts]
    fit = sum(fits[1:], fits[0])
    for part in parts:
        judge_part(stream, fit, part, keep=keep)
    return analyse_kept(stream, keep, parts[0], about={"Model": "toy"})


def test_finished_parts_come_to_the_same_as_one_process(tmp_path):
    found = kept(tmp_path, stream_of(10))
    once = analyse(stream_of(10), about={"Model": "toy"})
    assert_same_rows(rows_of(found), rows_of(once), tolerance=0)
    assert (found.fitted, found.judged, found.held_out, found.about) == (
        once.fitted, once.judged, True, {"Model": "toy"}
    )  # fmt: skip
    assert found.example.source.tolist() == once.example.source.tolist()


def test_analyse_keeps_what_it_read(tmp_path):
    keep = Keep(tmp_path, {}, 0.0)
    first = analyse(stream_of(6), keep=keep)
    passes = []

    def trace(number):
        passes.append(number)
        return TOY(number)

    again = analyse(replace(stream_of(6), trace=trace), keep=keep)
    assert passes == [4]  # the example alone
    assert_same_rows(rows_of(again), rows_of(first), tolerance=0)


def test_kept_parts_of_a_corpus_too_small_say_so(tmp_path):
    found = kept(tmp_path, stream_of(3))
    assert not found.held_out
    assert_same_rows(rows_of(found), rows_of(analyse(stream_of(3))), tolerance=0)


def test_shards_of_a_corpus_too_small_are_refused(tmp_path):
    with pytest.raises(BadInput, match="take fewer shards than 3"):
        kept(tmp_path, stream_of(4), shards=3)


def test_no_part_of_a_corpus_was_held_out_by_wish_with_shards(tmp_path):
    found = kept(tmp_path, stream_of(4), shards=2, every=1)
    assert not found.held_out
    assert found.fitted == found.judged
    assert found.example is not None
