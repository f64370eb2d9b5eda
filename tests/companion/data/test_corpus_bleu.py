"""BLEU of a corpus: against the sums by sample, and what it says of itself."""

import pytest

from attnlib.errors import BadInput
from companion.data.bleu import bleu, bleu_counts, corpus_bleu

WRITTEN = ["a man on a red bike .", "two dogs play in snow", "UNK"]
RIGHT = ["a man rides a red bike .", "two dogs play in the snow .", "a woman sleeps ."]


def test_a_corpus_has_the_bleu_of_the_sums_of_its_sentences():
    found, signature = corpus_bleu(WRITTEN, RIGHT)
    assert found == pytest.approx(bleu(bleu_counts(WRITTEN, RIGHT)))
    assert 0 < found < 100
    assert {"tok:13a", "smooth:exp", "nrefs:1"} <= set(signature.split("|"))


def test_every_sentence_needs_its_reference():
    with pytest.raises(BadInput, match="3 hypotheses and 2 references"):
        corpus_bleu(WRITTEN, RIGHT[:2])
