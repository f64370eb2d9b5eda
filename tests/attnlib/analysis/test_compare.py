"""Two analyses: a model does not differ from itself, an altered head does; intervals hold what is known."""

import csv
import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from attnlib.adapters import LinearMap
from attnlib.analysis import Stream, analyse, compare, read_report, write_report
from attnlib.analysis.compare import MEASURES
from attnlib.analysis.judge import PARTS, REBUILT, sample_keys
from attnlib.analysis.report import KEPT
from attnlib.cli import app
from attnlib.errors import BadInput, CorruptFile
from tests.attnlib.analysis.builders import ALL, Toy, assert_same_rows
from tests.attnlib.analysis.test_intervals import Known, analysis_of, assert_covered, known
from tests.attnlib.models.model_builders import generator

BATCHES = range(25)


def toy(altered=0.0, kinds=("cross",)):
    """Its second head asks for something else the more it is altered."""
    made = Toy(kinds, bias=True)
    query, key = made.maps["cross"]
    weight = query.weight.clone()
    weight[1] += altered * torch.randn(weight[1].shape, generator=generator(5), dtype=weight.dtype)
    made.maps["cross"] = [LinearMap(weight, query.bias), key]
    return made


@pytest.fixture(scope="module")
def first():
    return analyse(Stream(toy(), BATCHES))


@pytest.fixture(scope="module")
def second():
    return analyse(Stream(toy(3.0), BATCHES))


def test_a_model_does_not_differ_from_itself(first):
    found = compare(first, analyse(Stream(toy(), BATCHES)))
    assert found.paired
    assert len(found.rows) == 2 * len(MEASURES)
    assert all(row["difference"] == row["low"] == row["high"] == 0 for row in found.rows)
    assert found.differing == []


def test_a_head_that_was_altered_differs_and_the_other_does_not(first, second):
    found = compare(first, second)
    assert {row["head"] for row in found.differing} == {1}
    assert all(row["difference"] == row["low"] == row["high"] == 0 for row in found.rows if row["head"] == 0)
    values = {(row["head"], row["measure"]): row for row in found.rows}
    for row, other in zip(first.heads, second.heads, strict=True):
        for measure in MEASURES:
            own = values[row["head"], measure]
            assert (own["first"], own["second"]) == (row[measure], other[measure])
            assert own["low"] <= own["high"]
    back = {(row["head"], row["measure"]): row for row in compare(second, first).rows}
    assert all(back[place]["low"] == pytest.approx(-row["high"]) for place, row in values.items())


def test_the_same_sentences_narrow_the_interval_of_a_small_change(first):
    """Of other sentences all that varies from one to the next is in it."""
    little = compare(first, analyse(Stream(toy(0.02), BATCHES)))
    other = compare(first, analyse(Stream(toy(0.02), range(100, 125))))
    assert (little.paired, other.paired) == (True, False)
    for mine, theirs in zip(little.rows, other.rows, strict=True):
        if mine["head"] == 1:
            assert mine["high"] - mine["low"] < 0.3 * (theirs["high"] - theirs["low"])


def test_blocks_add_up_to_what_the_rows_say(first):
    for row in first.heads:
        *sums, rows = first.blocks[f"{row['kind']}.{row['layer']}", row["head"]].sum(0).tolist()
        assert rows == row["rows"]
        explained = sums[: len(PARTS)]
        for measure, own in zip(MEASURES, sums, strict=True):
            whole = rows if measure.endswith("rebuilds") else sum(explained)
            assert own / whole == pytest.approx(row[measure])
    assert len(MEASURES) == len(PARTS) + len(REBUILT)


def test_a_sentence_has_its_key_in_whatever_batch():
    """Alone and without padding as well; another word on either side is another key."""
    one = replace(toy()(0), attended=())
    keys = sample_keys(one)
    assert len(set(keys.tolist())) == len(keys)
    for row, key in enumerate(keys):
        valid = {side: one.mask(side)[row] for side in ("source", "target")}
        names = {"source": ("source_tokens", "source_mask")}
        names["target"] = ("target_tokens", "target_outputs", "target_mask")
        alone = replace(
            one, **{name: getattr(one, name)[row, valid[of]][None] for of in names for name in names[of]}
        )
        assert sample_keys(alone).tolist() == [key]
        for name in ("source_tokens", "target_outputs"):
            changed = getattr(alone, name).clone()
            changed[0, -1] += 1
            assert sample_keys(replace(alone, **{name: changed})).tolist() != [key]


