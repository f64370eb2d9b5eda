"""Each side of a Marian checkpoint with two vocabularies is read by its own."""

import json

import pytest

from attnlib import TokenBatch, align
from attnlib.report.pretrained import Checkpoint

transformers = pytest.importorskip("transformers")
sentencepiece = pytest.importorskip("sentencepiece")

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

SOURCE = ["</s>", "<unk>", "▁the", "▁house", "<pad>"]
TARGET = ["</s>", "<unk>", "▁das", "▁alte", "▁Haus", "▁hier", "<pad>"]


@pytest.fixture
def checkpoint(tmp_path):
    """Ids 2 and 3 are other words on either side, and 4 is padding on one side and a word on the other."""
    for name, pieces in (("source", SOURCE), ("target", TARGET)):
        vocabulary = {piece: token for token, piece in enumerate(pieces)}
        (tmp_path / f"{name}.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([" ".join(pieces).replace("▁", "")] * 20),
            model_prefix=str(tmp_path / name),
            vocab_size=100,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    tokenizer = transformers.MarianTokenizer(
        source_spm=str(tmp_path / "source.model"),
        target_spm=str(tmp_path / "target.model"),
        vocab=str(tmp_path / "source.json"),
        target_vocab_file=str(tmp_path / "target.json"),
        separate_vocabs=True,
    )
    sizes = {f"{half}_{name}": 1 for half in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    config = transformers.MarianConfig(
        **sizes,
        d_model=8,
        encoder_ffn_dim=8,
        decoder_ffn_dim=8,
        vocab_size=len(SOURCE),
        decoder_vocab_size=len(TARGET),
        share_encoder_decoder_embeddings=False,
        pad_token_id=4,
        eos_token_id=0,
        decoder_start_token_id=6,
        attn_implementation="eager",
    )
    return Checkpoint("m", transformers.MarianMTModel(config).eval(), tokenizer)


def test_a_piece_is_that_of_its_side(checkpoint):
    assert [checkpoint.word("source", token) for token in (2, 3, 4)] == ["▁the", "▁house", "<pad>"]
    assert [checkpoint.word("target", token) for token in (2, 3, 4)] == ["▁das", "▁alte", "▁Haus"]


def test_special_pieces_are_ignored_by_side(checkpoint):
    batch = TokenBatch.of_rows([[2, 3, 0]], [[2, 4, 5, 0]])
    trace = checkpoint.adapter(ignore_special=True).trace(batch)
    assert trace.target_tokens.tolist() == [[6, 2, 4, 5]]  # the start mark is the target's padding
    assert trace.ignored_target.tolist() == [[True, False, False, False]]
    assert trace.ignored_source.tolist() == [[False, False, True]]


@pytest.mark.signatures
def test_words_are_aligned_by_the_marks_of_their_side(checkpoint):
    """Its tokenizer does not say where in a line a piece is."""
    alignment = align(checkpoint, ["the house"], ["das alte Haus"], layer=0, head=0)
    assert (alignment.source, alignment.target) == ((("the", "house"),), (("das", "alte", "Haus"),))
    assert [target for _, target in sorted(alignment.links[0], key=lambda link: link[1])] == [0, 1, 2]


def test_what_is_written_is_text_of_the_target(checkpoint):
    assert checkpoint._texts([[2, 4, 5, 6]]) == ["das Haus hier"]
