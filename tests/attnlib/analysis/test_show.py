"""An analysis as tables and pictures: they say what its rows say, and what is missing is said in a line."""

import sys
from dataclasses import replace
from importlib.metadata import version

import pytest
import torch

from attnlib.analysis import Stream, analyse, compare
from attnlib.analysis.report import number
from tests.attnlib.analysis.builders import ALL, Toy
from tests.attnlib.refusals import assert_refused

pandas = pytest.importorskip("pandas", reason="tables are an extra")
pytest.importorskip("matplotlib", reason="pictures are an extra")


@pytest.fixture(scope="module")
def analysis():
    toy = Toy(ALL, ignored=(3,), bias=True)
    return analyse(Stream(toy, range(10), toy.probe))


def name(side, token):
    return f"${side}_{token}"  # matplotlib would read mathematics


def test_tables_hold_the_rows(analysis):
    for table in ("heads", "terms", "states"):
        found = getattr(analysis.tables, table)()
        pandas.testing.assert_frame_equal(found, pandas.DataFrame(getattr(analysis, table)))
    shares = analysis.tables.terms().groupby(["kind", "layer", "head"]).covariance_share.sum()
    assert shares.tolist() == pytest.approx([1.0] * len(analysis.heads))


def test_an_analysis_of_frames_says_so_and_has_no_words(analysis):
    """A source of one id alone: places are its names, and no term is of its words."""
    of_source = [row for row in analysis.states if row["states"].startswith(("encoder", "cross"))]
    states = [row | {"words": 1} if row in of_source else row for row in analysis.states]
    frames = replace(analysis, states=states)
    note = "This encoder reads frames, not words"
    assert frames.tables.heads().attrs["notes"][0].startswith(note)
    assert "reads frames, not words" in frames._repr_html_()
    assert not any(own.startswith(note) for own in analysis.tables.heads().attrs["notes"])
    cross = frames.tables.terms().query("kind == 'cross'").term
    assert len(cross)
    assert not cross.str.contains("·input").any()
    table = frames.tables.attention(name).query("kind == 'cross'")
    assert (table.key_word == table.key.astype(str)).all()


def test_a_notebook_shows_a_comparison_with_the_largest_differences():
    first = analyse(Stream(Toy(ALL), range(10), probed=0))
    place = {"kind": "cross", "layer": 0, "head": 1, "measure": "<i>"}
    numbers = {"first": 0.25, "second": 0.5, "difference": 0.25, "low": 0.125, "high": 0.375}
    shown = replace(compare(first, first), rows=[place | numbers] * 22)._repr_html_()
    assert shown.startswith(
        "<p>Comparison of 1 heads (paired: the same sentences), 22 of 22 differ</p><p>cross.0"
    )
    line = "cross.0 head 1, &lt;i&gt;: 0.25 to 0.50, difference 0.25 (0.12 to 0.38)</p>"
    assert (shown.count(line), shown.endswith("<p>and 2 more</p>")) == (20, True)
    assert compare(first, first)._repr_html_().count("<p>") == 1


def test_what_made_it_is_known_without_a_command():
    found = analyse(Stream(Toy(ALL), range(10), probed=0), heads=[1, 0], method="means", every=4)
    assert found.made["options"] == {"heads": "0,1", "method": "means", "every": 4, "probed": 0}
    assert found.made["versions"]["torch"] == version("torch")


def test_the_table_of_attention_has_each_word_with_its_weight(analysis):
    """Rows of cross-attention are about the words predicted; what is ignored is no number."""
    found, example = analysis.tables.attention(name), analysis.example
    assert len(found) == sum(weights.numel() for weights in example.attention.values())
    assert found.weight.isna().any()
    for row in found.sample(40, random_state=0).to_dict("records"):
        weights = example.attention[f"{row['kind']}.{row['layer']}", row["head"]]
        assert row["weight"] == pytest.approx(float(weights[row["query"], row["key"]]), nan_ok=True)
        if row["kind"] == "cross":
            assert row["query_word"] == name("target", int(example.target[row["query"]]))
            assert row["key_word"] == name("source", int(example.source[row["key"]]))
    sums = found.groupby(["kind", "layer", "head", "query"]).weight.sum(min_count=1).dropna()
    assert sums.tolist() == pytest.approx([1.0] * len(sums), abs=1e-6)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_a_picture_of_all_heads_shows_their_shares(analysis, tmp_path):
    rows = [row for row in analysis.heads if row["kind"] == "cross"]
    rows[0] = rows[0] | {"mixed_share": -0.25}
    figure = replace(analysis, heads=rows).plot.heads("cross")
    shown = {axes.get_title(): texts(axes) for axes in figure.axes}
    parts = ("temporal", "input", "mixed", "residual", "position bias")
    columns = {f"{part} share": f"{part.replace(' ', '_')}_share" for part in parts}
    assert shown == {title: [number(row[key]) for row in rows] for title, key in columns.items()}
    patches = [patch for axes in figure.axes for patch in axes.patches]
    hatched = [bool(patch.get_hatch()) for patch in patches]
    assert True in hatched
    assert hatched == [row[column] < -0.005 for column in columns.values() for row in rows]
    figure.savefig(tmp_path / "heads.png")
    faint = replace(analysis, heads=[row | {"uniform": 0.999} for row in analysis.heads]).plot.heads("cross")
    for weak, strong in zip(faint.axes[0].patches, figure.axes[0].patches, strict=True):
        assert weak.get_alpha() == pytest.approx(0.35 * strong.get_alpha())


def test_a_picture_of_terms_and_one_of_attention(analysis, tmp_path):
    (axes,) = analysis.plot.terms(0, 1).axes
    own = [row for row in analysis.terms if (row["kind"], row["head"]) == ("cross", 1)]
    assert sorted(texts(axes)) == sorted(number(row["covariance_share"]) for row in own if "·" in row["term"])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["constant", *ALL_PARTS]
    assert [label.get_text() for label in axes.get_xticklabels()] == ALL_PARTS
    assert "position bias" in axes.get_title()

    figure = analysis.plot.attention(0, 1, "decoder_self", name=name)
    (axes,) = figure.axes
    drawn = torch.as_tensor(axes.images[0].get_array().filled(float("nan")))
    expected = analysis.example.attention["decoder_self.0", 1]
    torch.testing.assert_close(drawn, expected.to(drawn), equal_nan=True)
    read = [name("target", int(token)) for token in analysis.example.read]
    assert [label.get_text() for label in axes.get_yticklabels()] == read
    figure.savefig(tmp_path / "attention.png")


ALL_PARTS = ["temporal", "input", "residual"]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda own: own.plot.heads("crss"), "no kind of attention 'crss'; did you mean 'cross'?"),
        (lambda own: own.plot.terms(0, 2), "no analysed head … '0.2'; did you mean … Known: 0.0, 0.1"),
        (lambda own: replace(own, example=None).tables.attention(), "holds no sample"),
    ],
)
def test_what_is_not_there_is_said(analysis, draw, message):
    assert_refused(lambda: draw(analysis), message)


@pytest.mark.parametrize(
    ("package", "use"),
    [("pandas", lambda own: own.tables.heads()), ("matplotlib", lambda own: own.plot.heads())],
)
def test_without_the_extra_a_line_says_how_to_get_it(analysis, monkeypatch, package, use):
    for module in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    assert_refused(lambda: use(analysis), f"{package} is not installed … : pip install '{package}>=")
