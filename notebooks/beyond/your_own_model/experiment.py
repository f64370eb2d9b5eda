"""The report on a model of the reader's own, made of a Transformer of this book."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.adapters.library_models import transformer_pass
from attnlib.analysis.passes import both_passes
from attnlib.analysis.results import HEAD_COLUMNS, TERM_COLUMNS, head_rows, state_rows, term_rows
from attnlib.analysis.samples import Sample, samples_of
from attnlib.analysis.stream import Stream
from attnlib.errors import check_known
from attnlib.models.corpus import evaluation_batches
from attnlib.models.transformer import Transformer
from attnlib.trace import Trace
from companion.results.config import BaseConfig, OneOf, Positive, setting
from companion.results.frames import Table, frame, keyed, view
from companion.results.measurements import Measurement, measurements_of
from companion.runs.columns import Column, Columns, share
from companion.runs.measure import measure
from companion.runs.procedure import Recording
from companion.runs.store import Store
from notebooks.beyond.transformer_heads import experiment
from notebooks.shared.sequence_course import load_task
from notebooks.shared.task_patterns import network_of

ROWS = ("heads", "terms", "states")
METHOD = "least_squares"  # of the components


@torch.no_grad()
def lexical_probe(network: Transformer, trace: Trace) -> Float[Tensor, "batch target source"]:
    """Return β: the probability of the correct word if all cross-attention sees one source position alone.

    The encoder, and all that the decoder reads, is as in the pass (Snell et al. 2021, equation 4). It is zero
    at padding.
    """
    encoded = network.begin(trace.source_tokens, trace.source_mask)
    columns = []
    for position in range(trace.source_mask.shape[1]):
        alone = torch.zeros_like(trace.source_mask)  # (batch, source)
        alone[:, position] = True
        prefix = replace(encoded, source_mask=alone)
        column = []
        for words, correct in zip(trace.target_tokens.T, trace.target_outputs.T, strict=True):
            logits, prefix = network.write(words, prefix)  # (batch, words)
            column.append(logits.softmax(-1).gather(1, correct[:, None])[:, 0])
        columns.append(torch.stack(column, dim=1))  # (batch, target)
    probe = torch.stack(columns, dim=2)  # (batch, target, source)
    return probe * trace.target_mask[:, :, None] * trace.source_mask[:, None]


@measure(version=2)
@torch.no_grad()
def measure_report(recording: Recording, *, samples: int, batch_size: int) -> dict:
    """An analysis of all attentions on training sentences, of which it holds some out by itself."""
    task, network = load_task(recording.spec.resolved), network_of(recording, "trained")
    text = task.train.subset(range(min(samples, len(task.train))))
    stream = Stream(
        lambda batch: transformer_pass(network, batch),
        lambda: evaluation_batches(text, batch_size),
        probe=partial(lexical_probe, network),
        logits=attrgetter("logits"),
    )
    judgement, shard = both_passes(stream, method=METHOD)
    fit, held_out = judgement.fit, not shard.hold_out.is_empty
    (shown,) = samples_of(stream, stream.trace(stream.first("judge", shard)), fit, most=1)
    words = {"source": task.source_vocabulary.words, "target": task.target_vocabulary.words}
    heads = [_without_split_shares(row) for row in head_rows(judgement, held_out=held_out)]
    tables = {"heads": heads, "terms": term_rows(judgement), "states": state_rows(fit, judgement)}
    return {
        **{name: [_plain(row) for row in rows] for name, rows in tables.items()},
        "fitted": fit.samples,
        "judged": judgement.samples,
        "held_out": held_out,
        "learned": _plain(judgement.learned.result()),
        "example": _example(shown, words),
    }


def _example(shown: Sample, words: dict[str, tuple[str, ...]]) -> dict:
    """Its attention is 0 where a decoder cannot look."""
    seen = {place: weights.nan_to_num() for place, weights in shown.attention.items()}
    return {
        "source": [words["source"][i] for i in shown.source.tolist()],
        "target": [words["target"][i] for i in shown.target.tolist()],
        "read": [words["target"][i] for i in shown.read.tolist()],
        "attention": {f"{at}/{head}": weights.tolist() for (at, head), weights in seen.items()},
    }


def _without_split_shares(row: dict) -> dict:
    """The archived reports have none; a page takes split shares from the rows of terms."""
    return {name: value for name, value in row.items() if "_split_" not in name}


def _plain(row: dict) -> dict:
    return {key: None if value != value else value for key, value in row.items()}  # NaN is not itself


class Config(BaseConfig):
    like: Annotated[str, OneOf(experiment.PROFILES)] = setting(
        "quick", "profile of the chapter on Transformers whose first network is looked at"
    )
    task: str = setting("reordering", "what that network was trained on, such as one_to_one or reordering")
    positions: str = setting("sinusoidal", "how it knows positions, such as sinusoidal, relative or rotary")
    samples: Positive = setting(960, "sentences that go through the model")
    batch_size: Positive = setting(32, "how many at once")

    def check(self) -> None:
        for field in ("task", "positions"):
            check_known(field, getattr(self, field), getattr(experiment.PROFILES[self.like], field))


PROFILES = {
    "quick": Config(),
    "paper": Config(like="paper", samples=9_600),
    "tiny": Config(like="tiny", samples=60, batch_size=6),
}


def measurements(config: Config) -> tuple[Measurement, ...]:
    specs = experiment.specs(experiment.PROFILES[config.like], config.task, config.positions)
    return measurements_of(specs[:1], measure_report, samples=config.samples, batch_size=config.batch_size)


HEADS = {
    name: Column(meaning)
    for name, meaning in HEAD_COLUMNS.items()
    if "_split_" not in name and name != "rows_unseen"  # which archived reports lack
}
TERMS = {name: Column(meaning) for name, meaning in TERM_COLUMNS.items()}
STATES = {
    "states": Column("which states projections read"),
    "width": Column("of the states"),
    "words": Column("words that have a component", "words", low=0),
    "positions": Column("positions that have a component", "positions", low=0),
    "fitted": Column("states that components are fitted on", "states", low=0),
    "judged": Column("states that are judged", "states", low=0),
    "unseen_words": share("judged states whose word has no component"),
    "unseen_positions": share("judged states whose position has no component"),
    "megabytes": Column("memory that components take", "MB", low=0),
}
SAMPLES = {
    "fitted": Column("sentences that components are fitted on", "sentences", low=0),
    "judged": Column("sentences that heads are judged on", "sentences", low=0),
    "held_out": Column("whether these are other sentences"),
    "learned.words": Column("words that were predicted", "words", low=0),
    "learned.sentences": Column("sentences that they are of", "sentences", low=0),
    "learned.accuracy": share("words that are predicted correctly"),
    "learned.loss": Column("cross-entropy", "nats a word", low=0),
    "learned.whole_sentences": share("sentences of which every word is predicted correctly"),
    "learned.loss_by_frequency": Column("cross-entropy, predicting by frequency alone", "nats a word", low=0),
    "learned.most_frequent": share("words that are the most frequent one"),
}
WORD = {
    "side": Column("source, target, or what the decoder reads (read)"),
    "place": Column("position of the word, from 0"),
    "word": Column("the word"),
}
WEIGHT = {
    "attention": Column("which attention"),
    "head": Column("number of the head, from 0"),
    "query": Column("position that attends, from 0"),
    "key": Column("position that is attended to, from 0"),
    "weight": share("attention"),
}


def compute(config: Config, store: Store) -> dict[str, Table]:
    """What the report says: tables as in `measure_report`, and its example, word by word."""

    def of_network(records: Callable, columns: Columns, row: str) -> Table:
        asked = measurements(config)
        return frame(asked, store, records=records, columns=columns, names={}, row=row)

    return {
        "heads": of_network(itemgetter("heads"), HEADS, "a head"),
        "terms": of_network(itemgetter("terms"), TERMS, "a term of a head"),
        "states": of_network(itemgetter("states"), STATES, "states that projections read"),
        "samples": of_network(dict, SAMPLES, "an analysis"),
        "words": of_network(_words, WORD, "a word of the example"),
        "attention": of_network(_weights, WEIGHT, "an entry of a head's attention in the example"),
    }


def values(config: Config, tables: dict[str, Table]) -> dict:
    words = tables["words"].frame.groupby("side", sort=False)["word"]
    example: dict[str, object] = {f"example.{side}": of_side.tolist() for side, of_side in words}
    if example:
        example["example.attention"] = _attention(tables["attention"])
    return view(keyed(tables["samples"], "{column}", SAMPLES), example)


def _words(measured: dict) -> list[dict]:
    return [
        {"side": side, "place": place, "word": word}
        for side in ("source", "target", "read")
        for place, word in enumerate(measured["example"][side])
    ]


def _weights(measured: dict) -> list[dict]:
    rows = []
    for name, matrix in measured["example"]["attention"].items():
        attention, _, head = name.partition("/")
        for query, weights in enumerate(matrix):
            for key, weight in enumerate(weights):
                place = {"query": query, "key": key, "weight": weight}
                rows.append({"attention": attention, "head": int(head)} | place)
    return rows


def _attention(weights: Table) -> dict[str, list[list[float]]]:
    """Return the attention of each head as a matrix, by ``attention/head``."""
    matrices = {}
    for (attention, head), entries in weights.frame.groupby(["attention", "head"], sort=False):
        matrix = entries.pivot(index="query", columns="key", values="weight")
        matrices[f"{attention}/{head}"] = matrix.to_numpy().tolist()
    return matrices
