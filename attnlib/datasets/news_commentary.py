"""News Commentary v14, the three language pairs of Snell et al. 2021."""

from attnlib.datasets.base import Dataset, files_at

_BASE = "https://data.statmt.org/news-commentary/v14/training/"
_SHA256 = {
    "news-commentary-v14.en-nl.tsv": None,
    "news-commentary-v14.en-pt.tsv": None,
    "news-commentary-v14.it-pt.tsv": None,
}

DATASET = Dataset(
    name="news_commentary",
    title="News Commentary v14 En-Nl, En-Pt, It-Pt",
    folder="news_commentary",
    files=files_at(_BASE, _SHA256, suffix=".gz"),
    home="https://data.statmt.org/news-commentary/v14/training/",
    licence="see the page",
    redistribution="unclear",
    note=(
        "Never at hand here: no checksum is known, so nothing is fetched; download by hand into "
        "the mirror or the cache."
    ),
)
