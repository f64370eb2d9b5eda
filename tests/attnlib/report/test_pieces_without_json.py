"""A T5 folder whose tokenizer is ``spiece.model`` alone, as mT5 is published."""

import sys

import pytest

from attnlib.errors import BadInput
from attnlib.report.pretrained import Checkpoint

transformers = pytest.importorskip("transformers")
sentencepiece = pytest.importorskip("sentencepiece")

WORDS = "the old house is here and a new one is not far from it"


@pytest.fixture
def folder(tmp_path):
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    config = transformers.T5Config(**sizes, vocab_size=200, decoder_start_token_id=0)
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([WORDS] * 20),
        model_prefix=str(tmp_path / "spiece"),
        vocab_size=80,
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    (tmp_path / "spiece.vocab").unlink()
    return tmp_path


def test_its_pieces_are_read(folder):
    pytest.importorskip("google.protobuf", reason="of the extra `hf`: reads the file of sentencepiece")
    checkpoint = Checkpoint.load(str(folder))
    pieces = checkpoint.tokenizer("the old house").input_ids
    assert checkpoint.tokenizer.decode(pieces, skip_special_tokens=True) == "the old house"


def test_without_protobuf_the_message_names_it(folder, monkeypatch):
    def reads_it_as_tiktoken(*arguments, **options):
        raise ValueError("`tiktoken` is required to read a `tiktoken` file")

    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", reads_it_as_tiktoken)
    with pytest.raises(BadInput, match="pip install protobuf"):
        Checkpoint.load(str(folder))
