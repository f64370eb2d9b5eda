"""A sentence of one's own in every family: its terms sum to the scores of the model's own attention."""

import pytest
import torch

from attnlib import analyse
from attnlib.errors import BadInput
from tests.situations.builders import FAMILIES, SOURCE, TARGET, family, tokenizer_of

TOKENIZER = tokenizer_of([*SOURCE, *TARGET])
MANY = [SOURCE * 5, TARGET * 5]
NEW = "the cold house waits", "das kalte Haus wartet"


def analysed(name, **options):
    return analyse(family(name), *MANY, tokenizer=TOKENIZER, batch_size=3, probed=0, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_its_terms_rebuild_its_attention(name):
    analysis = analysed(name, sentence=NEW[0], translation=NEW[1])
    explanation = analysis.explain(0, 0, 1)
    fitted = ~explanation.terms.isnan().any(0)
    rebuilt = explanation.scores.nan_to_num().masked_fill(~fitted, -torch.inf).softmax(1)
    expected = explanation.attention.nan_to_num() * fitted
    expected = expected / expected.sum(1, keepdim=True)
    torch.testing.assert_close(rebuilt[fitted], expected[fitted], atol=1e-4, rtol=0)


def test_a_word_that_the_corpus_lacks_has_no_terms():
    analysis = analysed("T5", sentence="the blue house waits", translation=NEW[1])
    terms = analysis.explain(0, 0, 0)["input", "input"]
    unknown = analysis.samples[0].source.tolist().index(TOKENIZER.unk_token_id)
    assert terms[:, unknown].isnan().all()


def test_a_prefix_stands_before_it_too():
    analysis = analysed("T5", sentence=NEW[0], translation=NEW[1], prefix="the old ")
    assert analysis.samples[0].source.tolist() == TOKENIZER(f"the old {NEW[0]}")["input_ids"]


def test_a_sentence_longer_than_the_model_s_positions_is_cut():
    analysis = analysed("BART", sentence=" ".join(["the"] * 60), translation=NEW[1])
    assert len(analysis.samples[0].source) == 40


@pytest.mark.parametrize("sentence", ["", "  ", "\u200b"[:0]])
def test_nothing_is_no_sentence(sentence):
    with pytest.raises(BadInput, match="empty"):
        analysed("T5", sentence=sentence)
