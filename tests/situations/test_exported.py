"""Tables of a report for other programs, and of each sentence on its page."""

import csv

import pytest

from attnlib import analyse, zoo
from attnlib.errors import BadInput, UnknownName
from attnlib.options import AnalyseOptions
from attnlib.report.exported import sentence_rows
from attnlib.report.files import write_report


@pytest.fixture(scope="module")
def analysis():
    return analyse(zoo.load("reordering").stream(batch_size=64))


def test_attention_of_each_query_sums_to_one(analysis):
    sums = {}
    for row in sentence_rows(analysis):
        query = tuple(row[name] for name in ("sentence", "kind", "layer", "head", "query"))
        sums[query] = sums.get(query, 0) + row["attention"]
    assert len(sums) > len(analysis.samples)
    assert all(total == pytest.approx(1, abs=1e-5) for total in sums.values())


def test_terms_are_those_of_an_explanation(analysis):
    head = analysis.heads[0]
    explanation = analysis.explain(1, head["layer"], head["head"], kind=head["kind"])
    rows = [row for row in sentence_rows(analysis) if row["sentence"] == 1 and row["head"] == head["head"]]
    rows = [row for row in rows if (row["kind"], row["layer"]) == (head["kind"], head["layer"])]
    for row in rows:
        expected = explanation["temporal", "input"][row["query"], row["key"]]
        if not expected.isnan():
            assert row["temporal·input"] == pytest.approx(float(expected))
    assert rows


def test_sentences_are_a_table_beside_the_others(analysis, tmp_path):
    write_report(analysis, tmp_path, tables=("csv", "sentences"))
    with (tmp_path / "sentences.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(sentence_rows(analysis))
    assert "sentences.csv" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_tables_of_parquet_are_those_of_csv(analysis, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_report(analysis, tmp_path, tables=("csv", "parquet"))
    heads = parquet.read_table(tmp_path / "heads.parquet").to_pylist()
    assert [head["temporal_share"] for head in heads] == pytest.approx(
        [head["temporal_share"] for head in analysis.heads]
    )


def test_a_form_that_does_not_exist_is_refused_before_any_work(tmp_path):
    with pytest.raises(UnknownName, match="parquet"):
        AnalyseOptions(out=tmp_path, traces=tmp_path, tables="parket")


def test_parquet_without_pyarrow_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(BadInput, match="pip install 'pyarrow"):
        AnalyseOptions(out=tmp_path, traces=tmp_path, tables="csv,parquet")
