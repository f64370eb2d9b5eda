"""BLEU by sample, of any part, and of a corpus with its signature."""

import numpy as np
import pytest

from attnlib.errors import BadInput
from notebooks.shared.bleu import bleu, bleu_counts, corpus_bleu

REFERENCES = ["the cat sat on the mat", "a dog runs", "we're here, aren't we?"]
HYPOTHESES = ["the cat sat on a mat", "the dog runs far", "we're here"]


def test_counts_and_score_by_hand():
    counts = bleu_counts(HYPOTHESES[:1], REFERENCES[:1])
    assert counts.tolist() == [[6, 6, 5, 3, 2, 1, 6, 5, 4, 3]]
    # 5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3 quadruples; equal lengths, so no brevity penalty.
    assert bleu(counts) == pytest.approx(100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25)
    assert bleu(bleu_counts(["", "x y z"], REFERENCES[:2])) == 0
    assert bleu_counts([""], REFERENCES[:1]).tolist() == [[0, 6, *[0] * 8]]
    assert np.issubdtype(counts.dtype, np.integer)


@pytest.mark.parametrize("part", [slice(None), slice(0, 2), slice(1, 3)])
def test_a_part_of_the_corpus_scores_as_sacrebleu_scores_it(part):
    import sacrebleu

    expected = sacrebleu.corpus_bleu(HYPOTHESES[part], [REFERENCES[part]]).score
    assert bleu(bleu_counts(HYPOTHESES, REFERENCES)[part]) == pytest.approx(expected, abs=1e-9)
    found, signature = corpus_bleu(HYPOTHESES[part], REFERENCES[part])
    assert found == pytest.approx(expected)
    assert {"tok:13a", "smooth:exp", "nrefs:1"} <= set(signature.split("|"))


@pytest.mark.parametrize("function", [bleu_counts, corpus_bleu])
def test_one_reference_each(function):
    for hypotheses, references in ((["a"], []), ([], [])):
        with pytest.raises(BadInput, match="hypotheses and 0 references; give one each"):
            function(hypotheses, references)
