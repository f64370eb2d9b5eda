"""The gold alignments of the book: all their forms, and scores of what sees no network, by loops."""

import json
from functools import cache

import pytest

from attnlib.alignment.both_directions import symmetrise
from attnlib.alignment.gold import gold_of_text, read_gold
from attnlib.alignment.score_table import Lexicon, diagonal_links
from attnlib.alignment.scores import LinkSums
from attnlib.alignment.words import split_words
from companion.data.parallel import GOLD_ALIGNMENTS
from companion.data.sources import locate
from companion.data.text import unzipped

GERMAN_ENGLISH = "de_en_100/German-English_WordAlignment.zip"
FRENCH = [f"golden_collection/{part}/fr_golden.jsonl" for part in ("train", "valid")]
pytestmark = pytest.mark.skipif(
    not GOLD_ALIGNMENTS.available([GERMAN_ENGLISH, *FRENCH]), reason="gold alignments are not available here"
)


@cache
def german_english():
    """Source words, target words, and the two files of links, as texts."""
    names = ("test.de", "test.en", "de-en.wa", "de-en.ref.wa")
    german, english, pharaoh, naacl = unzipped(
        locate(GOLD_ALIGNMENTS, GERMAN_ENGLISH), *(f"German-English_WordAlignment/{name}" for name in names)
    )
    sides = [[split_words(line) for line in text.splitlines()[:100]] for text in (german, english)]
    return *sides, pharaoh, naacl


def links_by_hand(pharaoh):
    """The links of a file without anything of the library."""
    lines = []
    for line in pharaoh.splitlines():
        pairs = [link.split("-") for link in line.split()]
        lines.append({(int(source), int(target)) for source, target in pairs})
    return lines


def test_both_files_of_the_german_english_links_say_the_same():
    _, _, pharaoh, naacl = german_english()
    of_pharaoh = read_gold(pharaoh.splitlines()).links
    assert read_gold(naacl.splitlines()).links == of_pharaoh
    assert [set(gold.sure) for gold in of_pharaoh] == links_by_hand(pharaoh)


def test_one_german_english_link_leads_outside_its_sentence():
    source, target, pharaoh, _ = german_english()
    of_text, n_outside = gold_of_text(read_gold(pharaoh.splitlines()), source, target)
    assert (sum(len(gold.sure) for gold in of_text), n_outside) == (1_232, 1)


@pytest.mark.parametrize("name", FRENCH)
def test_the_golden_collection_is_read(name):
    path = locate(GOLD_ALIGNMENTS, name)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    source, target = ([row[side] for row in rows] for side in ("src_words", "tgt_words"))
    of_text, n_outside = gold_of_text(read_gold(path), source, target)
    expected = [{tuple(link) for link in row["alignment"]} for row in rows]
    assert ([set(gold.sure) for gold in of_text], n_outside) == (expected, 0)


def rates_by_loops(made, gold):
    """Error rate, precision and recall, where all gold links are sure."""
    hits = n_made = n_gold = 0
    for links, right in zip(made, gold, strict=True):
        n_made += len(links)
        n_gold += len(right)
        for link in links:
            hits += link in right
    return 1 - 2 * hits / (n_made + n_gold), hits / n_made, hits / n_gold


@pytest.mark.parametrize("method", ["diagonal", "IBM Model 1", "both directions of IBM Model 1"])
def test_rates_on_the_gold_links_are_what_loops_count(method):
    source, target, pharaoh, _ = german_english()
    pairs = list(zip(source, target, strict=True))
    there, back = Lexicon(pairs), Lexicon([(english, german) for german, english in pairs])
    made = []
    for german, english in pairs:
        if method == "diagonal":
            made.append(diagonal_links(german, english))
        elif method == "IBM Model 1":
            made.append(there.links(german, english))
        else:
            reverse = [(place, other) for other, place in back.links(english, german)]
            made.append(symmetrise(there.links(german, english), reverse))
    of_text, _ = gold_of_text(read_gold(pharaoh.splitlines()), source, target)
    sums = LinkSums()
    for links, gold in zip(made, of_text, strict=True):
        sums.update(links, gold)
    scores = sums.result()
    expected = rates_by_loops(made, [gold.sure for gold in of_text])
    assert (scores.error_rate, scores.precision, scores.recall) == pytest.approx(expected)
    assert 0.3 < scores.error_rate < 0.8  # a hundred pairs are few to learn from
