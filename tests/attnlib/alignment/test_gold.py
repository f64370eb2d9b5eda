"""Gold links: the forms they come in, and scores by hand."""

import json

import pytest

from attnlib.alignment.gold import Gold, GoldFile, gold_of_text, read_gold
from attnlib.alignment.scores import LinkSums
from attnlib.errors import BadInput

EXPECTED = Gold([(0, 0), (1, 2)], [(1, 1)])
FORMS = [
    pytest.param("0-0 1-2 1p1", id="Pharaoh"),
    pytest.param("1 1 1 S\n1 2 3 S\n1 2 2 P", id="NAACL from 1"),
    pytest.param("1 0 0\n1 1 2 S 1.0\n1 1 1 P ", id="NAACL from 0"),
    pytest.param(json.dumps({"alignment": [[0, 0], [1, 2]], "possible": [[1, 1]]}), id="JSON"),
]


@pytest.mark.parametrize("text", FORMS)
def test_every_form_is_read(tmp_path, text):
    path = tmp_path / "gold"
    path.write_text(text + "\n", encoding="utf-8")
    assert read_gold(path).links == (EXPECTED,)


def test_pharaoh_may_count_from_one():
    assert read_gold(["1-1 2-3 2p2"], first=1).links == (EXPECTED,)


def test_pharaoh_that_may_count_from_one_is_refused_where_nobody_says():
    with pytest.raises(BadInput, match="gold-first"):
        read_gold(["1-1 2-3 2p2"])


def test_a_line_without_links_says_that_nothing_is_known():
    assert read_gold(["0-0", "", "0-0"]).links[1] is None


def test_a_sentence_without_links_in_naacl_says_that_nothing_is_known():
    assert read_gold(["1 1 1", "3 1 1"]).links[1] is None


def test_a_byte_order_mark_is_no_part_of_a_link(tmp_path):
    path = tmp_path / "gold"
    path.write_text("0-0\n", encoding="utf-8-sig")
    assert read_gold(path).links == (Gold([(0, 0)]),)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param(["0-0 1:2"], "line 1: '1:2'", id="no Pharaoh"),
        pytest.param(["1 1 1", "one"], "line 2", id="no NAACL"),
        pytest.param(['{"alignment": [[0]]}'], "line 1", id="no pair"),
        pytest.param(['{"alignment": [[0, "1"]]}'], "whole numbers", id="no number"),
        pytest.param(["0-0", None], "expected attnlib.alignment.Gold", id="neither lines nor links"),
    ],
)
def test_what_is_no_gold_is_refused(lines, message):
    with pytest.raises(BadInput, match=message):
        read_gold(lines)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BadInput, match="is not there"):
        read_gold(tmp_path / "gold")


def test_a_number_below_the_first_is_refused():
    with pytest.raises(BadInput, match="counted from 1"):
        read_gold(["0-1"], first=1)


# Of a text.


def words(*lengths):
    return [["w"] * length for length in lengths]


def test_a_link_outside_its_sentence_is_left_out():
    links, _ = gold_of_text(read_gold(["0-0 5-0"]), words(2), words(2))
    assert links[0].possible == {(0, 0)}


def test_links_outside_their_sentences_are_counted():
    _, n_outside = gold_of_text(read_gold(["0-0 5-0"]), words(2), words(2))
    assert n_outside == 1


def test_many_links_outside_their_sentences_are_refused():
    with pytest.raises(BadInput, match="2 of 3 gold links lead outside"):
        gold_of_text(read_gold(["0-0 5-0 0-5"]), words(2), words(2))


@pytest.mark.parametrize("lines", [["0-0"], ["0-0", "0-0", "0-0"]])
def test_another_number_of_lines_is_refused(lines):
    with pytest.raises(BadInput, match="for a text of 2"):
        gold_of_text(read_gold(lines), words(1, 1), words(1, 1))


def test_gold_of_other_words_is_refused():
    row = {"alignment": [[0, 0]], "src_words": ["a", "b"], "tgt_words": ["c"]}
    with pytest.raises(BadInput, match="the source has 3 words, and its gold links are of 2"):
        gold_of_text(read_gold([json.dumps(row)]), words(3), words(1))


def test_a_text_without_any_gold_is_refused():
    with pytest.raises(BadInput, match="no gold links"):
        gold_of_text(GoldFile((None,)), words(1), words(1))


# Scores.


@pytest.mark.parametrize(
    ("links", "rates"),
    [
        pytest.param([(0, 0), (1, 1)], (0, 1, 1), id="all sure links"),
        pytest.param([(0, 0), (1, 1), (2, 1)], (0, 1, 1), id="a possible one besides"),
        pytest.param([(0, 0), (2, 1)], (1 - 3 / 4, 1, 1 / 2), id="a possible one instead"),
        pytest.param([(0, 0), (2, 2)], (1 - 2 / 4, 1 / 2, 1 / 2), id="a wrong one instead"),
        pytest.param([(2, 2)], (1, 0, 0), id="a wrong one alone"),
    ],
)
def test_rates_by_hand(links, rates):
    scores = LinkSums().update(links, Gold([(0, 0), (1, 1)], [(2, 1)])).result()
    assert (scores.error_rate, scores.precision, scores.recall) == pytest.approx(rates)


def test_sums_of_two_parts_are_those_of_the_whole():
    gold = Gold([(0, 0)])
    whole = LinkSums().update([(0, 0)], gold).update([(1, 0)], gold)
    assert (LinkSums().update([(0, 0)], gold) + LinkSums().update([(1, 0)], gold)).result() == whole.result()


def test_flipped_gold_is_of_the_other_direction():
    assert EXPECTED.flipped() == Gold([(0, 0), (2, 1)], [(1, 1)])
