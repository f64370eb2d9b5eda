"""IMDB, the largest archive, read once."""

import pytest

from attnlib.errors import DataUnavailable
from attnlib.texts import imdb
from attnlib.texts.prepare import prepare


def test_the_archive_has_25000_reviews_a_part_and_breaks_are_taken_out():
    try:
        raw = imdb.read()
    except DataUnavailable as error:
        pytest.skip(f"data: {error}")
    for part in (raw.train, raw.test):
        assert (len(part), sum(label for _, label in part)) == (25_000, 12_500)
    cleaned, published = (
        prepare(raw, reading=reading, n_train=300, n_validation=100) for reading in ("cleaned", "published")
    )
    assert "br" in published.vocabulary.words
    assert "br" not in cleaned.vocabulary.words
    assert (len(cleaned.train), len(cleaned.validation)) == (300, 100)
