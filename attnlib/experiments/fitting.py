"""Components of a trained model, fitted on training samples."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attnlib.decomposition.components import Components
from attnlib.decomposition.parts import Parts
from attnlib.models.trace import Trace
from attnlib.training.evaluate import traces

if TYPE_CHECKING:
    from attnlib.training.store import TrainedModel


@dataclass(frozen=True)
class Fitted:
    """Components of both sides, and the number of samples they come from."""

    encoder: Components
    decoder: Components
    samples: int

    def split(self, trace: Trace) -> tuple[Parts, Parts]:
        """Decoder parts and encoder parts of a trace, in the order that ``alignment_terms`` takes them."""
        return (
            self.decoder.split(trace.decoder_states, trace.target_tokens, trace.target_mask),
            self.encoder.split(trace.encoder_states, trace.source_tokens, trace.source_mask),
        )


def fit_components(trained: "TrainedModel", fit_samples: int, method: str = "means") -> Fitted:
    """Components of encoder and decoder states over the first ``fit_samples`` training samples.

    The tables have a row for every position of the longest sample, held-out ones and end marks included.
    """
    task, width = trained.task, trained.model.config.width
    longest = (
        int(max(getattr(corpus, f"{side}_lengths").max() for corpus in (task.train, task.held_out))) + 1
        for side in ("source", "target")
    )
    vocabularies = (task.source_vocabulary, task.target_vocabulary)
    # The plain averages need no argument: `method` is named only where another is asked for.
    options = {} if method == "means" else {"method": method}
    encoder, decoder = (
        Components(len(words), positions, width, **options)
        for words, positions in zip(vocabularies, longest, strict=True)
    )
    fitted_on = task.train.subset(np.arange(min(fit_samples, len(task.train))))
    for trace in traces(trained.model, fitted_on):
        encoder.update(trace.encoder_states, trace.source_tokens, trace.source_mask)
        decoder.update(trace.decoder_states, trace.target_tokens, trace.target_mask)
    return Fitted(encoder, decoder, len(fitted_on))
