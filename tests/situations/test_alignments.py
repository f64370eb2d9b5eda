"""Words linked by the attention of any family, compared with the weights that the model returns itself."""

import pytest

from attnlib import HuggingFace, TokenBatch, align
from tests.situations.builders import FAMILIES, SOURCE, TARGET, family, plain_call, tokenizer_of

TOKENIZER = tokenizer_of([*SOURCE, *TARGET])  # a piece a word, an end mark behind
GENERATED = {"num_beams": 2}


def expected_links(name, layer, head):
    """Each target word with the source word that it attends to most, at the step that predicts it."""
    rows = [TOKENIZER(lines)["input_ids"] for lines in (SOURCE, TARGET)]
    trace = HuggingFace(family(name)).trace(TokenBatch.of_rows(*rows))
    weights = plain_call(family(name), trace, output_attentions=True).cross_attentions[layer]
    links = []
    for row, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
        of_words = weights[row, head, : len(target.split()), : len(source.split())]
        links.append(tuple(sorted((int(best), word) for word, best in enumerate(of_words.argmax(-1)))))
    return links


@pytest.mark.parametrize("name", FAMILIES)
def test_links_are_those_of_the_model_s_own_weights(name):
    alignments = align(family(name), SOURCE, TARGET, tokenizer=TOKENIZER, layer=0, head=1)
    assert list(alignments.links) == expected_links(name, 0, 1)


@pytest.mark.parametrize("name", ["BART", "Marian", "T5", "mBART", "two BERTs"])
def test_what_a_model_writes_by_beams_is_aligned(name):
    alignments = align(
        family(name), SOURCE, tokenizer=TOKENIZER, layer=0, head=0, longest=8, generation=GENERATED
    )
    for links, source, target in zip(alignments.links, alignments.source, alignments.target, strict=True):
        assert [word for _, word in sorted(links, key=lambda link: link[1])] == list(range(len(target)))
        assert all(place < len(source) for place, _ in links)
