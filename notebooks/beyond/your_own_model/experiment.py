"""The report on a model of the reader's own, made of a Transformer of this book."""

from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.adapters.library_models import transformer_pass
from attnlib.analysis.passes import both_passes
from attnlib.analysis.results import head_rows, state_rows, term_rows
from attnlib.analysis.samples import Sample, samples_of
from attnlib.analysis.stream import Stream
from attnlib.errors import check_known
from attnlib.models.corpus import evaluation_batches
from attnlib.models.transformer import Transformer
from attnlib.trace import Trace
from companion.results.config import BaseConfig, OneOf, Positive
from companion.results.measurements import Measurement, answers, measurements_of
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
    rows = heads, term_rows(judgement), state_rows(fit, judgement)
    return {
        **{name: list(map(_plain, own)) for name, own in zip(ROWS, rows, strict=True)},
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
    #: profile of the chapter on Transformers whose first network is looked at
    like: Annotated[str, OneOf(experiment.PROFILES)] = "quick"
    task: str = "reordering"  #: what that network was trained on, such as one_to_one or reordering
    positions: str = "sinusoidal"  #: how it knows positions, such as sinusoidal, relative or rotary
    samples: Positive = 960  #: sentences that go through the model
    batch_size: Positive = 32  #: how many at once

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


def compute(config: Config, store: Store) -> tuple[dict, dict[str, list[dict]]]:
    """What the report says: values and tables as in `measure_report`; nothing without its network."""
    measured = next((dict(found) for _, found in answers(measurements(config), store)), {})
    return measured, {name: measured.pop(name, []) for name in ROWS}
