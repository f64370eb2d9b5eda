"""20 Newsgroups, the two groups on sport."""

from attnlib.datasets.base import Dataset, files_by_hand

_SHA256 = {
    "20news-bydate-rec.sport.tar.gz": "bc674c8499666d86c152e866e759450b80ff3e0cc86d2cc57e767a2992b8ce76",
}

DATASET = Dataset(
    name="twenty_newsgroups",
    title="20 Newsgroups by date, rec.sport.baseball and rec.sport.hockey",
    folder="20newsgroups",
    files=files_by_hand(_SHA256),
    home="http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
    licence="none stated",
    redistribution="unclear",
    note=(
        "Two groups cut out of the original archive, whole messages with headers in Latin-1: "
        "1,197 training and 796 test messages. The checksum is that of this smaller archive; the "
        "original's was never at hand, so it is not fetched."
    ),
)
