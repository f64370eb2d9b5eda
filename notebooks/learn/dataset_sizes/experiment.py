"""How large the data sets are and how long their texts, beside what the second paper prints."""

from collections.abc import Iterator
from typing import Literal

import torch

from attnlib.errors import BadInput, NotMeasured
from attnlib.models.classifiers import AttentiveClassifier, ClassifierConfig
from attnlib.models.translator import BilinearTranslator, TranslatorConfig
from companion.data.labelled import Reading
from companion.results.config import BaseConfig
from companion.results.measurements import Measurement, measurements_of
from companion.runs.procedure import RunSpec
from companion.runs.store import Store
from notebooks.learn.dataset_sizes.table_9 import EMBEDDING, TITLES, comparable, published_row
from notebooks.learn.dataset_sizes.text_sizes import PAIRS, QUANTILES, available, measure_text_sizes
from notebooks.shared.intervals import nested

READINGS = ("published", "cleaned")
BY_RULE = ("known_polarity", "known_lexicon")
SIDES = ("words", "source", "target")
LEVELS = [f"q{round(100 * share):02d}" for share in QUANTILES]
WHOLE_TEST = {"imdb": 25_000}  # texts of a test part of which the paper, and our set, draws some


class Config(BaseConfig):
    #: names of data sets, such as sst, imdb, news_it_pt
    sets: tuple[str, ...] = (
        "sst", "sst_as_text", "twenty_newsgroups", "sms_spam", "multi30k_de_en", *BY_RULE,
    )  # fmt: skip
    #: of labelled texts: published, cleaned. Sentence pairs have one, which counts as published.
    readings: tuple[Reading, ...] = READINGS
    absent: Literal["skip", "stop"] = "skip"  #: sets whose files are not on this machine: skip or stop

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
    return measurements_of([spec for _, _, spec in _planned(config)], measure_text_sizes)


def _planned(config: Config) -> Iterator[tuple[str, str, RunSpec]]:
    """Set, reading and what counts it."""
    for name in config.sets:
        if config.absent == "skip" and not available(name):
            continue
        for reading in READINGS[:1] if name in PAIRS else config.readings:
            yield name, reading, RunSpec.of("text_sizes", data=name, reading=reading)
        if name in WHOLE_TEST:
            whole = RunSpec.of("text_sizes", data=name, n_validation=WHOLE_TEST[name])
            yield name, READINGS[0], whole


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """Everything that Table 9 has a number for, ours and printed.

    A quantity is *compared* where we have all the data that the paper had; what rests on a part of a set is
    only shown. Of sentence pairs there is one median a side, and ``median_differs``, the sum of their
    distances from the printed ones. Of ``words`` there are the bounds ``kept`` and ``different``, and
    ``room``, how far the printed size is inside these two (negative: outside), ``room_by_parameters`` of the
    size that the parameters give. A set that is passed over has the reason, ``cannot_be_run``.
    """
    values: dict = {name: {"cannot_be_run": f"data: {name} is not available here"} for name in config.sets}
    tables: dict[str, list[dict]] = {"sizes": [], "lengths": [], "words": [], "dropped": []}
    for (name, reading, spec), measurement in zip(_planned(config), measurements(config), strict=True):
        if "cannot_be_run" in values[name]:
            values[name] = {}
        try:
            found = measurement.answer(store)
        except NotMeasured:  # a store that counts nothing anew; the result says what is missing
            continue
        parts = sorted(found["parts"].items())
        if spec.resolved.n_validation:
            whole = found["parts"]["validation"]
            values[name]["whole_test"] = {"texts": whole["texts"], "median": whole["words"]["median"]}
            continue
        row = {"data": name, "reading": reading}
        sizes = [row | size for part, measured in parts for size in _sizes(name, part, measured)]
        bounds = {bound: found[bound] for bound in ("kept", "different") if found[bound] is not None}
        values[name][reading] = _by_part(sizes) | {"words": bounds | _room(name, **bounds)}
        tables["sizes"] += sizes
        tables["lengths"] += [
            row | {"part": part, "side": side} | dict(zip(LEVELS, measured[side]["quantiles"], strict=True))
            for part, measured in parts
            for side in SIDES
            if side in measured
        ]
        printed = published_row(name)
        sizes_of = {"printed": "vocabulary", "by_parameters": "by_parameters"}
        told = {column: printed.get(quantity, (None,))[0] for column, quantity in sizes_of.items()}
        tables["words"].append(row | {"different": None} | bounds | told)
        tables["dropped"] += [
            row | dict(zip(("part", "what", "why", "count"), line, strict=True)) for line in found["dropped"]
        ]
    return values | {"parameters": parameters()}, tables


def parameters() -> dict[str, int]:
    """How many parameters the networks of Part III have, as section A.8 counts them."""
    draw = torch.Generator()
    classifier = AttentiveClassifier(ClassifierConfig(words=1, embedding_width=EMBEDDING), draw)
    translator = BilinearTranslator(TranslatorConfig(), draw)
    whole = sum(own.numel() for own in translator.parameters())
    embeddings = sum(own.numel() for name, own in translator.named_parameters() if "embedding" in name)
    return {
        "classifier": sum(own.numel() for own in classifier.parameters()) - EMBEDDING,
        "translator": whole - embeddings,
        "translator_with_embeddings": whole,
    }


def _sizes(data: str, part: str, measured: dict) -> Iterator[dict]:
    printed = published_row(data)
    medians = {side: measured[side]["median"] for side in SIDES if side in measured}
    ours = {"texts": measured["texts"]}
    ours |= {"median" if side == "words" else f"{side}_median": own for side, own in medians.items()}
    texts, theirs = (printed.get(f"{part}.{what}", (None, None)) for what in ("texts", "median"))
    for (what, found), told in zip(ours.items(), (texts[0], *theirs), strict=False):
        compared = told is not None and comparable(data, f"{part}.{what.rpartition('_')[2]}")
        row = {"part": part, "what": what, "found": found, "printed": told, "compared": compared}
        yield row | {"equal": found == told if compared else None}


def _by_part(sizes: list[dict]) -> dict:
    """The rows of one set and reading by part and quantity."""
    values = nested({(row["part"], row["what"]): row["found"] for row in sizes})
    for part, own in values.items():
        pairs = [row for row in sizes if row["part"] == part and row["what"].endswith("_median")]
        if pairs and all(row["compared"] for row in pairs):
            own["median_differs"] = sum(abs(row["found"] - row["printed"]) for row in pairs)
    return values


def _room(data: str, kept: int, different: int | None = None) -> dict[str, int]:
    """How far the printed sizes of a vocabulary lie inside its bounds; empty where they are not compared."""
    if different is None or not comparable(data, "train.texts"):
        return {}
    sizes = {"room": "vocabulary", "room_by_parameters": "by_parameters"}
    printed = {name: published_row(data)[n][0] for name, n in sizes.items() if n in published_row(data)}
    return {name: min(size - kept, different - size) for name, size in printed.items()}
