"""What a checkpoint writes is what its own model generates, by its generation config."""

import pytest
import torch

from attnlib import TokenBatch
from attnlib.analysis.learned import Learned
from attnlib.report.pretrained import Checkpoint

transformers = pytest.importorskip("transformers")

PAD, END, WORD = 19, 0, 7
BATCH = TokenBatch.of_rows([[4, 5, END], [6, END]], [[3, END], [3, END]])
LONGEST = 8


class Tokenizer:
    eos_token_id, unk_token_id = END, 1
    all_special_ids = (END, PAD)

    def __call__(self, text=None, text_target=None, **cut):
        return {"input_ids": [[3, END] for _ in text or text_target]}


@pytest.fixture
def checkpoint():
    """A Marian model whose padding would be the likeliest piece everywhere."""
    sizes = {f"{half}_{name}": 1 for half in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    sizes |= {"encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "d_model": 8, "vocab_size": 20}
    marks = {"pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": PAD}
    config = transformers.MarianConfig(**sizes, **marks, attn_implementation="eager")
    with torch.random.fork_rng(devices=[]):  # transformers takes no generator
        torch.manual_seed(0)
        model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        model.final_logits_bias[0, PAD] = 5.0
        model.final_logits_bias[0, WORD] = 2.0
    return Checkpoint("m", model, Tokenizer())


SETTINGS = [
    pytest.param({"bad_words_ids": [[PAD]]}, id="bad words"),
    pytest.param({"suppress_tokens": [PAD]}, id="suppressed"),
    pytest.param({"suppress_tokens": [PAD], "forced_bos_token_id": 5}, id="forced first"),
    pytest.param({"suppress_tokens": [PAD], "forced_eos_token_id": END}, id="forced end"),
    pytest.param({"suppress_tokens": [PAD], "eos_token_id": [END, WORD]}, id="two end marks"),
    pytest.param({"suppress_tokens": [PAD], "min_length": 4}, id="least length"),
    pytest.param({"suppress_tokens": [PAD], "no_repeat_ngram_size": 1}, id="no repetition"),
    pytest.param({"suppress_tokens": [PAD], "num_beams": 4, "early_stopping": True}, id="beams"),
    pytest.param({"suppress_tokens": [PAD], "max_length": 3}, id="shorter by default"),
    pytest.param({"return_dict_in_generate": True}, id="more is returned"),
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_is_written_is_what_the_model_generates(checkpoint, settings):
    checkpoint.model.generation_config.update(**settings)
    expected = checkpoint.model.generate(
        BATCH.source,
        attention_mask=BATCH.source_mask.long(),
        max_new_tokens=LONGEST,
        num_beams=1,
        early_stopping=False,
        do_sample=False,
        return_dict_in_generate=False,
    )
    written = checkpoint.write(BATCH, LONGEST)
    assert torch.equal(written.target, expected[:, 1:])
    assert torch.equal(written.read, expected[:, :-1])


@pytest.mark.signatures
def test_nothing_counts_after_the_first_end_mark(checkpoint):
    checkpoint.model.generation_config.update(eos_token_id=[END, PAD])
    written = checkpoint.write(BATCH, LONGEST)
    assert written.target_mask.sum(1).tolist() == [1, 1]


def test_what_may_not_be_written_is_no_prediction(checkpoint):
    checkpoint.model.generation_config.update(bad_words_ids=[[PAD], [4, 5]], suppress_tokens=[3])
    assert checkpoint.never_written() == (3, PAD)


def test_the_likeliest_word_that_may_be_written_is_judged(checkpoint):
    targets = TokenBatch.of_rows([[4, 5, END]], [[WORD, WORD]])
    trace = checkpoint.adapter().trace(targets)
    logits = torch.zeros(1, 2, 20)
    logits[..., PAD] = 2.0
    logits[..., WORD] = 1.0
    learned = Learned()
    learned.add(trace, logits, never_written=[PAD])
    assert learned.right == 2


def test_the_loss_does_not_depend_on_what_may_be_written(checkpoint):
    targets = TokenBatch.of_rows([[4, 5, END]], [[WORD, WORD]])
    trace = checkpoint.adapter().trace(targets)
    logits = torch.zeros(1, 2, 20)
    plain, masked = Learned(), Learned()
    plain.add(trace, logits)
    masked.add(trace, logits, never_written=[PAD])
    assert masked.loss == plain.loss


def test_the_decoder_starts_as_the_generation_config_says(checkpoint):
    checkpoint.model.generation_config.update(decoder_start_token_id=5, suppress_tokens=[PAD])
    mask = BATCH.source_mask.long()
    expected = checkpoint.model.generate(BATCH.source, attention_mask=mask, max_new_tokens=LONGEST)
    assert torch.equal(checkpoint.write(BATCH, LONGEST).read, expected[:, :-1])
    taught = checkpoint.adapter().trace(BATCH)
    assert taught.target_tokens[:, 0].tolist() == [5, 5]


def test_a_t5_that_starts_as_its_generation_config_says_assumes_nothing():
    sizes = {"vocab_size": 20, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    config = transformers.T5Config(**sizes, decoder_start_token_id=None, attn_implementation="eager")
    model = transformers.T5ForConditionalGeneration(config).eval()
    model.generation_config.decoder_start_token_id = 3
    checkpoint = Checkpoint("m", model, Tokenizer())
    assert checkpoint.adapter().trace(BATCH).target_tokens[:, 0].tolist() == [3, 3]
    assert checkpoint.about.keys() == {"Model"}
