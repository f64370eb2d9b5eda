"""Every head of a published Transformer, while it writes molecules back: shares, typicality, copying."""

import torch

from attnlib.adapters import Hooked, ModelPass, Modules, TokenBatch
from attnlib.analysis.passes import both_passes
from attnlib.analysis.results import head_rows
from attnlib.analysis.stream import Stream
from companion.runs.procedure import Recording
from notebooks.beyond.others_model.published import LAYERS, START, recorded_network

REPORTED = ("temporal", "input", "mixed", "residual")


def measure_published_heads(recording: Recording, *, batch_size: int) -> dict:
    """``heads``: a row each, in order of layers; ``quality``: of the next symbol; ``fitted``, ``judged``.

    ``copies`` is the attention on the very symbol that is to be written: the molecule is its own target, so
    that its place is known. ``copies_by_chance`` is that of even attention.
    """
    network, batches = recorded_network(recording), molecules(recording["molecules"], batch_size)
    names = [f"decoder.{layer}.multihead_attn" for layer in range(LAYERS)]
    hooked = [Hooked(name, name, layer=layer) for layer, name in enumerate(names)]
    model = Modules(
        network, hooked, lambda network, one: network(one.source, one.source_mask, one.read), start=START
    )
    judgement, part = both_passes(Stream(model.trace, batches, probed=0, logits=model.logits))
    rows = head_rows(judgement, held_out=part.every > 1)
    sums, steps = torch.zeros(LAYERS, rows[-1]["head"] + 1, dtype=torch.float64), 0
    even = 0.0
    for batch in batches:
        one = model.trace(batch)
        sums += torch.stack([copied(one, layer) for layer in range(LAYERS)])
        steps += int(one.target_mask.sum())
        even += float((one.target_mask.sum(1) / one.source_mask.sum(1)).sum())
    names = [f"{part}_{end}" for part in REPORTED for end in ("share", "low", "high")]
    names += ["layer", "head", "near_typicality", "temporal_rebuilds", "input_rebuilds", "uniform", "spread"]
    heads = [{name: row[name] for name in names} for row in rows]
    for row in heads:
        row |= {"copies": float(sums[row["layer"], row["head"]]) / steps, "copies_by_chance": even / steps}
    return {
        "heads": heads, "quality": judgement.learned.result(),
        "fitted": judgement.fit.samples, "judged": judgement.samples,
    }  # fmt: skip


def molecules(padded: torch.Tensor, batch_size: int) -> list[TokenBatch]:
    """Batches of molecules with both marks; the target has no start mark, which the decoder reads first."""
    rows = [row[row >= 0].tolist() for row in padded]
    starts = range(0, len(rows), batch_size)
    return [
        TokenBatch.of_rows(some, [row[1:] for row in some])
        for some in (rows[at : at + batch_size] for at in starts)
    ]


def copied(one: ModelPass, layer: int) -> torch.Tensor:
    """Of each head the attention on the symbol to be written, summed: step s writes place s + 1."""
    attended = one.attended[layer]
    found = [one.softmax(attended, head).double() for head in range(attended.heads)]
    due = [weights.diagonal(1, 1, 2) * one.target_mask for weights in found]
    return torch.stack([each.sum() for each in due])
