"""Each side of a model is read by its own tokenizer and vocabulary: ids, marks, unknown words, page."""

import json
import sys
from types import ModuleType

import pytest
import torch

from attnlib import Checkpoint, align, analyse
from attnlib.errors import BadInput
from attnlib.report.pieces import TwoTokenizers, ignorable_ids, tokenizer_digest
from attnlib.report.texts import Sentences
from tests.situations.builders import (
    SOURCE,
    TARGET,
    WORDS,
    bart,
    fsmt,
    gpt2,
    joined,
    made,
    reader,
    tokenizer_of,
    transformers,
)

OF_SOURCE = tokenizer_of(SOURCE)
# Other marks, in another order: padding of one side is a word mark of the other.
OF_TARGET = tokenizer_of(TARGET, marks=("<|x|>", "<|end|>", "<|unknown|>", "<|begin|>"))
TEXT = Sentences(SOURCE, TARGET)


def bert_and_gpt2(n_target=WORDS + 1):
    decoder = gpt2()
    decoder.vocab_size = n_target
    return joined(reader("Bert"), decoder)


def checkpoint(**settings):
    return Checkpoint("m", made(bert_and_gpt2), OF_SOURCE, target_tokenizer=OF_TARGET, **settings)


def first_trace(model, **options):
    stream = model.stream(TEXT, probed=0, **options)
    return stream.trace(stream.first()), stream.losses(stream.first())


def words_of(model, side, tokens):
    return [model.word(side, token) for token in tokens]


def test_each_side_is_tokenized_by_its_tokenizer():
    trace, _ = first_trace(checkpoint())
    assert words_of(checkpoint(), "source", trace.source_tokens[0].tolist()) == [*SOURCE[0].split(), "</s>"]
    assert words_of(checkpoint(), "target", trace.target_outputs[0].tolist()) == [
        *TARGET[0].split(),
        "<|end|>",
    ]


def test_marks_are_ignored_by_side():
    trace, _ = first_trace(checkpoint(), ignore_special=True)
    assert trace.ignored_source[0].tolist() == [False] * 4 + [True]
    assert trace.ignored_target[0].tolist() == [True] + [False] * 4  # the start mark


def test_unknown_words_are_counted_by_side():
    model = checkpoint()
    stream = model.stream(Sentences(["the old chair waits"], ["das alte Haus wartet"]), probed=0)
    losses = stream.losses(stream.first())
    assert (losses.source_unknown, losses.target_unknown) == (1, 0)


def test_what_is_written_ends_as_the_target():
    model = checkpoint()
    model.model.config.eos_token_id = model.model.generation_config.eos_token_id = None
    assert model._end_marks() == [OF_TARGET.eos_token_id]


def test_what_is_written_reads_as_the_target():
    assert checkpoint()._texts([OF_TARGET(text=[TARGET[0]])["input_ids"][0]]) == [TARGET[0]]


def test_words_are_aligned_with_those_of_the_other_tokenizer():
    alignments = align(checkpoint(), SOURCE, TARGET, layer=0, head=0)
    assert alignments.target[0] == tuple(TARGET[0].split())


def test_an_analysis_takes_the_folder_of_the_other_tokenizer(tmp_path):
    OF_TARGET.save_pretrained(tmp_path)
    model = made(bert_and_gpt2)
    analysis = analyse(
        model, SOURCE * 4, TARGET * 4, tokenizer=OF_SOURCE, target_tokenizer=tmp_path, probed=0, words=True
    )
    assert analysis.samples[0].words["target"][-1] != analysis.samples[0].words["source"][-1]


def test_a_digest_knows_both_tokenizers():
    digests = [tokenizer_digest(TwoTokenizers(OF_SOURCE, other)) for other in (OF_SOURCE, OF_TARGET)]
    assert digests[0] != digests[1]


def test_marks_of_two_tokenizers_are_those_of_the_side():
    both = TwoTokenizers(OF_SOURCE, tokenizer_of(TARGET, marks=("<|x|>", "<|y|>", "<|z|>", "<|w|>")))
    assert ignorable_ids(both, "target") == (0, 1, 3)


ONE_TOKENIZER = [
    pytest.param(bert_and_gpt2, id="BERT and GPT-2"),
    pytest.param(
        lambda: bart(
            "Marian", "MTModel", decoder_vocab_size=WORDS + 5, share_encoder_decoder_embeddings=False
        ),
        id="Marian with a vocabulary a side",
    ),
]


@pytest.mark.parametrize("make", ONE_TOKENIZER)
def test_one_tokenizer_for_two_vocabularies_is_refused(make):
    with pytest.raises(BadInput, match="--target-tokenizer"):
        Checkpoint("m", made(make), OF_SOURCE).stream(TEXT)


def test_one_tokenizer_for_halves_of_one_size_is_enough():
    model = made(lambda: bert_and_gpt2(n_target=WORDS))
    assert Checkpoint("m", model, tokenizer_of([*SOURCE, *TARGET])).stream(TEXT, probed=0).first() is not None


# FSMT's tokenizer has two vocabularies, and takes ids from that of the source alone.


class Moses:
    """In place of sacremoses: words are what spaces separate."""

    def __init__(self, lang):
        self.lang = lang

    def normalize(self, text):
        return text

    def tokenize(self, text, **_):
        return text.split()

    def detokenize(self, tokens):
        return " ".join(tokens)


@pytest.fixture
def of_fsmt(tmp_path, monkeypatch):
    moses = ModuleType("sacremoses")
    for name in ("MosesPunctNormalizer", "MosesTokenizer", "MosesDetokenizer"):
        setattr(moses, name, Moses)
    monkeypatch.setitem(sys.modules, "sacremoses", moses)
    for name, lines in (("source", SOURCE), ("target", TARGET)):
        words = sorted({word for line in lines for word in line.split()})
        letters = sorted({letter for word in words for letter in word})
        pieces = ["<pad>", "</s>", "<unk>", "<s>", *letters, *(f"{letter}</w>" for letter in letters)]
        vocabulary = {piece: number for number, piece in enumerate(pieces)}
        (tmp_path / f"{name}.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("", encoding="utf-8")
    files = {
        f"{short}_vocab_file": str(tmp_path / f"{side}.json")
        for short, side in (("src", "source"), ("tgt", "target"))
    }
    return transformers.FSMTTokenizer(langs=["en", "de"], merges_file=str(tmp_path / "merges.txt"), **files)


def test_both_vocabularies_of_fsmt_are_used(of_fsmt):
    model = Checkpoint("m", made(fsmt), of_fsmt)
    trace, losses = first_trace(model)
    assert (losses.source_unknown, losses.target_unknown) == (0, 0)
    source = "".join(words_of(model, "source", trace.source_tokens[0, trace.source_mask[0]].tolist()))
    target = "".join(words_of(model, "target", trace.target_outputs[0, trace.target_mask[0]].tolist()))
    assert source.replace("</w>", " ").startswith(SOURCE[0])
    assert target.replace("</w>", " ").startswith(TARGET[0])


def test_an_id_of_padding_on_one_side_is_a_word_on_the_other():
    """BERT's padding is the begin mark of the other tokenizer: nothing of it is hidden."""
    trace, _ = first_trace(checkpoint())
    assert trace.ignored_target is None or not bool(trace.ignored_target.any())
    assert torch.equal(trace.target_mask.sum(1), torch.full((len(TARGET),), 5))
