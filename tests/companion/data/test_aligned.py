"""A reader's own aligned text: three small files read by hand, and every way in which they cannot be used."""

import pytest

from attnlib.errors import BadInput, DataUnavailable
from companion.data.registry import load

SOURCE = ["the House sleeps", "a dog", "", "the dog sleeps", "a very long line", "the house"]
TARGET = ["das Haus schläft", "ein Hund", "leer", "der Hund schläft", "eine sehr lange Zeile", "das Haus"]
LINKS = ["0-0 1-1 2-2", "", "", "0-0 1-1 2-1 2-2", "0-3", ""]


@pytest.fixture
def files(tmp_path):
    paths = {role: tmp_path / role for role in ("source", "target", "links")}
    for path, lines in zip(paths.values(), (SOURCE, TARGET, LINKS), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


def test_pairs_with_links_come_first_among_the_held_out_and_are_trained_on(files):
    task = load("aligned", **files, min_count=1, max_length=3, n_held_out=1)
    words = [task.source_vocabulary.decode(task.held_out.source(i)) for i in range(len(task.held_out))]
    # The empty pair and the long one are dropped with their lines of links.
    assert words == [["the", "house", "sleeps"], ["the", "dog", "sleeps"], ["the", "house"]]
    # (target, source): word 1 of the target, "hund", has links to words 1 and 2 of the source.
    assert task.gold == (frozenset({(0, 0), (1, 1), (2, 2)}), frozenset({(0, 0), (1, 1), (1, 2), (2, 2)}))
    trained = [task.target_vocabulary.decode(task.train.target(i)) for i in range(len(task.train))]
    assert trained == [["ein", "hund"], ["das", "haus", "schläft"], ["der", "hund", "schläft"]]
    assert set(task.checksums) == {"source/source", "target/target", "links/links"}


def test_every_line_may_have_links(files):
    files["links"].write_text("0-0\n1-1\n\n1-1\n0-0\n0-1\n", encoding="utf-8")
    task = load("aligned", **files)
    assert len(task.train) == len(task.held_out) == len(task.gold) == 5


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ("0-0\n", "has 1 lines and .*source has 6"),
        ("0-0\n0:1\n\n\n\n\n", "line 2: '0:1' is no link; write source-target"),
        ("0-0\n\n\n0-3\n\n\n", "line 4: link 0-3 points beyond its sentences of 3 and 3 words"),
        ("0-0\n\n0-0\n\n\n\n", "line 3: link 0-0 points beyond"),
        ("٠-٠\n\n\n\n\n\n", "line 1: '٠-٠' is no link"),
        ("\n" * 6, "has no links; a line such as"),
    ],
)
def test_links_that_cannot_be_used_are_refused_by_line(files, links, message):
    files["links"].write_text(links, encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        load("aligned", **files)


def test_a_file_that_is_missing_is_named(files, tmp_path):
    with pytest.raises(BadInput, match="without links"):
        load("aligned", source=files["source"], target=files["target"])
    with pytest.raises(DataUnavailable, match="nowhere"):
        load("aligned", **files | {"links": tmp_path / "nowhere"})
