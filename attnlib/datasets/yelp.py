"""Yelp reviews with stars."""

from attnlib.datasets.base import Dataset, files_by_hand

_SHA256 = {
    "dev.csv": "c3eca3486566a3f949f192dcd9bb33ecd60cead9312a90060a374bc1ec29fdbc",
    "test.csv": "8ec4a7352b5b54e68ebcb1d041ea45deda04e6f2d1d41bbb1eb24c5db3b4b0cf",
    "yelp.csv.zip": "fc0093d9cdf96e35e1a1b7c3f76297c22959245068c7627ea56bc0891dbd4499",
}

DATASET = Dataset(
    name="yelp",
    title="Yelp reviews, three samples",
    folder="yelp",
    files=files_by_hand(_SHA256),
    home="https://www.yelp.com/dataset",
    licence="Yelp Dataset Terms of Use: academic use, no redistribution",
    redistribution="forbidden",
    note=(
        "Samples of 10,000 + 5,000 + 5,000 reviews; the whole set is had from Yelp after agreeing "
        "to its terms, so nothing is fetched."
    ),
)
