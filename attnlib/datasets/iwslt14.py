"""IWSLT 2014 German-English: subtitles of TED talks."""

from attnlib.datasets.base import Dataset, files_by_hand

_SHA256 = {
    "test.de": "e718c783e33160b7d72af8f733756a466e0d0c016eff8ab624c1b0d1d01cbbdf",
    "test.en": "4b127beb9050511a3e6209cd837ff36f623a3a423666b32aba6e208b7330cf4c",
    "valid.de": "3f051579c9d8c7281a6ea8c72ad4ae09dbaa9bb24dfd41166f2c3a3df7cd940a",
    "valid.en": "e6d7317a9772cd1ed970910c611e9e7dada1f34439269b44a9d801334bff948d",
    "lr_samples/sample.de+en": "820c3a813a55ad0b325d5188e91c8a7087c661059fa884d5a5a8e4305767af08",
    "lr_samples/first/train.de": "22edc946d289c487c22e116b86527dc7efd139e962ed3d61f92b68883dcc5517",
    "lr_samples/first/train.en": "03d8d5b0528c3b8dea05e7eed701ad66a88fe351434ff2ff3dc32b0cb6ce360c",
}

DATASET = Dataset(
    name="iwslt14",
    title="IWSLT 2014 De-En, part of the training set",
    folder="iwslt14_de_en",
    files=files_by_hand(_SHA256),
    home="http://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",
    licence="CC BY-NC-ND 3.0 (TED talks)",
    redistribution="forbidden",
    note=(
        "Validation (7,283) and test (6,750) whole, tokenised and lower-cased; of the 160,239 "
        "training pairs two samples with 8,639 distinct ones, split into subwords marked @@. They "
        "are made from the archive by a script of fairseq, so they are not fetched. Text has HTML "
        "escapes."
    ),
)
