"""Sentences of a reader's own: shown first, with terms, while all numbers stay those of the corpus."""

import csv

import pytest
import torch

from attnlib import Stream, TokenBatch, analyse
from attnlib.commands.analyse import analyse_command
from attnlib.errors import BadInput
from attnlib.options import AnalyseOptions
from attnlib.report.as_text import visible
from attnlib.report.exported import sentence_rows
from tests.attnlib.adapters import single_stacks
from tests.attnlib.analysis import builders as toys
from tests.attnlib.analysis.builders import SOURCE, TARGET
from tests.attnlib.report.test_word_alignments import LINES, checkpoint_of

pytestmark = pytest.mark.slow
MINE = SOURCE[3], TARGET[5]


@pytest.fixture(scope="module")
def checkpoint():
    return checkpoint_of(toys.tokenizer_of(LINES))


@pytest.fixture(scope="module")
def plain(checkpoint):
    return analyse(checkpoint, SOURCE, TARGET, batch_size=4)


@pytest.fixture(scope="module")
def with_mine(checkpoint):
    sentence, translation = MINE
    return analyse(checkpoint, SOURCE, TARGET, batch_size=4, sentence=sentence, translation=translation)


def test_the_first_sample_is_the_sentence(checkpoint, with_mine):
    ids = checkpoint.tokenizer(MINE[0])["input_ids"], checkpoint.tokenizer(text_target=MINE[1])["input_ids"]
    sample = with_mine.samples[0]
    assert (sample.source.tolist(), sample.target.tolist()) == ids


def test_its_attention_is_the_model_s(checkpoint, with_mine):
    rows = [checkpoint.tokenizer(line)["input_ids"] for line in MINE]
    trace = checkpoint.adapter().trace(TokenBatch.of_rows([rows[0]], [rows[1]]))
    for (name, head), attention in with_mine.samples[0].attention.items():
        layer = int(name.split(".")[1])
        torch.testing.assert_close(attention, trace.layers("cross")[layer].weights[0, head])


def test_it_is_explained_by_terms_that_sum_to_its_scores(with_mine):
    explanation = with_mine.explain(0, 0, 1)
    rebuilt = explanation.scores.softmax(1)
    torch.testing.assert_close(rebuilt, explanation.attention, atol=1e-5, rtol=0)


def test_it_is_explained_in_words_of_the_tokenizer(checkpoint, with_mine):
    explanation = with_mine.explain(0, 0, 1)
    ids = checkpoint.tokenizer(MINE[0])["input_ids"]
    assert explanation.key_words == [visible(checkpoint.word("source", token)) for token in ids]
    by_id = with_mine.explain(0, 0, 1, name=lambda _side, token: str(token))
    assert by_id.key_words == [str(token) for token in ids]


def test_a_table_of_its_sentences_has_words_of_the_tokenizer(checkpoint, with_mine):
    first, *_ = checkpoint.tokenizer(MINE[0])["input_ids"]
    assert sentence_rows(with_mine)[0]["key_word"] == visible(checkpoint.word("source", first))


def test_no_number_of_the_corpus_moves(plain, with_mine):
    assert with_mine.heads == plain.heads
    assert len(with_mine.samples) == len(plain.samples) + 1


def test_without_a_translation_the_model_writes_it(checkpoint):
    analysis = analyse(checkpoint, SOURCE, TARGET, batch_size=4, longest=6, sentence=[MINE[0], SOURCE[0]])
    for sample, line in zip(analysis.samples, (MINE[0], SOURCE[0]), strict=False):
        row = checkpoint.tokenizer(line, truncation=True, max_length=6)["input_ids"]
        written = checkpoint.write(TokenBatch.of_rows([row], [row]), 6)
        assert sample.target.tolist() == written.target[written.target_mask].tolist()
    assert "the model wrote" in analysis.about["Own sentences"]


def test_a_decoder_alone_has_sentences_of_one_s_own():
    model = single_stacks.model_of("GPT2").eval()
    tokenizer = toys.tokenizer_of(LINES)
    analysis = analyse(model, SOURCE, tokenizer=tokenizer, batch_size=4, sentence=MINE[0])
    assert analysis.samples[0].source.tolist() == tokenizer(MINE[0])["input_ids"]
    assert "wrote" not in analysis.about["Own sentences"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"translation": "un"}, "sentence as well"),
        (
            {"sentence": ["a", "b"], "translation": "un"},
            r"sentence and translation differ in number \(2 and 1\)",
        ),
        ({"sentence": " "}, "empty"),
        ({"sentence": ["a"] * 13}, "12 of them at most"),
    ],
)
def test_sentences_that_cannot_be_shown(checkpoint, given, message):
    with pytest.raises(BadInput, match=message):
        analyse(checkpoint, SOURCE, TARGET, **given)


def test_a_stream_takes_batches_of_its_own():
    with pytest.raises(BadInput, match="leave out"):
        analyse(Stream(toys.Toy(), range(10)), sentence="a")
    stream = Stream(toys.Toy(), range(10), shown=(99,))
    assert len(analyse(stream).samples) > len(analyse(Stream(toys.Toy(), range(10))).samples)


# -- the command --


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    toys.save_checkpoint(folder / "tiny")
    toys.text_of(folder)
    return folder


def command(folder, **options):
    files = {"source": folder / "a.txt", "target": folder / "b.txt"}
    sizes = {"batch_size": 4, "longest": 12, "threads": 1}
    analyse_command(
        AnalyseOptions(out=folder / "out", model=str(folder / "tiny"), **files, **sizes, **options)
    )
    return list(csv.DictReader((folder / "out" / "sentences.csv").read_text("utf-8").splitlines()))


def test_the_command_writes_the_terms_of_a_sentence(folder, capsys):
    rows = command(folder, sentence=[SOURCE[3]], translation=[TARGET[5]])
    first = [row for row in rows if row["sentence"] == "0"]
    assert {row["key_word"] for row in first} == {*map(visible, SOURCE[3].split()), "</s>"}
    assert all(row["temporal·temporal"] for row in first)
    assert "sentences.csv" in capsys.readouterr().err


def test_another_sentence_needs_no_second_pass(folder, capsys):
    command(folder, sentence=[SOURCE[3]])
    capsys.readouterr()
    command(folder, sentence=[SOURCE[4]])
    assert "first pass" not in capsys.readouterr().err


def test_the_command_refuses_a_translation_alone(tmp_path):
    with pytest.raises(BadInput, match="--sentence as well"):
        AnalyseOptions(out=tmp_path, model="x", source=tmp_path, target=tmp_path, translation=["a"])


@pytest.mark.parametrize("option", ["target", "translation"])
def test_the_command_of_a_model_of_one_text_names_the_option_to_leave_out(tmp_path, option):
    model, tokenizer = single_stacks.model_of("GPT2"), toys.tokenizer_of(LINES)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    text = toys.text_of(tmp_path)
    options = {"target": text.target} if option == "target" else {"sentence": ["a"], "translation": ["b"]}
    with pytest.raises(BadInput, match=f"translates nothing: leave --{option} out"):
        analyse_command(
            AnalyseOptions(out=tmp_path / "out", model=str(tmp_path / "model"), source=text.source, **options)
        )


def test_traces_have_no_sentences(tmp_path):
    with pytest.raises(BadInput, match="--sentence cannot be combined with --traces"):
        AnalyseOptions(out=tmp_path, traces=tmp_path, sentence=["a"])
