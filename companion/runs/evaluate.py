"""How good a trained model is on samples it has not seen."""

from collections.abc import Iterator

import torch

from attnlib.errors import BadInput
from attnlib.models.corpus import Corpus, evaluation_batches
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.trace import Trace


def traces(model: EncoderDecoder, corpus: Corpus, batch_size: int = 256) -> Iterator[Trace]:
    """Yield teacher-forced traces of a whole corpus, a batch at a time, samples of similar length together.

    They have no gradient; whether gradients are recorded between them is the caller's choice.
    """
    device = model.readout.weight.device
    for batch in evaluation_batches(corpus, batch_size):
        # No mode may be on at the yield: it would be on in the caller as well.
        with torch.no_grad():
            trace = model(batch.to(device))
        yield trace


def evaluate(model: EncoderDecoder, corpus: Corpus) -> dict[str, float]:
    """Teacher-forced quality over a corpus.

    Returns:
        ``loss`` in nats a token; ``token_accuracy`` over valid target positions, EOS included;
        ``exact_match``, the share of samples with every token right.

    Raises:
        BadInput: the corpus holds no samples.
    """
    if not len(corpus):
        raise BadInput("the corpus holds no samples: give at least one to evaluate a model on")
    loss = right = tokens = exact = samples = 0.0
    for trace in traces(model, corpus):
        mask = trace.target_mask
        log_probabilities = trace.logits.log_softmax(dim=-1)
        chosen = log_probabilities.gather(-1, trace.target_outputs[..., None])[..., 0]
        correct = (trace.logits.argmax(dim=-1) == trace.target_outputs) | ~mask
        loss -= float(chosen[mask].double().sum())
        right += int((correct & mask).sum())
        tokens += int(mask.sum())
        exact += int(correct.all(dim=1).sum())
        samples += len(mask)
    return {"loss": loss / tokens, "token_accuracy": right / tokens, "exact_match": exact / samples}
