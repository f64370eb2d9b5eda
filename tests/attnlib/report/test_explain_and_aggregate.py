"""The terms of one sentence by name, and several heads together."""

from dataclasses import replace

import pytest
import torch

from attnlib.analysis import Stream
from attnlib.analysis.aggregate import AGGREGATE_COLUMNS
from attnlib.analysis.block_ratios import MEASURES
from attnlib.analysis.counted import whole_samples
from attnlib.analysis.judge import place_components_of
from attnlib.analysis.terms import attention_terms
from attnlib.decomposition.term_sums import TermSums
from attnlib.errors import BadInput, UnknownName
from attnlib.report import analyse, read_report, write_report
from tests.attnlib.analysis.builders import ALL, HEADS, Toy, fit_of


@pytest.fixture(scope="module")
def analysis():
    return analyse(Stream(Toy(ALL, bias=True), range(10)), method="means")


# One sentence.


@pytest.mark.signatures
def test_terms_of_a_sentence_rebuild_its_attention(analysis):
    for kind in ALL:
        explained = analysis.explain(0, 0, 1, kind=kind)
        rebuilt = explained.scores.double().masked_fill(explained.scores.isnan(), -torch.inf).softmax(-1)
        torch.testing.assert_close(rebuilt, explained.attention.nan_to_num(), atol=1e-5, rtol=0)


@pytest.mark.signatures
def test_a_term_answers_by_its_name_as_by_its_parts(analysis):
    explained = analysis.explain(0, 0, 0)
    assert torch.equal(explained["temporal", "input"], explained["temporal·input"])


@pytest.mark.signatures
def test_the_position_bias_has_the_shape_of_the_words(analysis):
    explained = analysis.explain(0, 0, 0)
    assert explained["position bias"].shape == (len(explained.query_words), len(explained.key_words))


@pytest.mark.signatures
def test_a_term_that_does_not_exist_is_refused(analysis):
    explained = analysis.explain(0, 0, 0)
    with pytest.raises(UnknownName):
        explained["temporal", "words"]


def test_a_table_is_labelled_with_words(analysis):
    explained = analysis.explain(0, 0, 0, name=lambda side, token: f"{side} {token}")
    sample = analysis.samples[0]
    table = explained.table("input", "residual")
    assert list(table.index) == [f"target␣{token}" for token in sample.target.tolist()]
    assert list(table.columns) == [f"source␣{token}" for token in sample.source.tolist()]


def test_a_table_has_the_values_of_its_term(analysis):
    explained = analysis.explain(0, 0, 0, name=lambda side, token: f"{side} {token}")
    table = explained.table("input", "residual")
    assert table.to_numpy() == pytest.approx(explained["input", "residual"].numpy(), nan_ok=True)


def test_a_frame_of_a_sentence_is_tidy(analysis):
    explained = analysis.explain(0, 0, 0)
    frame = explained.to_frame()
    assert len(frame) == int((~explained.terms.isnan()).sum())
    row = frame[frame["term"] == "input·temporal"].iloc[-1]
    assert (row["query_part"], row["key_part"]) == ("input", "temporal")
    assert row["value"] == float(explained["input", "temporal"][row["query"], row["key"]])
    assert row["key_word"] == explained.key_words[row["key"]]


def test_shares_of_a_sentence_are_those_of_its_terms(analysis):
    explained = analysis.explain(0, 0, 1)
    fitted = ~explained.terms.isnan().any(0)
    sums = TermSums(explained.names).update(
        explained.terms.nan_to_num().double()[None, :, None], fitted[None]
    )
    assert explained.shares == pytest.approx(sums.result().covariance)
    assert sum(explained.shares.values()) == pytest.approx(1)
    assert "\n" not in repr(explained)
    assert "cross, layer 0, head 1" in repr(explained)


