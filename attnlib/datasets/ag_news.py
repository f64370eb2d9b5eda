"""AG News: headlines and first sentences in four classes."""

from attnlib.datasets.base import Dataset, files_at, files_by_hand

_RAW = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/555590db4219b1243abb1918effd6a7425a2d75f/data/ag_news_csv/"
_UPSTREAM = {
    "classes.txt": "612dbfa932f07a6ed837295a7d5746ce7412e7bb4bc32ba919fdb3cda3a1b9b5",
    "readme.txt": "779c2e6bbf93dd810d9c7b318006daef7a4bfc34062002461d251dc10fb9f58c",
    "test.csv": "521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699",
    "train.csv": None,
}
_DERIVED = {
    "train_world_business_subset.csv": "353368ff5e55d8c7a013237938115093a545b741ca4742957fa9fa299feb9da0",
}
_PARTS = {
    "a/archive.zip": "0c336c685027624d6923cff4f80e89cdc89d6f585de061d2b8671efd24aa4b13",
    "b/validation.csv": "0aaa67e1447e9d9cbc09b3470c2e30568ea7cc253d8ce4405d0e60954e2c74f7",
    "c/samples10000valMed.csv": "b8d073074344b16bcf53357ba236bc832abe125fe4ce9dea4e5a72371f6265f7",
    "d/dev.csv": "d968ce3578f756a0743667e932aa6cd6e5c4aeffd28e08cbd22482aa46deee30",
    "d/test.csv": "67d08e61d790bbe865096cc73d70370d24150b7b4405713ff73e7507c6e30c99",
    "d/train.csv": "23ff4a798bef4c6f1bab4018f491757b87e124901515e4e208461e022a163401",
}

DATASET = Dataset(
    name="ag_news",
    title="AG News (Zhang et al. 2015)",
    folder="ag_news",
    files=files_at(_RAW, _UPSTREAM) + files_by_hand(_DERIVED) + files_by_hand(_PARTS, under="train_parts/"),
    home="https://github.com/mhjabreel/CharCnn_Keras/tree/master/data/ag_news_csv",
    licence="academic and other non-commercial use (readme.txt)",
    redistribution="unclear",
    note=(
        "train.csv was never at hand, so its checksum is not known and it is not fetched; "
        "train_world_business_subset.csv holds 20,477 of the 60,000 rows of its classes 1 and 3, "
        "merged from train_parts."
    ),
)
