"""What ties in the lexical probe add to agreement: both ways of counting them, along a run's training.

Snell et al. 2021, section 3.1, equation 10. Of translators: log β is compared as it is computed, a difference
of logits in single precision, which is 0 at every position from which a word is all but certain.
"""

from typing import TYPE_CHECKING

import torch

from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement, chance_agreement, places
from attnlib.probes.broken_ties import agreement_with_ties_broken, tied_at_top
from attnlib.probes.halves import halves
from attnlib.probes.ragged import RaggedRows
from attnlib.probes.row_mean import RowMean
from attnlib.tasks.vocabulary import EOS

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording

WAYS = {"counted": agreement, "broken": agreement_with_ties_broken}
HALVES = ("selecting", "reporting")
TENSORS = {"attention": "attention", "saliency": "saliency", "probe": "log_probe"}  # as recorded, by side
CELLS = 1 << 16  # of a checkpoint that are met at once; all checkpoints are met together


def measure_ties(first: "Recording", second: "Recording", *, sides: str) -> dict:
    """𝒜(u, β) with the ties of β counted as agreement and broken, β of the second run at each checkpoint.

    u is of the first run where it is most accurate on all validation samples, the earliest of equals.

    Args:
        sides: which u, say ``"attention saliency"``; see :data:`TENSORS`.

    Returns:
        ``steps`` of the second run; a number a checkpoint, in percent of target words: ``tied``, those whose
        largest β stands at several positions, ``tied_ends``, the end marks among these, and ``chance``, 𝒜̂
        with ties counted; ``chance_broken``, which no checkpoint changes; and by side
        ``{"counted" | "broken": {"selecting" | "reporting": [[total, rows, undefined] a checkpoint]}}``, sums
        for :class:`~attnlib.probes.row_mean.RowMean`.

    Raises:
        BadInput: a side that there is not; runs that were not looked at on the same samples; a checkpoint at
            which the first's side was not looked for.
    """
    masks = second["validation.source_mask"], second["validation.target_mask"]
    if not all(map(torch.equal, masks, (first["validation.source_mask"], first["validation.target_mask"]))):
        raise BadInput(f"{first.spec.setting} and {second.spec.setting} were looked at on other samples")
    tops, among = _at_the_best(first, sides.split()), second["validation.log_probe"]
    selects = torch.zeros(len(masks[0]), dtype=torch.bool)
    selects[halves(len(selects))[0]] = True
    selects = selects.to(among.device)
    rows = RaggedRows.of_pairs(*masks)
    ends = (second["validation.target_output"][masks[1]] == EOS).repeat_interleave(rows.lengths)

    sums = {(side, way, half): _no_rows(among) for side in tops for way in WAYS for half in HALVES}
    tied, tied_ends, chance, broken = _no_rows(among), _no_rows(among), _no_rows(among), RowMean()
    for cells, mask, sample in rows.batches(CELLS):
        probe = among[:, cells]
        ties = tied_at_top(probe, mask)
        _add(tied, ties.double())
        _add(tied_ends, (ties & ends[cells[:, 0]]).double())
        _add(chance, chance_agreement(probe, mask))
        lengths = mask.sum(-1)
        broken += RowMean.of(places(lengths) / lengths)
        present = dict(zip(HALVES, (selects[sample], ~selects[sample]), strict=True))
        for side, top in tops.items():
            for way, function in WAYS.items():
                found = function(top[cells], probe, mask)
                for half, those in present.items():
                    _add(sums[side, way, half], found[:, those])
    return {
        "steps": second["steps"].tolist(),
        "tied": [100 * mean.value for mean in tied],
        "tied_ends": [100 * mean.value for mean in tied_ends],
        "chance": [100 * mean.value for mean in chance],
        "chance_broken": 100 * broken.value,
    } | {
        side: {way: {half: _written(sums[side, way, half]) for half in HALVES} for way in WAYS}
        for side in tops
    }


def _at_the_best(recording: "Recording", sides: list[str]) -> dict[str, torch.Tensor]:
    if not sides or not set(sides) <= set(TENSORS):
        raise BadInput(f"sides {' '.join(sides)!r}: expected some of {', '.join(TENSORS)}")
    right = recording["validation.right"].sum(1).tolist()
    found = {side: recording[f"validation.{TENSORS[side]}"][right.index(max(right))] for side in sides}
    if absent := [side for side, values in found.items() if values.isnan().all()]:
        raise BadInput(f"{recording.spec.setting} has no {absent[0]} at its best checkpoint")
    return found


def _no_rows(among: torch.Tensor) -> list[RowMean]:
    return [RowMean()] * len(among)


def _add(means: list[RowMean], values: torch.Tensor) -> None:
    means[:] = [mean + RowMean.of(one) for mean, one in zip(means, values, strict=True)]


def _written(means: list[RowMean]) -> list[list]:
    return [[mean.total, mean.rows, mean.undefined] for mean in means]