@pytest.mark.parametrize("place", [(99, 0, 0), (0, 5, 0), (0, 0, 9)])
def test_what_is_not_there_is_refused(analysis, place):
    with pytest.raises(BadInput):
        analysis.explain(*place)


def test_a_report_keeps_no_sentences_to_explain(analysis, tmp_path):
    write_report(analysis, tmp_path)
    with pytest.raises(BadInput, match=r"^samples are not stored in a report"):
        read_report(tmp_path).explain(0, 0, 0)


@pytest.mark.signatures
def test_terms_of_a_pass_answer_by_parts():
    model_pass = Toy()(0)
    fit, whole = fit_of([model_pass]), whole_samples(model_pass)
    place_components = place_components_of(fit, model_pass, whole)
    (batch,) = attention_terms(fit, model_pass, whole=whole, place_components=place_components)
    assert torch.equal(batch["input", "residual"], batch.terms[:, batch.names.index("input·residual")])
    assert "\n" not in repr(batch)


# Several heads.


def values_of(frame, kind="cross"):
    rows = frame[frame["kind"] == kind]
    return dict(zip(rows["measure"], rows["value"], strict=True))


def test_a_head_alone_is_its_own_aggregate(analysis):
    alone = analyse(Stream(Toy(ALL, bias=True), range(10)), heads=0, method="means")
    (row,) = (row for row in alone.heads if row["kind"] == "cross")
    for weigh in ("scores", "heads"):
        assert values_of(alone.aggregate(weigh=weigh)) == pytest.approx(
            {name: row[name] for name in MEASURES}
        )


def test_pooled_shares_weigh_heads_by_how_much_their_scores_vary(analysis):
    rows = [row for row in analysis.heads if row["kind"] == "cross"]
    variances = [row["spread"] ** 2 for row in rows]
    shares = [row["temporal_split_share"] for row in rows]
    weighted = sum(v * share for v, share in zip(variances, shares, strict=True)) / sum(variances)
    assert values_of(analysis.aggregate())["temporal_split_share"] == pytest.approx(weighted)
    assert values_of(analysis.aggregate(weigh="heads"))["temporal_split_share"] == pytest.approx(
        sum(shares) / HEADS
    )


@pytest.mark.signatures
def test_rebuilt_attention_is_the_mean_either_way(analysis):
    rows = [row["no_residual_rebuilds"] for row in analysis.heads if row["kind"] == "cross"]
    for weigh in ("scores", "heads"):
        values = values_of(analysis.aggregate(weigh=weigh))
        assert values["no_residual_rebuilds"] == pytest.approx(sum(rows) / len(rows))


def test_all_layers_of_a_kind_are_together():
    def trace(number):
        model_pass = Toy()(number)
        return replace(
            model_pass, attentions=(*model_pass.attentions, replace(model_pass.attentions[0], layer=1))
        )

    analysed = analyse(Stream(trace, range(10)))
    layers, kinds = analysed.aggregate("layer"), analysed.aggregate("kind")
    assert sorted(set(layers["layer"])) == [0, 1]
    assert set(kinds["heads"]) == {2 * HEADS}
    assert values_of(kinds) == pytest.approx(values_of(layers[layers["layer"] == 0]))  # the layers are equal


def test_an_aggregate_has_the_columns_declared(analysis):
    frame = analysis.aggregate("kind")
    assert list(frame.columns) == list(AGGREGATE_COLUMNS)


def test_intervals_of_an_aggregate_do_not_end_before_they_begin(analysis):
    frame = analysis.aggregate("kind")
    assert (frame["low"] <= frame["high"]).all()


@pytest.mark.parametrize("asked", [{"by": "head"}, {"weigh": "samples"}])
def test_another_way_to_aggregate_is_refused(analysis, asked):
    with pytest.raises(UnknownName):
        analysis.aggregate(**asked)


def test_an_analysis_without_blocks_cannot_be_aggregated(analysis):
    with pytest.raises(BadInput, match="no blocks"):
        replace(analysis, blocks={}).aggregate()
