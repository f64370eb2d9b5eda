"""What a report says of a network of this book, taken as if it were anybody's."""

import torch

from attnlib.adapters.library_models import transformer_pass
from attnlib.analysis.passes import both_passes
from attnlib.analysis.results import head_rows, state_rows, term_rows
from attnlib.analysis.samples import Sample, samples_of
from attnlib.analysis.stream import Stream
from attnlib.training.corpus import evaluation_batches
from companion.runs.procedure import Recording
from notebooks.shared.sequence_course import load_task
from notebooks.shared.task_patterns import network_of

ROWS = ("heads", "terms", "states")


@torch.no_grad()
def measure_report(recording: Recording, *, samples: int, batch_size: int) -> dict:
    """An analysis of all attentions on training sentences, of which it holds some out by itself."""
    task, network = load_task(recording.spec.resolved), network_of(recording, "trained")
    corpus = task.train.subset(range(min(samples, len(task.train))))
    stream = Stream(
        lambda batch: transformer_pass(network, batch), lambda: evaluation_batches(corpus, batch_size)
    )
    judgement, part = both_passes(stream, method="least_squares")
    fit, held_out = judgement.fit, part.every > 1
    (shown,) = samples_of(stream, stream.trace(stream.first("judge", part)), fit, most=1)
    words = {"source": task.source_vocabulary.words, "target": task.target_vocabulary.words}
    rows = head_rows(judgement, held_out=held_out), term_rows(judgement), state_rows(fit, judgement)
    return {
        **{name: list(map(_plain, own)) for name, own in zip(ROWS, rows, strict=True)},
        "fitted": fit.samples,
        "judged": judgement.samples,
        "held_out": held_out,
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


def _plain(row: dict) -> dict:
    return {key: None if value != value else value for key, value in row.items()}  # NaN is not itself
