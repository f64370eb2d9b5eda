"""How large the data sets are and how long their texts, beside what the second paper prints."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from attnlib.errors import BadInput, NotMeasured
from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from companion.data.labelled import Reading
from companion.results.config import BaseConfig, setting
from companion.results.frames import Table, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import Column
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.dataset_sizes.table_9 import EMBEDDING, TITLES, comparable, published_row
from notebooks.learn.dataset_sizes.trainings.text_sizes import PAIRS, QUANTILES, available, measure_text_sizes

READINGS = ("published", "cleaned")
BY_RULE = ("known_polarity", "known_lexicon")
SIDES = ("words", "source", "target")
LEVELS = [f"q{round(100 * share):02d}" for share in QUANTILES]
WHOLE_TEST = {"imdb": 25_000}  # texts of a test part of which the paper, and our set, draws some


class Config(BaseConfig):
    sets: tuple[str, ...] = setting(
        ("sst", "sst_as_text", "twenty_newsgroups", "sms_spam", "multi30k_de_en", *BY_RULE),
        "names of data sets, such as sst, imdb, news_it_pt",
    )
    readings: tuple[Reading, ...] = setting(
        READINGS, "of labelled texts: published, cleaned. Sentence pairs have one, which counts as published"
    )
    absent: Literal["skip", "stop"] = setting(
        "skip", "sets whose files are not on this machine: skip or stop"
    )

    def check(self) -> None:
        if not self.sets or not self.readings:
            raise BadInput("sets and readings must each name at least one")


PROFILES = {
    "quick": Config(),
    # The three sets of News Commentary are not available here; who has them names them: sets=news_it_pt.
    "paper": Config(sets=tuple(name for name in TITLES if "news_" not in name), absent="stop"),
    "tiny": Config(sets=("sst", "sms_spam", "multi30k_de_en", *BY_RULE)),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    return measurements_of([planned.spec for planned in _planned(config)], measure_text_sizes)


@dataclass(frozen=True)
class Planned:
    """A set in one reading, and what counts it."""

    data: str
    reading: str
    spec: RunSpec


def _planned(config: Config) -> Iterator[Planned]:
    for name in config.sets:
        if config.absent == "skip" and not available(name):
            continue
        readings = READINGS[:1] if name in PAIRS else config.readings
        for reading in readings:
            yield Planned(name, reading, RunSpec.of("text_sizes", data=name, reading=reading))
        if name in WHOLE_TEST:
            whole = RunSpec.of("text_sizes", data=name, n_validation=WHOLE_TEST[name])
            yield Planned(name, READINGS[0], whole)


TEXTS = {
    "data": Column("data set"),
    "reading": Column("how texts are read", categories={"published": "as published", "cleaned": "mended"}),
}
PART = {"part": Column("part of the data", categories={"train": "to train on", "validation": "to judge on"})}
SIZE = {
    "what": Column("texts, or the median length in words, or in pieces of source or target"),
    "found": Column("what we count", low=0),
    "printed": Column("what Table 9 prints; empty where it prints nothing"),
    "compared": Column("whether we have all the data that the paper had"),
    "equal": Column("whether both are equal; empty where they are not compared"),
}
LENGTHS = {
    "side": Column("words of labelled texts, or pieces of source or target"),
    **{
        level: Column(f"{share:.0%} of the texts are as short or shorter", "words or pieces", low=0)
        for level, share in zip(LEVELS, QUANTILES, strict=True)
    },
}
WORDS = {
    "different": Column("different words of the texts to train on; empty for pieces", "words", low=0),
    "kept": Column("words that are seen three times, or pieces", "words", low=0),
    "printed": Column("size of the vocabulary in Table 9", "words", low=0),
    "by_parameters": Column("size of the vocabulary that the numbers of parameters give", "words", low=0),
}
ROOM = {
    "room": Column("how far the printed size is inside of kept and different; negative: outside", "words"),
    "room_by_parameters": Column("the same of the size that the parameters give", "words"),
}
DROPPED = {
    "part": PART["part"],
    "what": Column("what is dropped, or read otherwise"),
    "why": Column("reason"),
    "count": Column("how many", low=0),
}
COUNTED = {
    "texts": Column("texts", "texts", low=0),
    "median": Column("median length of labelled texts", "words", low=0),
    "source_median": Column("median length of sources", "pieces", low=0),
    "target_median": Column("median length of targets", "pieces", low=0),
    "chance": Column(
        "agreement of a position drawn at random",
        "%",
        low=0,
        high=100,
        source="Snell et al. 2021, section 3.1",
    ),
    "median_differs": Column("distance of both medians from the printed ones, added up", "pieces", low=0),
}
WHOLE_TEST_PART = {name: COUNTED[name] for name in ("texts", "median")}
ABSENT = {"cannot_be_run": Column("why a set is passed over")}
PARAMETERS = {
    "classifier": Column("parameters of a classifier without embeddings", "parameters"),
    "translator": Column("parameters of a translator without embeddings", "parameters"),
    "translator_with_embeddings": Column("parameters of a translator", "parameters"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """Return everything that Table 9 has a number for, ours and printed.

    A quantity is *compared* where we have all the data that the paper had; what rests on a part of a set is
    only shown.
    """
    sizes, lengths, words, rooms, dropped, parts, whole_tests = ([] for _ in range(7))
    for planned, measurement in zip(_planned(config), measurements(config), strict=True):
        try:
            answer = measurement.answer(store)
        except NotMeasured:  # a store that counts nothing anew; the result says what is missing
            continue
        if planned.spec.resolved.n_validation:
            whole_tests.append({"data": planned.data} | _counted(answer["parts"]["validation"]))
            continue
        named = {"data": planned.data, "reading": planned.reading}
        for part, measured in sorted(answer["parts"].items()):
            of_part = named | {"part": part}
            compared = [of_part | size for size in _sizes(planned.data, part, measured)]
            sizes += compared
            chance = {"chance": measured["chance"]}
            parts.append(of_part | _counted(measured) | chance | _median_differs(compared))
            lengths += [of_part | length for length in _lengths(measured)]
        words.append(named | _words(planned.data, answer))
        rooms.append(named | _room(planned.data, answer["kept"], answer["different"]))
        dropped += [named | dict(zip(DROPPED, line, strict=True)) for line in answer["dropped"]]
    data = {"data": TEXTS["data"]}
    of_sizes = Table.of(sizes, TEXTS | PART | SIZE, "a number of Table 9").whole_numbers("printed")
    return {
        "sizes": of_sizes.with_rows(of_sizes.frame.astype({"equal": "boolean"})),
        "lengths": Table.of(lengths, TEXTS | PART | LENGTHS, "texts of a part, or one side of them"),
        "words": Table.of(words, TEXTS | WORDS, "a vocabulary").whole_numbers(*WORDS),
        "dropped": Table.of(dropped, TEXTS | DROPPED, "a reason to drop something"),
        "parts": Table.of(parts, TEXTS | PART | COUNTED, "a part of a data set"),
        "rooms": Table.of(rooms, TEXTS | ROOM, "a vocabulary").whole_numbers(*ROOM),
        "whole_tests": Table.of(whole_tests, data | WHOLE_TEST_PART, "a set of which some texts are judged"),
        "absent": Table.of(_absent(config), data | ABSENT, "a set that is not available"),
        "parameters": Table.of([parameters()], PARAMETERS, "the networks of Part III"),
    }


def _absent(config: Config) -> Iterator[dict]:
    """Yield each set that is not counted, with the reason."""
    planned = {planned.data for planned in _planned(config)}
    for data in config.sets:
        if data not in planned:
            yield {"data": data, "cannot_be_run": f"data: {data} is not available here"}


def values(config: Config, tables: dict[str, Table]) -> dict:
    """Return numbers by set, reading and part.

    Of sentence pairs there is one median a side, and ``median_differs``, the sum of their distances from the
    printed ones. Of ``words`` there are the bounds ``kept`` and ``different``, and ``room``, how far the
    printed size is inside these two (negative: outside), ``room_by_parameters`` of the size that the
    parameters give. A set that is passed over has the reason, ``cannot_be_run``.
    """
    vocabulary = "{data}.{reading}.words.{column}"
    numbers = {
        **keyed(tables["parts"], "{data}.{reading}.{part}.{column}", COUNTED),
        **keyed(tables["words"], vocabulary, ["different", "kept"]),
        **keyed(tables["rooms"], vocabulary, ROOM),
    }
    return view(
        {data: {} for data in config.sets},
        keyed(tables["absent"], "{data}.{column}", ABSENT),
        {key: number for key, number in numbers.items() if number is not None},
        keyed(tables["whole_tests"], "{data}.whole_test.{column}", WHOLE_TEST_PART),
        keyed(tables["parameters"], "parameters.{column}", PARAMETERS),
    )


def parameters() -> dict[str, int]:
    """Return how many parameters the networks of Part III have, as section A.8 counts them."""
    draw = torch.Generator()
    classifier = AttentiveClassifier(ClassifierConfig(words=1, embedding_width=EMBEDDING), draw)
    translator = BilinearTranslator(TranslatorConfig(), draw)
    of_classifier = sum(parameter.numel() for parameter in classifier.parameters())
    of_translator = sum(parameter.numel() for parameter in translator.parameters())
    embeddings = 0
    for name, parameter in translator.named_parameters():
        if "embedding" in name:
            embeddings += parameter.numel()
    return {
        "classifier": of_classifier - EMBEDDING,
        "translator": of_translator - embeddings,
        "translator_with_embeddings": of_translator,
    }


def _counted(measured: dict) -> dict:
    """Return how many texts a part has, and their median length; that of each side of sentence pairs."""
    counted = {"texts": measured["texts"]}
    if "words" in measured:
        counted["median"] = measured["words"]["median"]
    if "source" in measured:
        counted["source_median"] = measured["source"]["median"]
        counted["target_median"] = measured["target"]["median"]
    return counted


def _sizes(data: str, part: str, measured: dict) -> Iterator[dict]:
    """Yield the numbers of a part beside the printed ones: texts, then a median or one of each side."""
    row = published_row(data)
    texts = row.get(f"{part}.texts", (None, None))
    medians = row.get(f"{part}.median", (None, None))
    printed_numbers = (texts[0], *medians)
    for (what, counted), printed in zip(_counted(measured).items(), printed_numbers, strict=False):
        quantity = "texts" if what == "texts" else "median"
        is_compared = printed is not None and comparable(data, f"{part}.{quantity}")
        yield {
            "what": what,
            "found": counted,
            "printed": printed,
            "compared": is_compared,
            "equal": counted == printed if is_compared else None,
        }


def _median_differs(sizes: list[dict]) -> dict[str, float]:
    """Return the distance of both medians of sentence pairs from the printed ones; empty if not compared."""
    medians = [row for row in sizes if row["what"].endswith("_median")]
    if not medians or not all(row["compared"] for row in medians):
        return {}
    return {"median_differs": sum(abs(row["found"] - row["printed"]) for row in medians)}


def _lengths(measured: dict) -> Iterator[dict]:
    for side in SIDES:
        if side in measured:
            quantiles = dict(zip(LEVELS, measured[side]["quantiles"], strict=True))
            yield {"side": side, **quantiles}


def _words(data: str, answer: dict) -> dict[str, int | None]:
    return {
        "different": answer["different"],
        "kept": answer["kept"],
        "printed": _printed_size(data, "vocabulary"),
        "by_parameters": _printed_size(data, "by_parameters"),
    }


def _printed_size(data: str, quantity: str) -> int | None:
    """Return a size of the vocabulary that Table 9 gives; None where it gives none."""
    row = published_row(data)
    return row[quantity][0] if quantity in row else None


def _room(data: str, kept: int, different: int | None) -> dict[str, int]:
    """Return how far the printed sizes of a vocabulary lie inside its bounds; empty if not compared."""
    if different is None or not comparable(data, "train.texts"):
        return {}
    rooms = {}
    for name, quantity in (("room", "vocabulary"), ("room_by_parameters", "by_parameters")):
        size = _printed_size(data, quantity)
        if size is not None:
            rooms[name] = min(size - kept, different - size)
    return rooms
