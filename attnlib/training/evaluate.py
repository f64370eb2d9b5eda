"""How good a trained model is on samples it has not seen."""

from collections.abc import Iterator

import torch

from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.models.trace import Trace
from attnlib.training.corpus import Corpus, evaluation_batches


def traces(model: EncoderDecoder, corpus: Corpus, batch_size: int = 256) -> Iterator[Trace]:
    """Teacher-forced traces of a whole corpus, a batch at a time, samples of similar length together."""
    device = model.readout.weight.device
    with torch.inference_mode():
        for batch in evaluation_batches(corpus, batch_size):
            yield model(batch.to(device))


def evaluate(model: EncoderDecoder, corpus: Corpus) -> dict[str, float]:
    """Teacher-forced quality over a corpus.

    Returns:
        ``loss`` in nats a token; ``token_accuracy`` over valid target positions, EOS included;
        ``exact_match``, the share of samples with every token right.
    """
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
