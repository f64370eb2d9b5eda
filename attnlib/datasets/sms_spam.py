"""SMS Spam Collection v.1."""

from attnlib.datasets.base import Dataset, files_at

_RAW = "https://raw.githubusercontent.com/justmarkham/pycon-2016-tutorial/5339710562cc46c4a32a369d63f1e8751a18a54e/data/"
_SHA256 = {
    "sms.tsv": "7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d",
}

DATASET = Dataset(
    name="sms_spam",
    title="SMS Spam Collection v.1 (Almeida et al. 2011)",
    folder="sms_spam",
    files=files_at(_RAW, _SHA256),
    home="https://archive.ics.uci.edu/dataset/228/sms+spam+collection",
    licence="CC BY 4.0",
    redistribution="allowed",
    note=(
        "`ham` or `spam`, tab, text; 4,827 + 747 messages. The archive of the home page calls its "
        "file SMSSpamCollection."
    ),
)
