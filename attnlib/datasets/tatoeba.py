"""Short sentence pairs of Tatoeba, as packed by manythings.org."""

from attnlib.datasets.base import Dataset, files_by_hand

_SHA256 = {
    "deu-eng.zip": "b7688f84f99fa33c17397c14d8bd9cef1fdeb2ee0bf50074767023aee8926e28",
    "fra-eng.zip": "16c4f7d0df9e7c5e6c54cdb0447f3f4a18a55052ff5e2e0b27dd4a06c0e49d04",
}

DATASET = Dataset(
    name="tatoeba",
    title="Tatoeba pairs En-Fr and En-De from manythings.org",
    folder="tatoeba_anki",
    files=files_by_hand(_SHA256),
    home="http://www.manythings.org/anki/",
    licence="CC BY 2.0 (_about.txt in each zip)",
    redistribution="allowed",
    note=(
        "Editions of 2017-09-29 (En-Fr, 142,787 pairs) and 2018-05-13 (En-De, 169,813). The page "
        "now serves newer and larger files under the same names, so these are not fetched."
    ),
)
