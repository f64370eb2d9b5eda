"""The table of networks that were trained anew, in the reproduction notes."""

import json

import pytest

from companion.book.site import sentinels_markdown

ROW = {"kind": "keyword", "archived_seconds": 280.4, "seconds": 301.2, "numbers": 12, "outcome": "equal"}


def table(folder, *rows: dict) -> str:
    (folder / "results").mkdir()
    machine = {"device": "a processor", "packages": {"torch": "2.13.0"}}
    outcome = {"date": "2026-11-28T12:00:00", "commit": "0" * 40, "machine": machine, "sentinels": rows}
    (folder / "results" / "sentinels.json").write_text(json.dumps(outcome), encoding="utf-8")
    return sentinels_markdown(folder)


def test_without_an_outcome_the_page_says_so(tmp_path):
    assert sentinels_markdown(tmp_path) == "No network has been trained anew yet."


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        pytest.param({}, "| `keyword` | 301 (280) | 12 | equal | 0 | |", id="equal"),
        pytest.param(
            {
                "outcome": "within",
                "mean_difference": 0.002,
                "largest": {"where": "loss", "archived": 0.5, "today": 0.51},
            },
            "| `keyword` | 301 (280) | 12 | within | 0.002 | `loss`: 0.5, now 0.51 |",
            id="within",
        ),
    ],
)
def test_a_network_has_a_row(tmp_path, changes, line):
    assert table(tmp_path, ROW | changes).splitlines()[-1] == line


def test_a_network_that_could_not_be_trained_has_the_reason(tmp_path):
    lacking = {"kind": "published", "outcome": "cannot be run: no package"}
    assert table(tmp_path, lacking).splitlines()[-1] == "| `published` | | | cannot be run: no package | | |"


def test_the_sentence_counts_what_is_equal_of_what_was_compared(tmp_path):
    lacking = {"kind": "published", "outcome": "cannot be run: no package"}
    assert "There, 1 of 1 networks gave every archived digit again." in table(tmp_path, ROW, lacking)


def test_a_shortened_training_says_its_updates(tmp_path):
    assert "| 301 for 500 updates |" in table(tmp_path, ROW | {"updates": 500})
