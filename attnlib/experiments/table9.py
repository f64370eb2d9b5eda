"""Table 9 of Snell et al. (2021): what it prints, and which of our sets each row is about."""

from dataclasses import dataclass

CLASSIFIER = 1_274_882  # parameters without embeddings, which are 300 numbers a word (section A.8)
EMBEDDING = 300


@dataclass(frozen=True)
class Printed:
    """A row of the table; medians are of words, or of the pieces of (source, target).

    Attributes:
        title: as in the paper, and in ``claims/published/``.
        parameters: of the classifier with its embeddings (section A.8); None for translation.
    """

    title: str
    train_texts: int
    train_median: tuple[int, ...]
    validation_texts: int | None
    validation_median: tuple[int, ...]
    vocabulary: int
    parameters: int | None = None

    @property
    def vocabulary_by_parameters(self) -> int | None:
        """Words for which the parameters have room; equal to ``vocabulary`` but for 20 NG."""
        return None if self.parameters is None else (self.parameters - CLASSIFIER) // EMBEDDING


PRINTED = (
    Printed("IMDB", 25_000, (181,), 4_000, (178,), 60_338, 19_376_282),
    Printed("AG News", 60_000, (40,), 3_800, (40,), 31_065, 10_594_382),
    Printed("20 NG", 1_197, (183,), 796, (207,), 31_065, 5_021_282),
    Printed("SST", 5_130, (16,), 1_421, (17,), 11_022, 4_581_482),
    Printed("Amzn", 32_514, (71,), 4_000, (72,), 37_110, 12_407_882),
    Printed("Yelp", 88_821, (74,), 4_000, (74,), 41_368, 13_685_282),
    Printed("IWSLT14", 160_240, (23, 24), 7_284, (22, 23), 8_000),
    Printed("Multi30k", 29_000, (14, 14), 1_014, (15, 14), 8_000),
    Printed("News En-Nl", 52_070, (30, 34), 5_786, (30, 34), 8_000),
    Printed("News En-Pt", 48_538, (31, 35), 5_394, (31, 35), 8_000),
    Printed("News It-Pt", 21_572, (36, 35), 2_397, (36, 36), 8_000),
    # Section A.9, in words; how many messages were judged on it does not say.
    Printed("SMS", 3_500, (13,), None, (13,), 4_691, 2_682_182),
)
# Our names of the sets that a row is about.
_TITLES = {
    "imdb": "IMDB",
    "ag_news": "AG News",
    "twenty_newsgroups": "20 NG",
    "sst": "SST",
    "sst_as_text": "SST",
    "amazon": "Amzn",
    "yelp": "Yelp",
    "iwslt14_de_en": "IWSLT14",
    "multi30k_de_en": "Multi30k",
    "multi30k_en_de": "Multi30k",
    "news_en_nl": "News En-Nl",
    "news_en_pt": "News En-Pt",
    "news_it_pt": "News It-Pt",
    "sms_spam": "SMS",
}
# What is not the paper's own data, and so is not held against the row: a part of the set is at hand.
_IN_PART = {
    "ag_news": {"train.texts", "train.median"},
    "amazon": {"train.texts", "train.median", "validation.texts", "validation.median"},
    "yelp": {"train.texts", "train.median", "validation.texts", "validation.median"},
    # Validation is whole, but its pieces are learned from the training pairs.
    "iwslt14_de_en": {"train.texts", "train.median", "validation.median"},
}


def printed(data: str) -> Printed | None:
    """The row about one of our sets; None where there is none."""
    return next((row for row in PRINTED if row.title == _TITLES.get(data)), None)


def comparable(data: str, quantity: str) -> bool:
    """Whether a quantity, say ``"train.median"``, rests on all the data that the paper had.

    >>> comparable("sst", "train.texts"), comparable("yelp", "train.texts")
    (True, False)
    """
    return quantity not in _IN_PART.get(data, set())
