"""Table 9 from the data: what it prints, what is compared, and small sets counted by hand."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

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


@pytest.fixture
def sizes(monkeypatch):
    """What is counted of four texts to train on, by either reading: `sizes("published")`."""
    texts = [("a b_c 12<br />", 0), ("a b_c 12", 1), ("a b_c 345", 0), ("d", 1), ("...", 1)]
    test = [("a", 0), ("a b_c 12", 1), ("a e f g", 1)]
    raw = RawTexts("sst", ("no", "yes"), texts, test, WordRules(html=True, mask_integers=True))
    monkeypatch.setitem(labelled_sets.SOURCES, "sst", SimpleNamespace(read=lambda: raw))
    return lambda reading: measure_text_sizes(
        recording_of(record(Settings(data="sst", reading=reading), Path()))
    )


def test_lengths_of_texts_by_hand(sizes):
    parts = sizes("published")["parts"]
    assert parts["train"]["texts"] == 4
    assert parts["train"]["words"]["median"] == 3  # lengths 4, 3, 3 and 1: br is a word here
    assert parts["validation"]["words"]["quantiles"][2] == 3  # 1, 3 and 4


def test_chance_of_texts_by_hand(sizes):
    # Lengths 1, 3 and 4, with a mark at either end, and one position at the top of each.
    chance = sizes("published")["parts"]["validation"]["chance"]
    assert chance == pytest.approx(100 * (1 / 3 + 1 / 5 + 1 / 6) / 3)


def test_chance_of_translations_counts_the_words_that_are_written():
    parts = {
        "train.source": torch.tensor([3, 19]),
        "train.target": torch.tensor([1, 7]),
        "kept": torch.tensor(8),
        "dropped": torch.tensor(list(b"[]"), dtype=torch.uint8),
    }
    # Of 5 positions one is at the top, of 21 two; with the end mark two words are written, and eight.
    chance = measure_text_sizes(recording_of(parts))["parts"]["train"]["chance"]
    assert chance == pytest.approx(100 * (2 * 1 / 5 + 8 * 2 / 21) / 10)


def test_words_of_texts_by_hand(sizes):
    counted = sizes("published")
    assert counted["kept"] == 4 + 2  # a and b_c, three times each
    assert counted["different"] == 4 + 4  # a, b_c, br, d; integers are <unk>


def test_what_was_dropped_of_texts_by_hand(sizes):
    dropped = sizes("published")["dropped"]
    assert ["train", "texts", "no word in it", 1] in dropped
    assert ["train", "words", "integers of two or more digits, read as <unk>", 3] in dropped
    assert not any("HTML" in line[2] for line in dropped)  # as published it stays


def test_words_of_cleaned_texts_by_hand(sizes):
    assert sizes("cleaned")["different"] == 4 + 3


def test_cleaned_texts_to_judge_are_not_trained_on(sizes):
    counted = sizes("cleaned")
    assert counted["parts"]["validation"]["texts"] == 2
    assert ["validation", "texts", "trained on as well", 1] in counted["dropped"]


def test_html_of_cleaned_texts_by_hand(sizes):
    html = [line for line in sizes("cleaned")["dropped"] if "HTML tags" in line[2]]
    assert html == [["train", "words", "of HTML tags, entities and breaks", 1]]  # br; the test part has none


@pytest.fixture(scope="module")
def without_data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("without data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNLIB_DATA", str(folder))
        patch.setenv("ATTNLIB_CACHE", str(folder / "cache"))
        return run(Request("dataset_sizes"), out=folder, models=folder / "models")


@pytest.mark.slow
def test_without_data_no_set_is_named(without_data):
    assert without_data.data == {}


@pytest.mark.slow
def test_without_data_a_published_set_says_why(without_data):
    assert without_data.values["sst"] == {"cannot_be_run": "data: sst is not available here"}


@pytest.mark.slow
def test_without_data_the_synthetic_sets_are_counted(without_data):
    made = without_data.values["known_polarity"]["published"]
    counts = [made[part]["texts"] for part in ("train", "validation")]
    assert counts == [labelled_sets.N_TRAIN, labelled_sets.N_TEST]
    assert made["words"]["kept"] == 4 + labelled_sets.N_NEUTRAL + 2 * labelled_sets.N_POLAR
    assert without_data.values["known_lexicon"]["published"]["train"]["texts"] == 4_000


@pytest.mark.slow
def test_without_data_the_paper_profile_of_a_published_set_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path))
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "cache"))
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
