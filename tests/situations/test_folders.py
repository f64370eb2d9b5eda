"""Files as people have them, a folder each: what is read of them, or the line that refuses them."""

import re
import shutil
from functools import cache
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from attnlib import Checkpoint, ParallelText
from attnlib.alignment.gold import read_gold
from attnlib.cli import app
from attnlib.errors import AttnlibError
from companion.data.labelled_sets import read_own
from tests.situations.builders import SOURCE, TARGET, bart, made, tokenizer_of
from tests.tables import Table

WRONG_USE = 2  # exit code
FOLDERS = sorted(path for path in Path(__file__).with_name("folders").iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def whole_model(tmp_path_factory):
    """The folder of a tiny BART, as save_pretrained writes it."""
    folder = tmp_path_factory.mktemp("whole")
    made(lambda: bart("Bart")).save_pretrained(folder)
    tokenizer_of([*SOURCE, *TARGET]).save_pretrained(folder)
    return folder


@cache
def expected_of(folder):
    """What is expected of a situation; which folders are of a kind is asked before any test runs."""
    return yaml.load((folder / "expected.yaml").read_text(encoding="utf-8"), Table)


def pairs_of(folder, expected):
    text = ParallelText(*(folder / name for name in expected["pairs"]))
    text.checked()
    return [list(pair) for pair in text.pairs()]


def rows_of(folder, expected):
    """The first rows of a table, as many as are expected."""
    texts = read_own(folder / expected["table"], {})
    rows = [[text, texts.classes[label]] for text, label in texts.train]
    return rows[: len(expected.get("are", []))]


def links_of(folder, expected):
    """Links of each line in Pharaoh's format, sure ones first; None where nothing is known."""
    lines = []
    for gold in read_gold(folder / expected["links"], first=expected.get("first")).links:
        if gold is None:
            lines.append(None)
            continue
        sure = [f"{source}-{target}" for source, target in sorted(gold.sure)]
        possible = [f"{source}p{target}" for source, target in sorted(gold.possible - gold.sure)]
        lines.append(" ".join([*sure, *possible]))
    return lines


READERS = {"pairs": pairs_of, "table": rows_of, "links": links_of}


def kind_of(folder):
    """What the files of a situation are read as."""
    (kind,) = {"pairs", "table", "links", "model", "command"} & set(expected_of(folder))
    return kind


def situations(*kinds):
    """Folders of these kinds, as arguments of a test."""
    return [pytest.param(folder, id=folder.name) for folder in FOLDERS if kind_of(folder) in kinds]


@pytest.mark.parametrize("folder", situations(*READERS))
def test_files_are_read_or_refused_with_a_way_out(folder):
    expected = expected_of(folder)
    (read,) = [reader for kind, reader in READERS.items() if kind in expected]
    if "refused" not in expected:
        assert read(folder, expected) == expected["are"]
        return
    with pytest.raises(AttnlibError, match=expected["refused"]) as refusal:
        read(folder, expected)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "folder", [case for case in situations("pairs") if "says" in expected_of(*case.values)]
)
def test_what_is_no_plain_text_is_said(folder):
    expected = expected_of(folder)
    text = ParallelText(*(folder / name for name in expected["pairs"]))
    assert re.search(expected["says"], text.about["Not plain text"])


@pytest.mark.parametrize("folder", situations("model"))
def test_a_folder_that_is_no_checkpoint_is_refused_with_a_way_out(folder, whole_model, tmp_path):
    """A whole checkpoint, without some of its files and with those of the situation."""
    expected = expected_of(folder)
    model = tmp_path / "model"
    inside = model / expected.get("inside", "")
    shutil.copytree(whole_model, inside)
    for name in expected["without"]:
        (inside / name).unlink()
    for path in filter(
        Path.is_file, (folder / expected["model"]).iterdir()
    ):  # Python may have added a folder
        shutil.copy(path, inside / path.name)
    with pytest.raises(AttnlibError, match=expected["refused"]) as refusal:
        Checkpoint.load(model)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("folder", situations("command"))
def test_a_command_says_what_is_odd_without_touching_its_files(folder, whole_model, tmp_path, monkeypatch):
    """A command in a folder with the files of the situation, and a whole checkpoint called model."""
    expected = expected_of(folder)
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    shutil.copytree(whole_model, tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    given = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = CliRunner().invoke(app, expected["command"].split())
    output = " ".join(result.output.split())
    if "refused" in expected:
        assert result.exit_code == WRONG_USE
        assert re.search(expected["refused"], output)
        assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(given)
    else:
        assert result.exit_code == 0
        assert re.search(expected["says"], output)
    assert {path: path.read_bytes() for path in given} == given


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_situation_is_told(folder):
    title, blank, *story = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    assert title.startswith("# ")
    assert not blank
    assert story
    files = {path.name for path in folder.iterdir()} - {"README.md", "expected.yaml"}
    assert files
