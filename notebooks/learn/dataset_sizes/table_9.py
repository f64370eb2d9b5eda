"""Table 9 of Snell et al. (2021): what it prints, and which of our sets each row is about. Without torch."""

import csv
import re
from functools import cache

from companion.book.project import find_root

CLASSIFIER = 1_274_882  # parameters without embeddings, which are 300 numbers a word (section A.8)
EMBEDDING = 300
PARAMETERS = {  # of the classifiers with their embeddings (section A.8), by title of the row
    "IMDB": 19_376_282, "AG News": 10_594_382, "20 NG": 5_021_282, "SST": 4_581_482, "Amzn": 12_407_882,
    "Yelp": 13_685_282, "SMS": 2_682_182,
}  # fmt: skip
TITLES = {  # of the rows, by our names of the sets; synthetic sets have none
    "imdb": "IMDB", "ag_news": "AG News", "twenty_newsgroups": "20 NG", "sst": "SST", "sst_as_text": "SST",
    "amazon": "Amzn", "yelp": "Yelp", "sms_spam": "SMS", "iwslt14_de_en": "IWSLT14",
    "multi30k_de_en": "Multi30k", "multi30k_en_de": "Multi30k", "news_en_nl": "News En-Nl",
    "news_en_pt": "News En-Pt", "news_it_pt": "News It-Pt",
}  # fmt: skip


QUANTITIES = {  # of a row, as the table calls them
    "train #": "train.texts", "median train seq len": "train.median", "val #": "validation.texts",
    "median val seq len": "validation.median", "vocab size": "vocabulary",
}  # fmt: skip
PublishedRow = dict[str, tuple[int, ...]]  # by quantity one number, or of the pieces of (source, target)


@cache
def rows() -> dict[str, PublishedRow]:
    """The rows by title, and SMS, whose numbers section A.9 has but for the messages to judge on.

    ``by_parameters``: words for which the parameters have room; equal to ``vocabulary`` but for 20 NG.
    """
    of_texts: PublishedRow = {"train.texts": (3_500,), "train.median": (13,), "validation.median": (13,)}
    numbers_of = {"SMS": of_texts | {"vocabulary": (4_691,)}}
    text = (find_root() / "claims/published/snell2021_tables.csv").read_text(encoding="utf-8")
    for entry in csv.DictReader(text.splitlines()):
        if entry["table"] == "9":
            numbers = tuple(map(int, re.findall(r"\d+", entry["value"])))
            numbers_of.setdefault(entry["dataset"], {})[QUANTITIES[entry["quantity"]]] = numbers
    for title, parameters in PARAMETERS.items():
        numbers_of[title]["by_parameters"] = ((parameters - CLASSIFIER) // EMBEDDING,)
    return numbers_of


# What is not the paper's own data, and so is not held against the row: a part of the set is here.
_IN_PART = {
    "ag_news": {"train.texts", "train.median"},
    "amazon": {"train.texts", "train.median", "validation.texts", "validation.median"},
    "yelp": {"train.texts", "train.median", "validation.texts", "validation.median"},
    # Validation is whole, but its pieces are learned from the training pairs.
    "iwslt14_de_en": {"train.texts", "train.median", "validation.median"},
}


def published_row(data: str) -> PublishedRow:
    """The row about one of our sets; an empty one where there is none."""
    return rows().get(TITLES.get(data, ""), {})


def comparable(data: str, quantity: str) -> bool:
    """Whether a quantity, say ``"train.median"``, rests on all the data that the paper had.

    >>> comparable("sst", "train.texts"), comparable("yelp", "train.texts")
    (True, False)
    """
    return quantity not in _IN_PART.get(data, set())
