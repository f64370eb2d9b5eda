"""Tables with declared columns: refused, asked of networks, and as dotted keys."""

import pandas as pd
import pytest

from attnlib.errors import BadInput
from companion.results.frames import Table, frame, joined, keyed, view
from companion.results.result import Result
from companion.runs.columns import INTERVAL, Column, share
from companion.runs.measure import Measurement, measure
from companion.runs.suite import spec_of
from tests.notebooks.figure_builders import Given

SPECS = [spec_of("one_to_one", "AO", scale="quick", seed=seed) for seed in (0, 1)]
QUALITY = {"accuracy": share("words that are right"), "memory.first": Column("bits", "bits")}


@measure(version=1, columns=QUALITY)
def measure_quality(trained):
    pytest.fail("its answers are given")


@measure(version=1, columns={"loss": Column("loss")})
def measure_loss(trained):
    pytest.fail("its answers are given")


def asked(*measures):
    return [Measurement(spec, measure) for spec in SPECS for measure in measures]


def test_a_column_that_is_not_declared_is_refused_by_name():
    with pytest.raises(BadInput, match="accuracy"):
        Table(pd.DataFrame({"accuracy": [1.0]}), {}, "a network")


def test_a_network_is_a_row_with_nested_numbers_in_columns_with_dots():
    store = Given(lambda spec, measure: {"accuracy": 0.5, "memory": {"first": spec.seed}, "matrix": [[1]]})
    table = frame(asked(measure_quality), store)
    assert list(table.frame) == ["task", "architecture", "cell", "seed", "accuracy", "memory.first"]
    assert table.frame["memory.first"].tolist() == [0, 1]


def test_several_measurements_of_a_network_share_its_row():
    records = {"measure_quality": {"accuracy": 0.5, "memory": {"first": 1}}, "measure_loss": {"loss": 2.0}}
    table = frame(asked(measure_quality, measure_loss), Given(lambda _, measure: records[measure.__name__]))
    assert table.frame[["accuracy", "loss"]].to_numpy().tolist() == [[0.5, 2.0]] * 2


def test_a_network_that_lacks_an_answer_has_no_row():
    def answer(spec, measure):
        return None if spec.seed == 0 and measure is measure_loss else {"loss": 2.0}

    table = frame(asked(measure_quality, measure_loss), Given(answer))
    assert table.frame["seed"].tolist() == [1]


def test_where_nothing_is_measured_a_table_has_only_columns():
    table = frame(asked(measure_loss), Given(lambda *_: None))
    assert (len(table.frame), list(table.frame)[-1]) == (0, "loss")


def test_records_have_none_for_what_is_missing():
    table = pd.DataFrame({"n": [3], "low": [float("nan")], "flag": [True]})
    (record,) = Table(table, dict.fromkeys(table, Column("any")), "a row").records()
    assert record == {"n": 3, "low": None, "flag": True}


def test_records_have_plain_numbers():
    table = pd.DataFrame({"n": [3], "low": [float("nan")], "flag": [True]})
    (record,) = Table(table, dict.fromkeys(table, Column("any")), "a row").records()
    assert {type(value) for value in record.values()} == {int, type(None), bool}


def estimates(**columns):
    table = pd.DataFrame(columns)
    return Table(table, dict.fromkeys(table, Column("any")), "an estimate")


def test_an_interval_is_at_the_key_of_its_row():
    table = estimates(task=["scan"], quantity=["memory.first"], value=[1.0], low=[0.5], high=[1.5], n=[3])
    interval = dict(zip(INTERVAL, (1.0, 0.5, 1.5, 3), strict=True))
    assert view(keyed(table, "{task}.{quantity}")) == {"scan": {"memory": {"first": interval}}}


def test_numbers_of_columns_are_at_keys_of_their_rows():
    table = estimates(task=["scan", "copy"], cells=[3, 4])
    assert view(keyed(table, "{task}.{column}", ["cells"])) == {"scan": {"cells": 3}, "copy": {"cells": 4}}


def test_a_branch_of_which_nothing_is_known_is_empty():
    assert view({"scan.rates": {}}, {"scan.loss": 1.0}) == {"scan": {"rates": {}, "loss": 1.0}}


def test_joined_tables_have_the_categories_of_all():
    first, second = (
        Table(pd.DataFrame({"kind": [kind]}), {"kind": Column("kind", categories={kind: "a kind"})}, "a row")
        for kind in ("AO", "AED")
    )
    both = joined([first, second])
    assert both.frame["kind"].tolist() == list(both.columns["kind"].categories) == ["AO", "AED"]


def test_a_renamed_column_keeps_what_is_declared_of_it():
    table = frame(asked(measure_quality), Given(lambda *_: {"accuracy": 0.5})).rename(accuracy="right")
    assert table.columns["right"] is QUALITY["accuracy"]
    assert table.frame["right"].tolist() == [0.5, 0.5]


def test_a_table_without_rows_is_a_file_with_its_columns(tmp_path):
    table = Table.of([], {"task": Column("task"), "reason": Column("reason")}, "a task")
    result = Result(
        "figure", "tiny", {}, {}, {"absent": table.records()}, {}, schemas={"absent": table.schema()}
    )
    result.save(tmp_path)
    assert (tmp_path / "figure.absent.csv").read_text(encoding="utf-8") == "task,reason\n"


def test_whole_numbers_stay_whole_beside_what_is_missing():
    table = Table.of([{"steps": 40}, {"steps": None}], {"steps": Column("updates")}, "a network")
    steps = [row["steps"] for row in table.whole_numbers("steps").records()]
    assert steps == [40, None]
    assert isinstance(steps[0], int)


def test_a_column_gives_its_name_to_a_renamed_one():
    columns = {"effect": Column("what a fault does"), "quantity": Column("what is estimated")}
    table = Table(pd.DataFrame({"effect": ["words"]}), columns, "a row").rename(effect="quantity")
    assert dict(table.columns) == {"quantity": columns["effect"]}


def test_a_measurement_may_be_several_records():
    def by_place(record):
        return [{"place": place, "bits": bits} for place, bits in enumerate(record["bits"])]

    columns = {"place": Column("place"), "bits": Column("bits")}
    table = frame(asked(measure_loss), Given(lambda *_: {"bits": [2, 3]}), records=by_place, columns=columns)
    assert table.frame[["seed", "place", "bits"]].to_numpy().tolist() == [
        [0, 0, 2],
        [0, 1, 3],
        [1, 0, 2],
        [1, 1, 3],
    ]


def test_a_schema_says_all_of_a_column():
    table = pd.DataFrame({"bleu": [30.5], "kind": ["AO"]})
    columns = {
        "bleu": Column("BLEU", "points", 0, 100),
        "kind": Column("kind", categories={"AO": "attention"}),
    }
    fields = {
        field.pop("name"): field for field in Table(table, columns, "a row").schema()["schema"]["fields"]
    }
    assert fields == {
        "bleu": {
            "type": "number",
            "description": "BLEU",
            "unit": "points",
            "constraints": {"minimum": 0, "maximum": 100},
        },
        "kind": {
            "type": "string",
            "description": "kind",
            "categories": [{"value": "AO", "label": "attention"}],
        },
    }
