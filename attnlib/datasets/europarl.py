"""Europarl German-English, the first 20,000 lines."""

from attnlib.datasets.base import Dataset, files_at

_RAW = (
    "https://raw.githubusercontent.com/Sandeep-4469/SiMT_NLP/e2ef7f5a45b001aada0c2f83a205331ee70169ec/data/"
)
_SHA256 = {
    "test.de": "60f813a4014f9d38f7628b2701fe09ca1ff2eda7d038b6861025c33bc3ea2c62",
    "test.en": "7006c32a06c815a6fd8236e1cf6f54b8ee06e4a8dac50f7de1b4e7d1ea6549b4",
    "train.de": "c40e45eeb5b92156422a9c9781bafdab1dbbb525b09c0f410ad21943d205cafb",
    "train.en": "4fc27e152d74d7c587b9dca8aa785da898f5995a3432155245aa064cc1862969",
    "validation.de": "707ed869fe2ab051a91ebf3a03a50203a02a142562d01779068293b88b31cc62",
    "validation.en": "9e1a512a71ad7f1fb34c20ed8afbc64e99db498d29ba9bebcfd622af0e885986",
}

DATASET = Dataset(
    name="europarl",
    title="Europarl De-En, first 20,000 lines, with news text to validate and test",
    folder="europarl_de_en_20k",
    files=files_at(_RAW, _SHA256),
    home="https://www.statmt.org/europarl/",
    licence="Europarl: no known copyright restrictions",
    redistribution="allowed",
    note=(
        "A copy from another project, not the original release; raw text, line-aligned, 20,000 / "
        "1,000 / 1,000 lines."
    ),
)
