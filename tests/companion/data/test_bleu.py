"""BLEU by sample, of any part, and of a corpus with its signature."""

import numpy as np
import pytest

from attnlib.errors import BadInput
from companion.data.bleu import bleu, bleu_counts, corpus_bleu

REFERENCES = ["the cat sat on the mat", "a dog runs", "we're here, aren't we?"]
HYPOTHESES = ["the cat sat on a mat", "the dog runs far", "we're here"]


def test_counts_and_score_by_hand():
    counts = bleu_counts(HYPOTHESES[:1], REFERENCES[:1])
    assert counts.tolist() == [[6, 6, 5, 3, 2, 1, 6, 5, 4, 3]]
    # 5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3 quadruples; equal lengths, so no brevity penalty.
    assert bleu(counts) == pytest.approx(100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25)
    assert bleu(bleu_counts(REFERENCES, REFERENCES)) == pytest.approx(100)
    assert bleu(bleu_counts(["x y z"], REFERENCES[1:2])) == 0


@pytest.mark.parametrize("part", [slice(None), slice(0, 2), slice(1, 3)])
def test_a_part_of_the_corpus_scores_as_sacrebleu_scores_it(part):
    from sacrebleu import corpus_bleu

    expected = corpus_bleu(HYPOTHESES[part], [REFERENCES[part]]).score
    assert bleu(bleu_counts(HYPOTHESES, REFERENCES)[part]) == pytest.approx(expected, abs=1e-9)
    assert expected > 0


def test_an_empty_hypothesis_counts_for_its_reference():
    counts = bleu_counts(["", REFERENCES[1]], REFERENCES[:2])
    assert counts[0].tolist() == [0, 6, *[0] * 8]
    assert bleu(counts) < 50
    assert bleu(counts[:1]) == 0


def test_one_reference_each():
    with pytest.raises(BadInput, match="1 hypotheses and 0 references"):
        bleu_counts(["a"], [])
    with pytest.raises(BadInput, match="one each"):
        bleu_counts([], [])
    assert np.issubdtype(bleu_counts(["a"], ["a"]).dtype, np.integer)


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
