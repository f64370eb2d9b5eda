"""Views of an analysis: functions that take plain data, a class that has them, a package that is called."""

import inspect
from dataclasses import fields, replace

import pytest

import attnlib
from attnlib import Analysis, Stream, read_report
from attnlib.analysis import analyse_stream
from attnlib.report import AnalysisWithViews, show, write_report
from attnlib.report.files import report
from attnlib.report.plots import Plots
from attnlib.report.tables import Tables
from tests.attnlib.analysis.builders import Toy
from tests.attnlib.refusals import assert_refused

VIEWS = ("show", "to_frame", "explain", "aggregate", "tables", "plot", "_repr_html_")


@pytest.fixture(scope="module")
def plain():
    return analyse_stream(Stream(Toy(), range(10)))


def test_an_analysis_is_plain_data(plain):
    assert type(plain) is Analysis
    assert not [view for view in VIEWS if hasattr(plain, view)]


def test_an_analysis_with_views_has_the_same_data(plain):
    with_views = AnalysisWithViews.of(plain)
    assert isinstance(with_views, Analysis)
    assert all(getattr(with_views, field.name) is getattr(plain, field.name) for field in fields(Analysis))
    assert repr(with_views) == repr(plain)


def test_a_changed_analysis_with_views_has_views(plain):
    assert isinstance(replace(AnalysisWithViews.of(plain), samples=()), AnalysisWithViews)


def test_what_is_read_from_a_report_has_views(plain, tmp_path):
    write_report(plain, tmp_path)
    assert isinstance(read_report(tmp_path), AnalysisWithViews)


@pytest.mark.parametrize("table", ["heads", "terms", "states"])
def test_tables_take_plain_data(plain, table):
    frame = getattr(Tables(plain), table)()
    assert frame.equals(getattr(AnalysisWithViews.of(plain).tables, table)())


@pytest.mark.signatures
def test_figures_take_plain_data(plain):
    assert len(Plots(plain).heads().axes) > 1


def test_the_report_in_a_notebook_takes_plain_data(plain):
    assert show(plain, height=300).data == AnalysisWithViews.of(plain).show(height=300).data


def test_the_package_is_called_as_its_main_function(tmp_path):
    analysis = attnlib.report(Stream(Toy(), range(10)), tmp_path, title="A title")
    assert "<h1>A title</h1>" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert isinstance(analysis, AnalysisWithViews)


def test_the_package_has_the_signature_of_its_main_function():
    assert inspect.signature(attnlib.report) == inspect.signature(report)


def test_what_is_no_stream_is_refused_by_a_report(tmp_path):
    assert_refused(lambda: attnlib.report("a model", tmp_path), "str is given without a source")
