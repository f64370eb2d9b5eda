"""Sentences on the page: attention rebuilt as the sums have it, the probe, and no more than fit."""

from dataclasses import replace

import pytest
import torch

from attnlib.analysis import Stream, analyse, samples
from attnlib.analysis.report import page
from attnlib.analysis.results import Example
from attnlib.analysis.samples import ENTRIES, LONGEST, Sample
from tests.attnlib.analysis.builders import ALL, HEADS, Toy, by_hand

REBUILDS = ("temporal_rebuilds", "input_rebuilds", "no_residual_rebuilds")


@pytest.mark.parametrize("bias", [True, False])
def test_what_terms_rebuild_of_the_sentences_shown_is_what_the_rows_say(bias):
    """Of the only batch that is judged: 1 − total variation, over rows of two positions at least."""
    toy = Toy(ALL, bias=bias)
    found = analyse(Stream(toy, range(5)), method="means")
    assert len(found.samples) == found.judged
    for row in found.heads:
        maps = [own.maps[f"{row['kind']}.{row['layer']}", row["head"]] for own in found.samples]
        for place, measure in enumerate(REBUILDS, start=1):
            similar = []
            for own in maps:
                full = (~own[0].isnan()).sum(-1) >= 2
                apart = (own[place] - own[0]).abs().nan_to_num().sum(-1)[full] / 2
                similar += (1 - apart).tolist()
            assert sum(similar) / len(similar) == pytest.approx(row[measure], abs=1e-9)


def test_sentences_are_the_first_that_were_judged_with_their_probe():
    toy = Toy(ALL, ignored=(3,))
    found, one = analyse(Stream(toy, range(5), toy.probe)), toy(4)
    whole = one.counted("source").any(1) & one.counted("target").any(1)
    assert len(found.samples) == int(whole.sum()) > 1
    for row, own in zip(whole.nonzero()[:, 0].tolist(), found.samples, strict=True):
        assert torch.equal(own.source, one.source_tokens[row][one.source_mask[row]])
        assert torch.equal(own.target, one.target_outputs[row][one.target_mask[row]])
        assert torch.equal(own.read, one.target_tokens[row][one.target_mask[row]])
        probe = toy.probe(one)[row][one.target_mask[row]][:, one.source_mask[row]]
        torch.testing.assert_close(own.probe, probe)
        left_out = own.maps["cross.0", 0][0].isnan()
        assert torch.equal(left_out, (own.read == 3)[:, None] | (own.source == 3))
    assert analyse(Stream(toy, range(5))).samples[0].probe is None


@pytest.mark.parametrize("entries", [4 * HEADS * 3 * 20, 4 * HEADS * 9])
def test_no_more_than_fit(monkeypatch, entries):
    """Fewer sentences, then fewer positions."""
    monkeypatch.setattr(samples, "ENTRIES", entries)
    found = analyse(Stream(Toy(), range(5))).samples
    assert sum(maps.numel() for own in found for maps in own.maps.values()) <= entries
    assert len(found) >= 1
    assert analyse(Stream(Toy(), range(5)), heads=[0]).samples[0].maps.keys() == {("cross.0", 0)}
    length = LONGEST + 5
    one = by_hand([[1.0] * length] * 3, [False] * length)
    monkeypatch.setattr(samples, "ENTRIES", ENTRIES)
    (own,) = analyse(Stream(lambda one: one, [one] * 5)).samples
    assert own.maps["cross.0", 0].shape == (4, 3, LONGEST)


def test_a_page_of_576_heads_is_below_five_megabytes():
    """As many sentences and positions as are kept of so many heads."""
    found = analyse(Stream(Toy(ALL, bias=True), range(5)))
    places = [(layer, head) for layer in range(12) for head in range(16)]

    def everywhere(rows):
        first = [row for row in rows if row["head"] == 0]
        return [row | {"layer": layer, "head": head} for row in first for layer, head in places]

    cut = int((ENTRIES / (4 * 576)) ** 0.5)
    ids, weights = torch.arange(cut), torch.rand(4, cut, cut)
    names = {(f"{kind}.{layer}", head): weights for kind in ALL for layer, head in places}
    assert len(names) == 576
    long = torch.arange(LONGEST)
    example = Example(long, long, long, dict.fromkeys(names, torch.rand(LONGEST, LONGEST)))
    large = replace(
        found,
        heads=everywhere(found.heads),
        terms=everywhere(found.terms),
        example=example,
        samples=(Sample(ids, ids, ids, names, torch.rand(cut, cut)),),
    )
    assert len(page(large, "t", lambda side, token: f"{side}-{token}", script=True).encode()) < 5e6
