"""Sentences of Europarl whose words were aligned by hand."""

from attnlib.datasets.base import Dataset, files_at, files_by_hand

_RAW = "https://raw.githubusercontent.com/bicici/SMTData/eb81ef33c1d77412eee2b5a0ab8dd97936d23cb0/"
_DE_EN = {
    "German-English_WordAlignment.zip": "8e5a80cf26e7f48e675960c097069c29db5ed50d59fef1cd264571a2ee596d7d",
}
_GOLDEN = {
    "train/fr_golden.jsonl": "46e9ba730b933fe4c9345a21f7777eee72413091f5dccd9724e71d3e75a511d4",
    "valid/fr_golden.jsonl": "7a1d817307bf0234cdd549a998d0b1d44ec12be15af7774881f8ec8ced815090",
}

DATASET = Dataset(
    name="gold_alignments",
    title="Gold word alignments De-En (Biçici) and En-Fr (Graça et al. 2008)",
    folder="gold_alignments",
    files=(
        *files_at(_RAW, _DE_EN, under="de_en_100/"),
        *files_by_hand(_GOLDEN, under="golden_collection/"),
    ),
    home="https://github.com/bicici/SMTData",
    licence="De-En: may be used for training and testing, cite the thesis; En-Fr: no copyright restriction",
    redistribution="allowed",
    note=(
        "100 sentences a language pair. The En-Fr ones are from the golden collection of "
        "https://www.hlt.inesc-id.pt/w/Word_Alignments, already converted (sure and possible "
        "marks lost), so they are not fetched."
    ),
)
