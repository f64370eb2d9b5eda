"""IMDB film reviews, positive and negative."""

from attnlib.datasets.base import Dataset, files_by_hand

_SHA256 = {
    "aclImdb_labeled.tar.gz": "0d6cba27c439908e517dd7ff1c928cfd157e34217ad661a104570095c0a9a3df",
}

DATASET = Dataset(
    name="imdb",
    title="IMDB reviews (Maas et al. 2011), the labelled part",
    folder="imdb",
    files=files_by_hand(_SHA256),
    home="https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
    licence="none stated; cite the ACL 2011 paper",
    redistribution="unclear",
    note=(
        "The labelled part of the original archive, cut out of it: 25,000 training and 25,000 "
        "test reviews. The checksum is that of this smaller archive; the original's was never at "
        "hand, so it is not fetched."
    ),
)
