"""Words, HTML and integers by hand; the record of what was dropped."""

import pytest

from companion.data.labelled import WordRules, is_masked_integer, without_html
from companion.data.text import Dropped, Tally


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" .,!? ", []),
        ("It's GREAT", ["it", "s", "great"]),
        ("naïve café, 3.5 stars", ["naïve", "café", "3", "5", "stars"]),
        ("snake_case", ["snake_case"]),
        ("broken \ufffd byte", ["broken", "byte"]),
    ],
)
def test_words_are_runs_of_word_characters_in_lower_case(text, words):
    assert WordRules().words(text) == words


def test_underscores_part_words_where_the_rules_say_so():
    assert WordRules(split_underscores=True).words("_really_ so_so ___") == ["really", "so", "so"]


@pytest.mark.parametrize(
    ("text", "clean", "breaks"),
    [
        ("a<br />b<BR>c<br/>d", "a b c d", 3),
        ("&lt;b&gt;bold&lt;/b&gt;", " bold ", 0),
        ("<i>so</i> good", " so  good", 0),
        ("3 < 5 and 6 > 4", "3 < 5 and 6 > 4", 0),
        ("Arafat #39;s quot;plan quot;", "Arafat's  plan  ", 0),
        ("it&#39;s &quot;it&quot;", "it's  it ", 0),
        ("built; swift;", "built; swift;", 0),
    ],
)
def test_html_is_taken_out_and_its_breaks_counted(text, clean, breaks):
    assert without_html(text) == (clean, breaks)


def test_masked_integers():
    assert [is_masked_integer(word) for word in ("0", "10", "007", "1st", "")] == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_a_tally_counts_by_part_kind_and_reason():
    tally = Tally()
    tally.add("validation", "texts", "three stars")
    tally.add("train", "texts", "three stars", 1_200)
    tally.add("train", "texts", "three stars")
    tally.add("train", "words", "rare", 0)
    assert tally.dropped() == (
        Dropped("train", "texts", "three stars", 1_201),
        Dropped("validation", "texts", "three stars", 1),
    )
    assert [str(line) for line in tally.dropped()] == [
        "train: 1,201 texts (three stars)",
        "validation: 1 text (three stars)",
    ]
