"""Networks inside the package: they have learned, say what made them, and are read as they were written."""

import json

import pytest

from attnlib import analyse, zoo
from attnlib.analysis.learned import has_learned
from attnlib.errors import Altered, UnknownName
from tests.attnlib.analysis.test_how_to import block


@pytest.mark.parametrize("name", zoo.NAMES)
def test_a_network_has_learned_what_its_record_says(name):
    found = zoo.load(name)
    assert (zoo.FOLDER / f"{name}.safetensors").stat().st_size < 500_000
    made = found.provenance
    assert made.keys() == {"spec", "commit", "date", "packages", "python", "seconds", "accuracy"}
    assert made["spec"]["settings"]["task"] == name
    one = analyse(found.stream(kinds=("cross", "encoder_self")))
    assert has_learned(one.learned)
    assert one.learned["accuracy"] == pytest.approx(
        made["accuracy"], abs=0.1
    )  # of sentences it was trained on
    assert one.unchecked == ()
    assert one.fitted + one.judged == len(found.corpus) == 800
    for side, words in found.words.items():
        assert found.word(side, 0) == "<pad>"
        assert getattr(found.corpus, f"{side}_ids").max() < len(words)


def test_the_lines_of_the_how_to_write_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python", "zoo"), "how_to.md", "exec"), {})
    said = json.loads((tmp_path / "report/analysis.json").read_text(encoding="utf-8"))
    assert len(said["heads"]) == 4


def test_another_name_and_an_altered_file_are_refused(tmp_path, monkeypatch):
    with pytest.raises(UnknownName, match="no network 'reorder'; did you mean 'reordering'"):
        zoo.load("reorder")
    content = bytearray((zoo.FOLDER / "reordering.safetensors").read_bytes())
    content[-9] ^= 1
    (tmp_path / "reordering.safetensors").write_bytes(bytes(content))
    monkeypatch.setattr(zoo, "FOLDER", tmp_path)
    with pytest.raises(Altered, match="its checksum is another"):
        zoo.load("reordering")
