"""Networks inside the package: they have learned, say what made them, and are read as they were written."""

import json

import pytest
import torch

from attnlib import analyse, zoo
from attnlib.analysis.learned import has_learned
from attnlib.errors import Altered, BadInput, UnknownName
from attnlib.training.corpus import collate
from tests.attnlib.analysis.test_how_to import block

ATTENDING = [name for name in zoo.NAMES if not name.endswith("VED")]


def test_there_is_one_of_each_kind_and_they_are_small():
    assert zoo.NAMES == ("one_to_one_AO", "one_to_one_VED", "reordering", "reordering_AED")
    assert sum(path.stat().st_size for path in zoo.FOLDER.glob("*.safetensors")) < 700_000


@pytest.mark.parametrize("name", zoo.NAMES)
def test_a_network_has_learned_what_its_record_says(name):
    found = zoo.load(name)
    made = found.provenance
    keys = {"spec", "commit", "date", "packages", "python", "seconds", "accuracy", "sha256"}
    assert made.keys() == keys
    assert name.startswith(made["spec"].get("settings", made["spec"])["task"])
    assert made["accuracy"] > 0.9
    batch = collate(found.corpus, range(800))
    with torch.no_grad():
        right = found.network(batch).logits.argmax(-1) == batch.target_output
    # Of sentences that it was trained on, the same but for chance.
    assert float(right[batch.target_mask].float().mean()) == pytest.approx(made["accuracy"], abs=0.02)
    for side, words in found.words.items():
        assert found.word(side, 0) == "<pad>"
        assert getattr(found.corpus, f"{side}_ids").max() < len(words)


@pytest.mark.parametrize("name", ATTENDING)
def test_those_with_attention_are_analysed(name):
    found = zoo.load(name)
    kinds = ("cross", "encoder_self") if name == "reordering" else ("cross",)
    one = analyse(found.stream(kinds=kinds))
    assert has_learned(one.learned)
    assert one.unchecked == ()
    assert one.fitted + one.judged == len(found.corpus) == 800
    assert {row["kind"] for row in one.heads} == set(kinds)


def test_attention_only_is_temporal_where_words_keep_their_order():
    (head,) = analyse(zoo.load("one_to_one_AO").stream()).heads
    assert head["temporal_low"] > 0.5


def test_the_lines_of_the_how_to_write_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python", "zoo"), "how_to.md", "exec"), {})
    said = json.loads((tmp_path / "report/analysis.json").read_text(encoding="utf-8"))
    assert len(said["heads"]) == 4


def test_what_is_not_there_is_refused():
    with pytest.raises(UnknownName, match="no network 'reorder'; did you mean 'reordering'"):
        zoo.load("reorder")
    with pytest.raises(BadInput, match="VED has no attention: there is no analysis of cross"):
        zoo.load("one_to_one_VED").stream()
    with pytest.raises(BadInput, match="AO has cross-attention alone: there is no analysis of encoder_self"):
        zoo.load("one_to_one_AO").stream(kinds=("encoder_self",))


@pytest.mark.parametrize("name", zoo.NAMES)
@pytest.mark.parametrize("place", [-9, 5_000, 200])
def test_an_altered_file_is_refused(name, place, tmp_path, monkeypatch):
    """A bit of the last tensor, of one in the middle, or of what says what made it."""
    content = bytearray((zoo.FOLDER / f"{name}.safetensors").read_bytes())
    content[place] ^= 1
    (tmp_path / f"{name}.safetensors").write_bytes(bytes(content))
    monkeypatch.setattr(zoo, "FOLDER", tmp_path)
    with pytest.raises(Altered):
        zoo.load(name)
