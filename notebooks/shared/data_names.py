"""What data sets are called in figures and tables."""

from companion.results.result import Result

DATA_NAMES = {
    "own": "your own", "known_polarity": "known polarity", "sst": "SST",
    "sst_as_text": "SST, as the text says", "sms_spam": "SMS", "ag_news": "AG News (part)",
    "twenty_newsgroups": "20 NG", "amazon": "Amazon (part)", "imdb": "IMDB", "yelp": "Yelp (part)",
    "known_lexicon": "known lexicon", "multi30k_en_de": "Multi30k En–De",
    "multi30k_de_en": "Multi30k De–En", "iwslt14_de_en": "IWSLT14 De–En (part)",
    "news_it_pt": "News It–Pt", "news_en_nl": "News En–Nl", "news_en_pt": "News En–Pt",
}  # fmt: skip


def data_name(name: str) -> str:
    """What a data set is called in figures and tables; its own name where it has no other."""
    return DATA_NAMES.get(name, name)


def data_of(result: Result) -> list[str]:
    """The data sets that a result has numbers of: texts, then sentence pairs."""
    order = dict.fromkeys((*DATA_NAMES, *result.values))
    return [name for name in order if "validation" in result.values.get(name, ())]
