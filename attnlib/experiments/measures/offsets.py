"""What attention does when one side's clock runs ahead of the other's.

AO: the positions of one side start at k. A recurrent network: k steps of an input that says nothing go
before the sentence, so that the first word is read in the state that these steps reach. Encoder ahead by k: a
decoder that looks for the encoder's clock finds its own step k places earlier. Decoder ahead by k: step s
attends as step s + k did.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnlib.experiments.fitting import Fitted
from attnlib.experiments.measures.wordless import wordless_input
from attnlib.models.encoder_decoder import EncoderDecoder
from attnlib.tasks.corpus import Batch, Corpus, evaluation_batches
from attnlib.tasks.vocabulary import EOS

OFFSETS = (1, 2, 3, 5)  # places; sources of 15 and more words leave rows for each of them
States = tuple[Tensor, Tensor]  # encoder's, decoder's
Shift = Callable[[Batch, int], States]


def conditions(model: EncoderDecoder, fitted: Fitted) -> dict[str, tuple[str, Shift]]:
    """Ways to set the clocks apart by k: name → which side is ahead, and the states.

    * ``encoder``, ``decoder``, ``both``: by positions (AO), or by k steps of the average input. A recurrent
      decoder reads its begin mark first and then the k inputs, so that the mark cannot undo them. It starts
      from the state that the unshifted encoder ends in: only one clock is moved.
    * ``encoder_null``, ``decoder_null``: the same with zeros for input.
    * ``encoder_words``, ``decoder_words``: the same with words, the first k that the sample itself has.
    * ``decoder_before_mark``: the k inputs before the begin mark.
    * ``encoder_handed_on``: the decoder starts from what the shifted encoder ends in.
    """
    if model.config.architecture == "AO":
        return _by_positions(model)
    return _by_steps(model, fitted)


def _by_positions(model: EncoderDecoder) -> dict[str, tuple[str, Shift]]:
    def shifted(encoder: bool, decoder: bool) -> Shift:
        def states(batch: Batch, k: int) -> States:
            return (
                model.encode(batch.source, batch.source_mask, first_position=k * encoder)[0],
                model.decode(batch.target_input, None, first_position=k * decoder),
            )

        return states

    return {
        "encoder": ("encoder", shifted(True, False)),
        "decoder": ("decoder", shifted(False, True)),
        "both": ("none", shifted(True, True)),
    }


def _by_steps(model: EncoderDecoder, fitted: Fitted) -> dict[str, tuple[str, Shift]]:
    def filler(side: str, kind: str, words: Tensor, k: int) -> Tensor:
        """k inputs for each sample; ``words``: its embedded sentence, (batch, length, width)."""
        if kind == "words":  # a sample of fewer than k words has no row that can show an offset of k
            return words[:, [min(t, words.shape[1] - 1) for t in range(k)]]
        embedding = (model.source_embedding if side == "encoder" else model.target_embedding).weight
        return wordless_input(embedding, getattr(fitted, side), kind, k).expand(len(words), -1, -1)

    def encode(batch: Batch, k: int, kind: str):
        words = model.source_embedding(batch.source)
        inputs = torch.cat([filler("encoder", kind, words, k), words], dim=1)
        states, last = model.encode_inputs(inputs, batch.source_mask.sum(1) + k)
        return states[:, k:], last

    def decode(batch: Batch, start, k: int, kind: str, marks: int) -> Tensor:
        """``marks``: steps of the sentence before the k inputs, 0 or 1."""
        words = model.target_embedding(batch.target_input)
        inputs = torch.cat(
            [words[:, :marks], filler("decoder", kind, words[:, 1:], k), words[:, marks:]], dim=1
        )
        return model.decode_inputs(inputs, start)[:, k:]

    def shifted(
        encoder: bool, decoder: bool, kind: str = "average", marks: int = 1, hand_on: bool = False
    ) -> Shift:
        def states(batch: Batch, k: int) -> States:
            own, last = encode(batch, k * encoder, kind)
            start = last if hand_on else encode(batch, 0, kind)[1]
            return own, decode(batch, start, k * decoder, kind, marks)

        return states

    return {
        "encoder": ("encoder", shifted(True, False)),
        "decoder": ("decoder", shifted(False, True)),
        "both": ("none", shifted(True, True)),
        "encoder_null": ("encoder", shifted(True, False, "null")),
        "decoder_null": ("decoder", shifted(False, True, "null")),
        "encoder_words": ("encoder", shifted(True, False, "words")),
        "decoder_words": ("decoder", shifted(False, True, "words")),
        "decoder_before_mark": ("decoder", shifted(False, True, marks=0)),
        "encoder_handed_on": ("encoder", shifted(True, False, hand_on=True)),
    }


def measure_offsets(model: EncoderDecoder, fitted: Fitted, corpus: Corpus) -> dict[str, dict]:
    """Displacement of attention against the offset of the clocks, for every condition.

    A row counts where the place expected of it lies among the source's words, and a decoder's row where the
    step whose attention it is to take over reads a word to be said; rows that predict the end mark are left
    out. The expected displacement is −k for an encoder ahead, and that of the unshifted attention from step s
    to s + k for a decoder ahead (k where attention is diagonal, −k where it is reversed).

    Returns:
        by condition: ``slope`` of the displacement of the largest weight on the expected one, through the
        origin over all k (1: attention follows the clocks, 0: it does not move), ``centre_slope`` for the
        centre of mass, and ``by_offset``: a record a k with ``expected``, ``largest``, ``centre`` (mean
        displacements in places), ``followed`` (share of rows whose largest weight stands where expected),
        ``similarity`` to the unshifted attention, ``rows``.
    """
    result = {}
    for name, (ahead, states_of) in conditions(model, fitted).items():
        sums = {k: torch.zeros(6, dtype=torch.float64) for k in OFFSETS}
        products = torch.zeros(3, dtype=torch.float64)  # expected², expected · largest, expected · centre
        with torch.inference_mode():
            for batch in evaluation_batches(corpus, 256):
                batch = batch.to(model.readout.weight.device)
                before = model(batch).attention
                for k in OFFSETS:
                    after = model.attend(batch, *states_of(batch, k)).attention
                    expected, keep = expectation(before, batch, k, ahead)
                    moved = (after.argmax(-1) - before.argmax(-1))[keep].double()
                    centre = (_centre(after) - _centre(before))[keep].double()
                    hit = (after.argmax(-1) == before.argmax(-1) + expected)[keep].double()
                    similar = (1 - 0.5 * (after - before).abs().sum(-1))[keep].double()
                    wanted = expected[keep].double()
                    rows = (wanted, moved, centre, hit, similar, torch.ones_like(hit))
                    sums[k] += torch.stack([row.sum() for row in rows]).cpu()
                    products += torch.stack([(wanted * x).sum() for x in (wanted, moved, centre)]).cpu()
        result[name] = {
            "slope": _ratio(products[1], products[0]),
            "centre_slope": _ratio(products[2], products[0]),
            "by_offset": [
                {"offset": k, "rows": int(n)}
                | {
                    kind: _ratio(value, n)
                    for kind, value in zip(
                        ("expected", "largest", "centre", "followed", "similarity"), row, strict=True
                    )
                }
                for k, (*row, n) in sums.items()
            ],
        }
    return result


def expectation(
    before: Float[Tensor, "batch target source"], batch: Batch, k: int, ahead: str
) -> tuple[Int[Tensor, "batch target"], Bool[Tensor, "batch target"]]:
    """Where the largest weight is to go, relative to where it was, and the rows that can show it."""
    place = before.argmax(-1)
    words = batch.source_mask.sum(1)[:, None] - 1  # the end mark of the source is no place to go to
    keep = batch.target_mask & (batch.target_output != EOS) & (place < words)
    if ahead == "encoder":
        expected = torch.full_like(place, -k)
    elif ahead == "decoder":
        steps = torch.arange(place.shape[1], device=place.device) + k
        later = steps.clamp(max=place.shape[1] - 1)
        expected = place[:, later] - place
        keep = keep & (steps < place.shape[1]) & keep[:, later]
    else:
        expected = torch.zeros_like(place)
    return expected, keep & (place + expected >= 0) & (place + expected < words)


def _centre(attention: Float[Tensor, "batch target source"]) -> Float[Tensor, "batch target"]:
    return attention @ torch.arange(attention.shape[-1]).to(attention)


def _ratio(above, below) -> float | None:
    return round(float(above) / float(below), 6) if float(below) else None
