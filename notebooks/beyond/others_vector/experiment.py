"""What one vector holds in a network that others trained, judged by predictions made beforehand."""

from collections.abc import Callable
from typing import Annotated

import numpy as np

from companion.results.config import BaseConfig, OneOf, Positive, setting
from companion.results.frames import Table, frame, joined, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import Column, Columns, share
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.beyond.others_vector.trainings.published_speller import SOURCES, measure_vector
from notebooks.shared.summaries import Bootstrap, end_differences, summarise

SHORT, LONG = (4, 6), (10, 12)  # letters: fewest and most
WITHIN_LENGTHS = Bootstrap(groups="short", draws_groups=False, seed=20_261_125)


class Config(BaseConfig):
    weights: Annotated[str, OneOf(SOURCES)] = setting(
        "drawn", "g2p_en, the published ones, or drawn, a stand-in drawn at random"
    )
    words: Positive = setting(2_000, "of the dictionary that the network pronounces, at most")
    letters: Positive = setting(7, "of the words whose vectors are looked into")


PROFILES = {"quick": Config(), "paper": Config(weights="g2p_en", words=20_000), "tiny": Config(words=600)}


def measurements(config: Config) -> tuple[Measurement, ...]:
    spec = RunSpec.of("published_speller", weights=config.weights, words=config.words)
    return measurements_of([spec], measure_vector, letters=config.letters)


WORD = {
    "letters": Column("letters of the word", low=0),
    "right": Column("1 if all sounds are written as the dictionary has them, else 0", low=0, high=1),
}
LENGTH = {
    "letters": WORD["letters"],
    "right": share("words of which all sounds are written as the dictionary has them"),
    "words": Column("words of this length", low=0),
}
SHORT_WORD = {"short": Column(f"1: {SHORT[0]} to {SHORT[1]} letters; -1: {LONG[0]} to {LONG[1]}")}
PLACE = {
    "place": Column("position of the letter in the word, from 1"),
    "common": share("words whose letter is the most common one of its place"),
    "of_place": Column("part of the variance of a sum over letters that the letter of this place makes"),
    "read": share("words whose letter a linear map reads from the vector"),
    "unique": Column("part of the variance of a sum over letters that is lost without this place"),
}
FOLD_NAME = {"fold": Column("part of the words of one length, which is judged by the others, from 0")}
FOLD = {
    "sum": Column("part of the vector's variance that a sum over letters explains"),
    "read_first": Column("words whose first letter a linear map reads from the vector, as a share"),
    "ends_less_middle": Column("letters read at the first and last place, minus those read between them"),
    "last_less_first": Column("parts of the sum at the last two places, minus those at the first two"),
}
NETWORK = {
    "right": LENGTH["right"],
    "words.all": Column("words that are written", low=0),
    "words.of_one_length": Column("words whose vectors are looked into", low=0),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Compute how many words of each length are right, and what is where in the vectors of one length."""

    def of(records: Callable[[dict], object], columns: Columns, row: str) -> Table:
        asked = measurements(config)
        return frame(asked, store, names={}, columns_of=_no_names, records=records, columns=columns, row=row)

    words = of(_words, WORD, "a word")
    folds = of(_folds, FOLD_NAME | FOLD, "a fold")
    return {
        "lengths": _lengths(words),
        "places": _places(of(_places_of_folds, PLACE, "a place in a fold")),
        "network": of(_network, NETWORK, "the network"),
        "short_minus_long": short_minus_long(words),
        "vectors": summarise(folds, [], FOLD, unit="fold"),
    }


def _no_names(spec: RunSpec) -> dict[str, object]:
    """Return no columns: there is one network."""
    return {}


def _words(measured: dict) -> list[dict]:
    written = measured["written"]
    pairs = zip(written["letters"], written["right"], strict=True)
    return [{"letters": letters, "right": right} for letters, right in pairs]


def _network(measured: dict) -> dict:
    right = measured["written"]["right"]
    words = {"all": len(right), "of_one_length": measured["words"]}
    return {"right": float(np.mean(right)), "words": words}


def _folds(measured: dict) -> list[dict]:
    records = []
    for number, fold in enumerate(measured["folds"]):
        read, parts = np.array(fold["read"]), np.array(fold["of_place"])  # (places,)
        record = {
            "fold": number,
            "sum": fold["sum"],
            "read_first": read[0],
            "ends_less_middle": read[[0, -1]].mean() - read[1:-1].mean(),
            "last_less_first": parts[-2:].sum() - parts[:2].sum(),
        }
        records.append(record)
    return records


def _places_of_folds(measured: dict) -> list[dict]:
    records = []
    for fold in measured["folds"]:
        for place in range(len(fold["read"])):
            numbers = {name: fold[name][place] for name in PLACE if name != "place"}
            records.append({"place": place + 1} | numbers)
    return records


def _places(places: Table) -> Table:
    """Return the means over folds."""
    means = places.frame.groupby("place", as_index=False).mean()
    return Table(means, PLACE, "a place of a letter, in the mean over folds")


def _lengths(words: Table) -> Table:
    by_length = words.frame.groupby("letters", as_index=False)["right"].agg(["mean", "size"])
    named = by_length.rename(columns={"mean": "right", "size": "words"})
    return Table(named, LENGTH, "a length of words")


def short_minus_long(words: Table) -> Table:
    """Return how many more of short words are right than of long ones, words drawn anew."""
    short, long = (
        words.query("@fewest <= letters <= @most", fewest=fewest, most=most) for fewest, most in (SHORT, LONG)
    )
    both = joined([short.assign(SHORT_WORD, short=1), long.assign(SHORT_WORD, short=-1)])
    return end_differences(both, "short", ["right"], resampled=WITHIN_LENGTHS)


def values(config: Config, tables: dict[str, Table]) -> dict:
    return view(
        keyed(tables["short_minus_long"], "short_less_long"),
        keyed(tables["vectors"], "{quantity}"),
        keyed(tables["network"], "{column}", NETWORK),
    )
