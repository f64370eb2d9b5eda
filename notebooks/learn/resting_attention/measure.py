"""What a classifier's attention is largest at in the end: a word, or one of the two marks around the text."""

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.probes.agreement import RowMean, agreement, chance_agreement
from companion.runs.procedure import Recording
from notebooks.shared.ragged import RaggedRows, padded


def measure_resting(recording: Recording) -> dict:
    """Where attention is largest at the last checkpoint, and what the state of either mark says alone.

    Of the validation texts, by label: in percent ``begin`` and ``end``, texts whose attention is largest at
    that mark (of ties the first position has it), ``…_right``, those whose label is the likelier one when all
    attention is there (β > ½), and ``…_weight``, the mean weight there.
    """
    offsets, labels = recording["validation.offsets"], recording["validation.labels"]
    begins, ends = offsets[:-1], offsets[1:] - 1
    log_odds = recording["validation.log_polarity"][-1]
    attention = recording["validation.attention"][-1]
    weights, mask = padded(attention, offsets)
    top = begins + weights.masked_fill(~mask, -torch.inf).argmax(1)
    found = {}
    for mark, places in (("begin", begins), ("end", ends)):
        found[mark] = top == places
        found[f"{mark}_right"] = log_odds[places] > 0
        found[f"{mark}_weight"] = attention[places]
    return {
        str(label): {"texts": int((labels == label).sum())}
        | {name: 100 * float(values[labels == label].double().mean()) for name, values in found.items()}
        for label in labels.unique().tolist()
    }


def measure_apart(first: Recording, second: Recording) -> dict:
    """𝒜 of two attentions at the last checkpoints, over all positions and over the words alone, by label.

    Among the words alone the top is the largest of the words, and 5 % are those of their number. ``chance``
    is 𝒜̂ of the second attention. Raises BadInput: the two were not looked at on the same texts.
    """
    offsets, labels = second["validation.offsets"], second["validation.labels"]
    if not torch.equal(offsets, first["validation.offsets"]):
        raise BadInput(f"{first.spec.setting} and {second.spec.setting} were looked at on other texts")
    positions = RaggedRows.of_texts(offsets)
    words = RaggedRows(positions.starts + 1, positions.lengths - 2, positions.samples)
    attentions = tuple(run["validation.attention"][-1] for run in (first, second))
    return {"all": _apart(*attentions, positions, labels), "words": _apart(*attentions, words, labels)}


Flat = Float[Tensor, " positions"]


def _apart(first: Flat, second: Flat, rows: RaggedRows, labels: Tensor) -> dict:
    sums: dict[str, dict[str, RowMean]] = {}
    for places, mask, texts in rows.batches():
        found = {
            "agreement": agreement(first[places], second[places], mask),
            "chance": chance_agreement(second[places], mask),
        }
        groups = {"both": torch.ones_like(texts, dtype=torch.bool)}
        groups |= {str(label): labels[texts] == label for label in labels.unique().tolist()}
        for group, present in groups.items():
            means = sums.setdefault(group, {})
            for name, values in found.items():
                means[name] = means.get(name, RowMean()) + RowMean.of(values, present)
    return {group: {name: 100 * mean.value for name, mean in means.items()} for group, means in sums.items()}
