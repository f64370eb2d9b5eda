"""Table 9 from the data: what it prints, what is compared, and small sets counted by hand."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from attnlib.errors import DataUnavailable
from companion.data import labelled_sets
from companion.data.labelled import RawTexts, WordRules
from companion.results.request import Request
from companion.results.run import run
from notebooks.learn.dataset_sizes.table_9 import PARAMETERS, QUANTITIES, published_row, rows
from notebooks.learn.dataset_sizes.trainings.text_sizes import Settings, measure_text_sizes, record
from tests.notebooks.figure_builders import recording_of
from tests.notebooks.worked import assert_answer, recording_of_lists


def test_the_parameters_give_the_printed_vocabularies_but_for_20_newsgroups():
    words = {title: (row["vocabulary"], row.get("by_parameters")) for title, row in rows().items()}
    assert words.pop("20 NG") == ((31_065,), (12_488,))
    assert all(words[title][0] == words[title][1] for title in PARAMETERS if title in words)
    assert words["Multi30k"] == ((8_000,), None)
    numbers = ((29_000,), (14, 14), (1_014,), (15, 14), (8_000,))
    assert published_row("multi30k_de_en") == dict(zip(QUANTITIES.values(), numbers, strict=True))
    assert published_row("known_polarity") == {}


def test_lengths_words_and_what_was_dropped_counted_by_hand(monkeypatch):
    texts = [("a b_c 12<br />", 0), ("a b_c 12", 1), ("a b_c 345", 0), ("d", 1), ("...", 1)]
    test = [("a", 0), ("a b_c 12", 1), ("a e f g", 1)]
    raw = RawTexts("sst", ("no", "yes"), texts, test, WordRules(html=True, mask_integers=True))
    monkeypatch.setitem(labelled_sets.SOURCES, "sst", SimpleNamespace(read=lambda: raw))

    as_published, cleaned = (Settings(data="sst", reading=reading) for reading in ("published", "cleaned"))
    found = measure_text_sizes(recording_of(record(as_published, Path())))
    assert found["parts"]["train"]["texts"] == 4
    assert found["parts"]["train"]["words"]["median"] == 3  # lengths 4, 3, 3 and 1: br is a word here
    assert found["parts"]["validation"]["words"]["quantiles"][2] == 3  # 1, 3 and 4
    assert found["kept"] == 4 + 2  # a and b_c, three times each
    assert found["different"] == 4 + 4  # a, b_c, br, d; integers are <unk>
    assert ["train", "texts", "no word in it", 1] in found["dropped"]
    assert ["train", "words", "integers of two or more digits, read as <unk>", 3] in found["dropped"]
    assert not any("HTML" in line[2] for line in found["dropped"])  # as published it stays
    found = measure_text_sizes(recording_of(record(cleaned, Path())))
    assert found["different"] == 4 + 3
    assert found["parts"]["validation"]["texts"] == 2
    assert ["validation", "texts", "trained on as well", 1] in found["dropped"]
    html = [line for line in found["dropped"] if "HTML tags" in line[2]]
    assert html == [["train", "words", "of HTML tags, entities and breaks", 1]]  # br; the test part has none


@pytest.mark.slow
def test_without_data_the_made_sets_are_counted_and_the_others_say_why(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "cache"))
    result = run(Request("dataset_sizes"), out=tmp_path, models=tmp_path / "models")
    assert result.data == {}
    assert result.values["sst"] == {"cannot_be_run": "data: sst is not available here"}
    made = result.values["known_polarity"]["published"]
    counts = [made[part]["texts"] for part in ("train", "validation")]
    assert counts == [labelled_sets.N_TRAIN, labelled_sets.N_TEST]
    assert made["words"]["kept"] == 4 + labelled_sets.N_NEUTRAL + 2 * labelled_sets.N_POLAR
    assert result.values["known_lexicon"]["published"]["train"]["texts"] == 4_000
    with pytest.raises(DataUnavailable):
        run(Request("dataset_sizes", "paper", {"sets": "sst"}), out=tmp_path, models=tmp_path / "models")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # Of pairs, both sides.
        pytest.param(
            (
                recording_of_lists(
                    {"train.source": [1, 2, 6], "train.target": [4, 5, 9], "kept": 8, "dropped": [91, 93]}
                ),
            ),
            {
                "parts.train": {
                    "texts": 3,
                    "source.median": 2,
                    "source.quantiles": [1.1, 1.5, 2, 4, 5.6],
                    "target.median": 5,
                },
                "kept": 8,
                "different": None,
                "dropped": [],
            },
            id="both_sides_of_pairs",
        )
    ],
)
def test_measure_text_sizes_by_hand(given, expected):
    assert_answer(measure_text_sizes(*given), expected)
