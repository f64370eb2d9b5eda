"""Numbers as text, in sentences and tables."""

import pytest

from attnlib.errors import BadInput
from companion.book.numbers import table, value_at, written
from companion.claims.estimates import MissingKey
from companion.results.result import Result

SHARE = {"value": -0.8127, "low": -0.9, "high": -0.7, "n": 20}
VALUES = {
    "gru": {"share": SHARE, "mean": 12.34, "count": 2000},
    "lstm": {"share": SHARE | {"low": None, "high": None}, "mean": -0.001},
    "europarl": {"cannot_be_run": "no such text here"},
    "steps": [2, 4],
}
ROWS = [
    {"kind": "gru", "step": 0, "value": 0.1, "low": None, "high": None, "n": 1},
    {"kind": "gru", "step": 10, "value": 0.2, "low": 0.15, "high": 0.25, "n": 3},
    {"kind": "lstm", "step": 10, "value": 0.4, "low": -0.1, "high": 0.9, "n": 3},
]
RESULT = Result("source_reversal", "paper", {"seeds": 5}, VALUES, {"curves": ROWS}, {}, {})


def number(text):
    key, *ways = text.split("|")
    return written(value_at(RESULT, key), ways)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gru.share", "−0.81 [−0.90, −0.70]"),
        ("gru.share|.3f", "−0.813 [−0.900, −0.700]"),
        ("gru.share|%", "−81 % [−90, −70]"),
        ("gru.share|.1%|value", "−81.3 %"),
        ("gru.share|±", "−0.81 ± 0.10"),
        ("gru.share|negated", "0.81 [0.70, 0.90]"),
        ("gru.share|negated|count", "16 of 20"),
        ("lstm.share", "−0.81"),
        ("lstm.share|low", "–"),
        ("lstm.mean", "0.00"),
        ("gru.count", "2,000"),
        ("config.seeds|words", "five"),
        ("steps", "2, 4"),
        ("tables.curves[kind == 'gru' and step == 10].value", "0.20 [0.15, 0.25]"),
        ("tables.curves[step == 10].kind", "gru, lstm"),
        ("tables.curves[].value|largest", "0.40"),
        ("tables.curves[low > 0]|words", "one"),
    ],
)
def test_a_number_is_written_as_asked(text, shown):
    assert number(text).replace("\N{NO-BREAK SPACE}", " ") == shown


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("gru.shore", MissingKey, "source_reversal .paper. has no key .*'shore' under 'gru'.; did you mean"),
        ("tables.curve[]", MissingKey, "has no table 'curve'; it has: curves"),
        ("tables.curves[kid == 'gru']", MissingKey, "the columns are: kind, step, value"),
        ("tables.curves[step == 5].value", MissingKey, "no such row"),
        ("gru.mean|.2", BadInput, r"no way \|\.2 to write a number"),
        ("gru.count|words", BadInput, "whole numbers up to 12; got 2000"),
    ],
)
def test_a_key_without_a_number_or_an_unknown_way_to_write_it_is_refused(text, error, message):
    with pytest.raises(error, match=message):
        number(text)


def test_a_table_leaves_out_rows_of_which_nothing_was_measured():
    rows = {"GRU": "gru", "LSTM": "lstm", "Europarl": "europarl", "vanilla": "vanilla"}
    found = table(RESULT, rows, {("in the end", "share"): "share", ("in the end", "sentences"): "count"})
    assert found.to_dict("index") == {
        "GRU": {("in the end", "share"): "−0.81 ± 0.10", ("in the end", "sentences"): "2,000"},
        "LSTM": {("in the end", "share"): "−0.81", ("in the end", "sentences"): "–"},
    }
    with pytest.raises(MissingKey, match="shore"):
        table(RESULT, rows, {"share": "shore", "mean": "mean|.1f"})
