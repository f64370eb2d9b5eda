"""A reader's own text: shuffled, split, described, and refused where nothing could be learned from it."""

import itertools

import pytest

from attnlib.errors import BadInput
from companion.book.parameters import own_text_sentences, request_of
from companion.data.own_text import Sizes, own_lines, own_text, split_off
from companion.data.parallel import parallel
from tests.companion.data.data_builders import put, sources

ENGLISH = list(
    itertools.product(["old", "new", "red"], ["house", "river", "tree"], ["waits", "falls"], "abcde")
)
CHINESE = {"old": "老", "new": "新", "red": "紅", "house": "房子", "river": "河流", "tree": "樹木"} | {
    "waits": "等待", "falls": "落下"
}  # fmt: skip


def lines():
    """Ninety pairs; the target has no spaces."""
    return [
        (f"the {' '.join(words)} .", "".join(CHINESE.get(word, word) for word in words) + "。")
        for words in ENGLISH
    ]


@pytest.fixture
def files(tmp_path):
    english, chinese = zip(*lines(), strict=True)
    put(tmp_path, {"a.en": "\n".join([*english, ""]), "a.zh": "\n".join([*chinese, ""])})
    return {"source": tmp_path / "a.en", "target": tmp_path / "a.zh"}


def add(files, source, target):
    """One more pair of lines."""
    for path, line in zip(files.values(), (source, target), strict=True):
        path.write_text(f"{path.read_text(encoding='utf-8')}{line}\n", encoding="utf-8")


def facts(files, **options):
    return parallel(**files, **options).text


def described(files, **options):
    return " ".join(facts(files, **options).sentences)


# -- parts ---------------------------------------------------------------------------------------------------


def test_what_is_held_out_of_a_sorted_file_is_a_sample_of_it():
    by_length = [("a " * length, "b") for length in range(1, 101)]
    _, held_out = split_off(by_length, Sizes(n_held_out=20))
    lengths = [len(source.split()) for source, _ in held_out]
    assert min(lengths) < 20 < 80 < max(lengths)


def test_the_split_is_drawn_with_the_seed():
    pairs = [(str(number), "b") for number in range(50)]
    assert split_off(pairs, Sizes(seed=0)) == split_off(pairs, Sizes(seed=0))
    assert split_off(pairs, Sizes(seed=0)) != split_off(pairs, Sizes(seed=1))


def test_no_pair_is_lost():
    pairs = [(str(number), "b") for number in range(50)]
    train, held_out = split_off(pairs, Sizes())
    assert sorted(train + held_out) == sorted(pairs)


