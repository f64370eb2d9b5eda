"""A corpus to an analysis: what is held out, what is too small, the sample shown, what a reader must know."""

from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch

from attnlib.analysis import Keep, Losses, Part, Stream, analyse
from attnlib.analysis.analyse import analyse_kept, fit_part, judge_part
from attnlib.analysis.fit import counted_attention
from attnlib.analysis.report import notes
from attnlib.analysis.results import LONGEST_EXAMPLE, results
from attnlib.errors import BadInput
from tests.attnlib.analysis.analysis_builders import (
    ALL,
    HEADS,
    Toy,
    assert_same_rows,
    by_hand,
    fit_of,
    judged,
)
from tests.attnlib.analysis.analysis_builders import rows_of as rows_of_judgement

TOY = Toy(ALL, ignored=(3,), bias=True)


def stream_of(batches):
    return Stream(TOY, range(batches), TOY.probe, probed=None)


def rows_of(analysis):
    return [*analysis.heads, *analysis.terms, *analysis.states]


@pytest.mark.parametrize(
    ("batches", "every", "held"), [(12, 4, (3, 7, 11)), (1, 5, ()), (4, 5, ()), (6, 1, ())]
)
def test_fitted_on_most_and_judged_on_the_rest_or_on_the_same(batches, every, held):
    """Where nothing is held out because the corpus is too small, or by wish, on the same."""
    found = analyse(stream_of(batches), every=every)
    fitted = [number for number in range(batches) if number not in held]
    expected = judged(fit_of(map(TOY, fitted)), map(TOY, held or fitted), TOY.probe)
    assert_same_rows(rows_of(found), rows_of_judgement(expected))
    assert found.held_out == bool(held) == (0 < found.judged < found.fitted)
    assert held or found.fitted == found.judged > 0


def test_rows_are_in_the_order_of_kinds_layers_and_heads():
    def trace(number):
        one = TOY(number)
        layers = [replace(own, layer=layer) for layer in (10, 2) for own in reversed(one.attended)]
        return replace(one, attended=tuple(layers))

    found = analyse(Stream(trace, range(5)))
    places = [(row["kind"], row["layer"], row["head"]) for row in found.heads]
    assert places == [(kind, layer, head) for kind in ALL for layer in (2, 10) for head in range(HEADS)]
    assert list(found.example.attention) == [(f"{kind}.{layer}", head) for kind, layer, head in places]


# The sample that is shown.


def test_the_example_is_the_first_sample_judged_with_its_attention():
    found, one, ignored = analyse(stream_of(5)).example, TOY(4), 0
    valid = {side: one.mask(side)[0] for side in ("source", "target")}
    assert torch.equal(found.source, one.source_tokens[0][valid["source"]])
    assert torch.equal(found.read, one.target_tokens[0][valid["target"]])
    assert torch.equal(found.target, one.target_outputs[0][valid["target"]])
    for attended, head in product(one.attended, range(HEADS)):
        asks, answers = one.sides(attended.kind)
        full, _ = counted_attention(one, attended, head)
        counted = one.counted(asks)[0][:, None] & one.counted(answers)[0]
        full, counted = (own[valid[asks]][:, valid[answers]] for own in (full[0], counted))
        shown = found.attention[attended.name, head]
        assert torch.equal(shown[counted], full[counted])
        assert shown[~counted].isnan().all()  # what is ignored is no zero
        ignored += int((~counted).sum())
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
    return analyse_kept(stream, keep, parts[0], about={"Model": "a toy"})


def test_shards_of_a_corpus_too_small_are_refused(tmp_path):
    with pytest.raises(BadInput, match="take fewer shards than 3"):
        kept(tmp_path, stream_of(4), shards=3)


# What the numbers are not of.


@pytest.mark.parametrize("every", [5, 1])
def test_losses_are_those_of_all_batches_once(tmp_path, every):
    """Batch n lacks n samples and has two in part."""
    stream = replace(stream_of(12), losses=lambda number: Losses(number, 2))
    assert analyse(stream, every=every).losses == Losses(sum(range(12)), 24)
    assert kept(tmp_path, stream, 2, every).losses == Losses(sum(range(12)), 24)


def test_attentions_that_nothing_checked_are_named(tmp_path):
    """Those without the model's own attention, in any batch of either reading; through files as well."""

    def with_attention(one, own):
        return replace(own, attention=torch.stack([one.softmax(own, head) for head in range(HEADS)], 1))

    def checked(number, but=None):
        one = TOY(number)
        own = one.attended if number == but else (with_attention(one, own) for own in one.attended)
        return replace(one, attended=tuple(own))

    assert analyse(Stream(checked, range(6))).unchecked == ()
    for number in (0, 4):
        found = analyse(Stream(partial(checked, but=number), range(6)))
        assert found.unchecked == tuple(f"{kind}.0" for kind in ALL)
        stream = Stream(partial(checked, but=number), range(10))
        assert kept(tmp_path / str(number), stream, 2).unchecked == found.unchecked


# Notes.


FIT = fit_of([TOY(0)])
CALM = {"unseen_words": 0.0, "typicality_coverage": 1.0, "typicality_beyond": 0.0, "on_ignored": 0.0}
RARE = "are of a size that was seen too rarely, fewer than 30"
MANY = tuple(f"cross.{layer}" for layer in range(24))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        ({"held_out": False}, "judged on the same samples"),
        ({"unseen_words": 0.06}, "6% of the positions judged hold a word"),
        ({"typicality_coverage": 0.4}, "Typicality is of 40% of the samples judged, where it is"),
        ({"typicality_coverage": 0.4}, f"head 0): 60% {RARE}"),
        ({"typicality_coverage": 0.4, "typicality_beyond": 0.6}, "0): 60% are longer than averages are kept"),
        ({"typicality_coverage": 0.2, "typicality_beyond": 0.3}, f"and 50% {RARE}"),
        ({"losses": Losses(1_200, 0)}, "Left out for an empty side: 1,200 pairs"),
        ({"losses": Losses(0, 7)}, "Cut off at the longest length that was asked for: 7 pairs"),
        ({"unchecked": ("cross.0", "cross.1")}, "scores of cross.0, cross.1 were checked against nothing"),
        ({"unchecked": MANY}, "cross.5 and 18 more were checked against nothing"),
        ({"on_ignored": 0.3}, "Up to 30% of a head's attention"),
    ],
)
def test_what_a_reader_must_know_is_noted(changed, said):
    found = replace(results(FIT, judged(FIT, [TOY(0)]), held_out=True), unchecked=())
    row = CALM | changed
    rows = {
        table: [own | {key: row[key] for key in own.keys() & row.keys()} for own in getattr(found, table)]
        for table in ("heads", "states")
    }
    noted = notes(
        replace(found, **rows, **{key: changed[key] for key in changed.keys() & vars(found).keys()})
    )
    assert len(noted) == bool(said)
    assert not said or said in noted[0]
