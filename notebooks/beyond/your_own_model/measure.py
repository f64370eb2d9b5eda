"""What a report says of a network of this book, taken as if it were anybody's."""

import torch

from attnlib.adapters.library_models import transformer_pass
from attnlib.analysis.analyse import analyse
from attnlib.analysis.results import Analysis
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
    analysis = analyse(stream)
    words = {"source": task.source_vocabulary.words, "target": task.target_vocabulary.words}
    return {
        **{name: [_plain(row) for row in getattr(analysis, name)] for name in ROWS},
        "fitted": analysis.fitted,
        "judged": analysis.judged,
        "held_out": analysis.held_out,
        "example": _example(analysis, words),
    }


def _example(analysis: Analysis, words: dict[str, tuple[str, ...]]) -> dict:
    example = analysis.example
    attention = {f"{at}/{head}": weights.tolist() for (at, head), weights in example.attention.items()}
    return {
        "source": [words["source"][i] for i in example.source.tolist()],
        "target": [words["target"][i] for i in example.target.tolist()],
        "read": [words["target"][i] for i in example.read.tolist()],
        "attention": attention,
    }


def _plain(row: dict) -> dict:
    return {key: None if value != value else value for key, value in row.items()}  # NaN is not itself