def test_a_held_out_sentence_is_never_trained_on():
    pairs = [
        (f"Word {number % 20}" if number // 20 % 2 else f"word {number % 20}", str(number))
        for number in range(200)
    ]
    train, held_out = split_off(pairs, Sizes(n_held_out=50))
    assert {source.lower() for source, _ in train}.isdisjoint(source.lower() for source, _ in held_out)


def test_of_a_few_repeated_sentences_one_is_held_out():
    _, held_out = split_off([(source, "ja") for source in "abcdef" * 20], Sizes())
    assert len(held_out) == 20
    assert len(set(held_out)) == 1


def test_one_repeated_sentence_cannot_be_split():
    with pytest.raises(BadInput, match="with 1 different sources"):
        split_off([("yes", "ja")] * 30, Sizes())


def test_lines_of_a_text_for_pieces_are_split_alike(files):
    train, held_out, line_facts = own_lines(**files)
    assert (len(train), len(held_out), line_facts.n_held_out) == (81, 9, 9)


# -- words ---------------------------------------------------------------------------------------------------


def test_characters_of_chinese_are_words(files):
    assert {"老", "房", "。"} <= set(parallel(**files).target_vocabulary.words)


@pytest.mark.parametrize("tokenizer", ["spaces", "unicode", "characters", "sentencepiece"])
def test_the_tokenizer_is_said(files, tokenizer):
    # Split at spaces, each target is a word of its own.
    if tokenizer == "spaces":
        files |= {"target": files["source"]}
    assert f"by tokenizer={tokenizer}" in described(files, tokenizer=tokenizer)


def test_pieces_are_learned_of_a_side(files):
    words = parallel(**files, tokenizer="sentencepiece").source_vocabulary.words
    assert any(word.startswith("▁") for word in words)


def test_bpe_is_undone(tmp_path):
    put(
        tmp_path,
        {"a": "the hou@@ se .\n" * 1 + "".join(f"the hou@@ se {word} .\n" for word in "abcdefghijk" * 2)},
    )
    task = parallel(source=tmp_path / "a", target=tmp_path / "a", n_held_out=1, min_count=1)
    assert "house" in task.source_vocabulary.words


def test_spaces_leave_pieces_as_they_are(tmp_path):
    put(tmp_path, {"a": "".join(f"the hou@@ se {word} .\n" for word in "abcdefghijk")})
    task = parallel(
        source=tmp_path / "a", target=tmp_path / "a", n_held_out=1, min_count=1, tokenizer="spaces"
    )
    assert "hou@@" in task.source_vocabulary.words


# -- what is said --------------------------------------------------------------------------------------------

SENTENCES = [
    pytest.param("90 pairs of lines: 81 to train on and 9 held out", id="parts"),
    pytest.param("shuffled with seed 0", id="shuffle"),
    pytest.param("15 source words", id="vocabulary"),
    pytest.param("(0.0% of those trained on and 0.0% of those held out are unknown)", id="unknown words"),
    pytest.param("No pair is left out, whatever its length.", id="lengths"),
    pytest.param("The target is written without spaces", id="script"),
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_was_made_of_the_text_is_said(files, sentence):
    assert sentence in described(files)


def test_lengths_left_out_are_said(files):
    add(files, "x " * 101, "老")
    assert "Left out: 1 pairs (more than 100 words on a side)" in described(files)


def test_empty_sides_are_said(files):
    add(files, "", "老")
    assert "Left out: 1 pairs (an empty side)" in described(files)


def test_what_was_undone_is_said(files):
    text = files["source"].read_text().replace("house", "hou@@ se")
    put(files["source"].parent, {"a.en": text})
    assert "Undone in 30 source lines: pieces of BPE (@@)." in described(files)


def test_a_run_says_it_before_any_work(files):
    words = [f"{side}={path}" for side, path in files.items()]
    request = request_of("attend/alignment_breakdown", "quick", [*words, "tokenizer=characters"])
    assert "tokenizer=characters" in " ".join(own_text_sentences(request))


def test_a_run_of_pieces_says_its_characters(files):
    request = request_of("learn/agreement", "quick", [f"{side}={path}" for side, path in files.items()])
    assert "different target characters" in " ".join(own_text_sentences(request))


def test_a_run_of_the_books_tasks_says_nothing():
    assert own_text_sentences(request_of("attend/alignment_breakdown", "quick", ["seeds=1"])) == []


# -- what is refused -----------------------------------------------------------------------------------------


def rows(make, count=60):
    return "".join(f"{make(number)}\n" for number in range(count))


GERMAN = [f"Die schöne Größe fällt über {number} Bäume" for number in range(30)]
REFUSED = [
    pytest.param(rows("only{} here".format), {}, "source words.* are unknown", id="every word once"),
    pytest.param(rows("老房子{}".format, 90), {"tokenizer": "spaces"}, "tokenizer=spaces", id="no spaces"),
    pytest.param(rows(lambda n: "a b " * 60 + str(n % 7)), {}, "more than 100 words", id="paragraphs"),
    pytest.param(rows(lambda n: GERMAN[n].encode().decode("latin-1"), 30), {}, "Latin-1", id="misread"),
    pytest.param(rows(lambda n: GERMAN[n].replace("ö", "\ufffd"), 30), {}, "U[+]FFFD", id="lost letters"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "message"), REFUSED)
def test_a_text_that_teaches_nothing_is_refused(tmp_path, text, options, message):
    put(tmp_path, {"a": text})
    with pytest.raises(BadInput, match=message):
        parallel(source=tmp_path / "a", target=tmp_path / "a", **options)


def test_a_text_with_letters_beyond_ascii_is_not_taken_for_misread(tmp_path):
    put(tmp_path, {"a": "\n".join(GERMAN)})
    assert (
        parallel(source=tmp_path / "a", target=tmp_path / "a", min_count=1, n_held_out=2).text.n_train == 28
    )


def test_held_out_words_that_training_lacks_are_counted(files):
    text = own_text(**files, sizes=Sizes(n_held_out=9), min_count=1)
    assert set(text.facts.unknown.values()) == {0.0}


def test_links_take_no_tokenizer(files):
    with pytest.raises(BadInput, match="leave out tokenizer=characters"):
        parallel(**files, links=files["source"], tokenizer="characters")


def test_a_tokenizer_is_of_a_text_of_ones_own():
    with pytest.raises(BadInput, match="give source=PATH and target=PATH with it"):
        request_of("attend/alignment_breakdown", "quick", ["tokenizer=characters"])


def test_samples_of_a_sorted_file_are_judged_in_any_order(tmp_path):
    put(tmp_path, {"a": "".join("a " * length + "b\n" for length in range(1, 91))})
    judged = sources(parallel(source=tmp_path / "a", target=tmp_path / "a"), "held_out")
    assert [len(words) for words in judged] != sorted(len(words) for words in judged)