@pytest.mark.parametrize("paired", [True, False])
def test_intervals_hold_the_differences_of_two_models_whose_shares_are_known(paired):
    models, corpora, held = (known("cross"), Known("cross", seed=11)), 30, Counter()
    for seed in range(1, corpora + 1):
        other = seed if paired else seed + 100
        found = compare(analysis_of(models[0], 200, seed), analysis_of(models[1], 200, other))
        assert found.paired == paired
        for row in found.rows:
            part = row["measure"].removesuffix("_share")
            if part in models[0].shares:
                difference = models[1].shares[part] - models[0].shares[part]
                held[part] += row["low"] <= difference <= row["high"]
    assert_covered({part: count / corpora for part, count in held.items()}, corpora)


def test_without_held_out_sentences_nothing_is_known_of_how_sure_it_is(first):
    found = compare(first, replace(first, held_out=False))
    assert all(math.isnan(row["low"]) and math.isnan(row["high"]) for row in found.rows)
    assert found.differing == []
    assert repr(found).endswith("nothing says how sure differences are")


def test_heads_of_one_alone_are_named_and_none_in_both_is_an_error(first):
    more = analyse(Stream(toy(kinds=ALL), BATCHES))
    assert compare(first, more).alone == tuple(f"{kind}.0 head {n}" for kind in ALL[1:] for n in range(2))
    rest = replace(more, heads=[row for row in more.heads if row["kind"] != "cross"])
    with pytest.raises(BadInput, match=r"no head is in both: the first has cross\.0 head 0, .* analyse the"):
        compare(first, rest)
    with pytest.raises(BadInput, match="the second analysis has no blocks of sentences: make it again"):
        compare(first, replace(first, blocks={}))
    with pytest.raises(BadInput, match="one is by least_squares, the other by means: analyse both the same"):
        compare(first, replace(first, method="means"))


def test_a_report_gives_its_analysis_back(first, tmp_path):
    write_report(replace(first, about={"Model": "a toy"}), tmp_path)
    found = read_report(tmp_path)
    for table in ("heads", "terms", "states"):
        assert_same_rows(getattr(found, table), getattr(first, table), tolerance=1e-8)
    assert (found.about, found.fitted, repr(found)) == ({"Model": "a toy"}, first.fitted, repr(first))
    assert torch.equal(found.keys, first.keys)
    assert all(torch.equal(found.blocks[head], own) for head, own in first.blocks.items())
    with pytest.raises(
        BadInput, match=f"holds no {KEPT}: give a folder that attnlib analyse or report wrote"
    ):
        read_report(tmp_path / "none")
    content = bytearray((tmp_path / KEPT).read_bytes())
    content[-1] ^= 1
    (tmp_path / KEPT).write_bytes(bytes(content))
    with pytest.raises(CorruptFile, match="its checksum is another"):
        read_report(tmp_path)


def test_the_command_says_which_heads_differ(first, second, tmp_path):
    for name, own in (("one", first), ("other", second)):
        write_report(own, tmp_path / name)
    table = tmp_path / "differences.csv"
    words = ["compare", str(tmp_path / "one"), str(tmp_path / "other"), "--out", str(table)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found = compare(first, second)
    assert done.stdout.startswith(f"{found!r}\n")
    said = done.stdout.splitlines()[1:]
    assert len(said) == len(found.differing) > 1
    assert said[0].startswith(f"cross.0 head 1, {found.differing[0]['measure']}: ")
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, expected in zip(rows, found.rows, strict=True):
        assert float(row["difference"]) == pytest.approx(expected["difference"], abs=1e-8)
    done = CliRunner().invoke(app, ["compare", str(tmp_path), str(tmp_path)])
    assert done.exit_code == 2
    assert f"holds no {KEPT}" in done.stderr
