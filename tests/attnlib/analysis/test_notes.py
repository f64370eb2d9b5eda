"""What a report says of its numbers: what they are not of, what nothing checked, what is too small."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from attnlib.analysis import Losses, Stream, analyse, averages
from attnlib.analysis.how_to_read import notes
from attnlib.analysis.results import results
from tests.attnlib.analysis.test_analyse import kept, stream_of
from tests.attnlib.analysis.test_fit_and_judge import ALL, HEADS, Toy, fit_of, judged

TOY = Toy(ALL, ignored=(3,), bias=True)


def test_samples_too_long_for_an_average_are_told_from_sizes_too_rare(monkeypatch):
    """Room for one entry: 1 by 1 alone. Eight batches are too few for thirty of any size."""
    monkeypatch.setattr(averages, "ENTRIES", 1)
    found, batches = analyse(stream_of(10, Toy())), [Toy()(number) for number in (4, 9)]
    lengths = [(int(t), int(s)) for one in batches for t, s in zip(
        one.target_mask.sum(1), one.source_mask.sum(1), strict=True
    )]  # fmt: skip
    longer = sum(max(pair) > 1 for pair in lengths) / len(lengths)
    for row in found.heads:
        assert row["typicality_beyond"] == longer > 0.5
        assert row["typicality_coverage"] == 0
    assert f"{longer:.0%} are longer than averages are kept of" in " ".join(notes(found))


# What the numbers are not of.


def losing(batches=12):
    """Batch n lacks n samples and has two in part."""
    return replace(stream_of(batches), losses=lambda number: Losses(number, 2))


@pytest.mark.parametrize("every", [5, 1])
def test_losses_are_those_of_all_batches_once(tmp_path, every):
    whole = analyse(losing(), every=every).losses
    assert whole == Losses(sum(range(12)), 24)
    assert kept(tmp_path, losing(), 2, every).losses == whole


def test_losses_of_a_corpus_too_small_to_hold_out():
    assert analyse(losing(3)).losses == Losses(3, 6)


def test_attentions_that_nothing_checked_are_named(tmp_path):
    """Those without the model's own attention, in any batch of either reading; through files as well."""

    def checked(number, but=()):
        one = TOY(number)
        attended = tuple(
            own if number in but else replace(own, attention=attention_of(one, own)) for own in one.attended
        )
        return replace(one, attended=attended)

    def attention_of(one, own):
        return torch.stack([one.softmax(own, head) for head in range(HEADS)], 1)

    assert analyse(Stream(checked, range(6))).unchecked == ()
    for number in (0, 4):
        found = analyse(Stream(partial(checked, but=(number,)), range(6)))
        assert found.unchecked == tuple(f"{kind}.0" for kind in ALL)
        assert "were checked against nothing" in notes(found)[0]
        stream = Stream(partial(checked, but=(number,)), range(10))
        assert kept(tmp_path / str(number), stream, 2).unchecked == found.unchecked


# Notes.


def analysis_of(**row):
    """An analysis of one head whose rows say something else."""
    fit = fit_of([TOY(0)])
    found = results(fit, judged(fit, [TOY(0)]), held_out=True)
    beside = {name: row[name] for name in ("losses", "unchecked") if name in row}
    return replace(
        found,
        **{"unchecked": ()} | beside,
        heads=[head | {key: row[key] for key in head.keys() & row.keys()} for head in found.heads],
        states=[state | {key: row[key] for key in state.keys() & row.keys()} for state in found.states],
    )


CALM = {"unseen_words": 0.0, "typicality_coverage": 1.0, "typicality_beyond": 0.0, "on_ignored": 0.0}
MANY = tuple(f"cross.{layer}" for layer in range(24))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, None),
        ({"unseen_words": 0.06}, "6% of the positions judged hold a word"),
        (
            {"typicality_coverage": 0.4},
            "Typicality is of 40% of the samples judged, where it is of the fewest (cross.0, head 0): 60% "
            "are of a size that was seen too rarely, fewer than 30 times.",
        ),
        (
            {"typicality_coverage": 0.4, "typicality_beyond": 0.6},
            "(cross.0, head 0): 60% are longer than averages are kept of.",
        ),
        (
            {"typicality_coverage": 0.2, "typicality_beyond": 0.3},
            "30% are longer than averages are kept of and 50% are of a size that was seen too rarely",
        ),
        ({"losses": Losses(1_200, 0)}, "Left out for an empty side: 1,200 pairs"),
        ({"losses": Losses(0, 7)}, "Cut off at the longest length that was asked for: 7 pairs"),
        (
            {"unchecked": ("cross.0", "cross.1")},
            "scores of cross.0, cross.1 were checked against nothing",
        ),
        ({"unchecked": MANY}, "cross.5 and 18 more were checked against nothing"),
        ({"on_ignored": 0.3}, "Up to 30% of a head's attention"),
    ],
)
def test_what_a_reader_must_know_is_noted(row, said):
    found = notes(analysis_of(**CALM | row))
    assert len(found) == bool(said)
    assert not said or said in found[0]
