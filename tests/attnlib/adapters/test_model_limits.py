"""Batches beyond what a model has rows for: what is too long, or what is embedded nowhere, is named."""

import pytest

from attnlib.adapters import HuggingFace, TokenBatch
from attnlib.errors import BadInput
from tests.attnlib.adapters.test_hugging_face import model_of


@pytest.mark.parametrize("name", ["Bart", "MBart", "Marian", "Pegasus"])
def test_sentences_longer_than_the_positions_are_refused(name):
    traced, most, more = HuggingFace(model_of(name)), [5] * 32, [5] * 33
    assert len(traced.trace(TokenBatch.of_rows([most], [most])).attended) == 2
    for side, rows in (("source", ([more, [4]], [[3], [3]])), ("target", ([[3], [3]], [[4], more]))):
        with pytest.raises(BadInput, match=rf"a {side} has 33 pieces; .* positions for 32: .*--longest 32"):
            traced.trace(TokenBatch.of_rows(*rows))


@pytest.mark.parametrize("name", ["T5", "M2M100"])
def test_positions_that_are_computed_have_no_end(name):
    found = HuggingFace(model_of(name)).trace(TokenBatch.of_rows([[5] * 50], [[6] * 40]))
    assert found.attended[0].scores.shape == (1, 4, 40, 50)


@pytest.mark.parametrize("name", ["T5", "Bart", "M2M100"])
def test_ids_that_a_model_does_not_embed_are_refused(name):
    traced = HuggingFace(model_of(name))
    for side, rows in (("source", ([[5, 50], [4]], [[3], [3]])), ("target", ([[3], [3]], [[4], [4, 50]]))):
        with pytest.raises(BadInput, match=rf"a {side} holds id 50; .* embeds 50, from 0: use the tokenizer"):
            traced.trace(TokenBatch.of_rows(*rows))
