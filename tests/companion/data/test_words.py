"""Words of every script, by each tokenizer."""

import pytest

from attnlib.errors import BadInput, UnknownName
from companion.data import words
from companion.data.words import learned_pieces, published_words, share_unspaced, tokenise, tokenizer_of

BY_RULE = [
    pytest.param("हिन्दी में है ।", ["हिन्दी", "में", "है", "।"], id="hindi keeps its vowels"),
    pytest.param("இந்த வீடு", ["இந்த", "வீடு"], id="tamil"),
    pytest.param("ذَهَبَ إلى، ٣٫٥", ["ذَهَبَ", "إلى", "،", "٣", "٫", "٥"], id="arabic keeps its vowels"),
    pytest.param("שָׁלוֹם!", ["שָׁלוֹם", "!"], id="hebrew keeps its points"),
    pytest.param("老房子。", ["老", "房", "子", "。"], id="chinese"),
    pytest.param("この家はデータ。", ["こ", "の", "家", "は", "データ", "。"], id="japanese"),
    pytest.param("ง่าย", ["ง่", "า", "ย"], id="thai"),
    pytest.param("한국어 문장", ["한국어", "문장"], id="korean"),
    pytest.param("می‌خواهم", ["می\u200cخواهم"], id="a joiner stays in its word"),
    pytest.param("naïve\u200bword", ["naïve", "word"], id="a zero-width space separates"),
    pytest.param("\ufeffin\u00advisible\u2060", ["invisible"], id="signs without width are none"),
    pytest.param("\u200fשלום\u200e", ["שלום"], id="marks of direction are none"),
    pytest.param("ok 👩‍👩‍👧 ❤️", ["ok", "👩‍👩‍👧", "❤️"], id="an emoji is one sign"),
    pytest.param("L'homme 家 isn't 3.5", ["l'", "homme", "家", "isn", "'t", "3.5"], id="mixed scripts"),
]


@pytest.mark.parametrize(("line", "expected"), BY_RULE)
def test_words_of_any_script(line, expected):
    assert tokenise(line) == expected


def test_case_is_kept_where_asked():
    assert tokenise("Łódź 家", lowercase=False) == ["Łódź", "家"]


def test_published_corpora_keep_the_rule_that_their_numbers_were_made_with():
    assert published_words("to\u00ad ok") == ["to", "\u00ad", "ok"]


BY_NAME = [
    pytest.param("words", "Don't @@ &amp;", ["don", "'t", "@", "@", "&", "amp", ";"], id="words"),
    pytest.param("spaces", "Don't lei@@ sure.", ["don't", "lei@@", "sure."], id="spaces"),
    pytest.param("unicode", "Don't go, l'ami.", ["don't", "go", ",", "l'ami", "."], id="unicode"),
    pytest.param("unicode", "हिन्दी 老房子", ["हिन्दी", "老", "房", "子"], id="unicode of other scripts"),
    pytest.param("characters", "हिन्दी है", ["हि", "न्दी", "▁", "है"], id="characters"),
]


@pytest.mark.parametrize(("name", "line", "expected"), BY_NAME)
def test_tokenizers_by_name(name, line, expected):
    assert tokenizer_of(name)(line) == expected


def test_a_tokenizer_that_is_none_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'characters'"):
        tokenizer_of("character")


LINES = ["the old house waits today .", "the new river falls tonight ."] * 20


def test_learned_pieces_spell_the_line():
    split = learned_pieces(LINES)
    assert "".join(split("The old river")).replace("▁", " ").strip() == "the old river"


def test_equal_lines_give_equal_pieces():
    assert learned_pieces(LINES)(LINES[0]) == learned_pieces(LINES)(LINES[0])


@pytest.mark.parametrize(("name", "package"), [("unicode", "regex"), ("characters", "regex")])
def test_a_package_that_is_not_installed_is_named(monkeypatch, name, package):
    def not_here(wanted):
        raise BadInput(f"{wanted} is not installed")

    words._boundaries.cache_clear()
    monkeypatch.setattr(words, "library", not_here)
    with pytest.raises(BadInput, match=f"{package} is not installed"):
        tokenizer_of(name)


def test_pieces_without_sentencepiece_are_refused_by_its_name(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sentencepiece", None)
    with pytest.raises(BadInput, match="pip install 'sentencepiece"):
        learned_pieces(LINES)


def test_the_share_of_letters_of_scripts_without_spaces():
    assert share_unspaced(["ab 老房 .", "é"]) == pytest.approx(2 / 5)
