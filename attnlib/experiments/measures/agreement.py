"""How far what one run of a network says of positions agrees with what another says along its training.

Snell et al. 2021, section 3.1, equation 10, and appendix A.4.
"""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.probes.agreement import agreement, chance_agreement
from attnlib.probes.halves import halves
from attnlib.probes.kendall import kendall
from attnlib.probes.ragged import RaggedRows
from attnlib.probes.row_mean import RowMean
from attnlib.recipes.qualities import CHOOSING, GROUPS, qualities

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording

SIDES = ("attention", "saliency", "probe")  # α, Δ and β
LOOKED_UP = ("attention", "probe")  # what a second run is asked for
HALVES = ("selecting", "reporting")
MEASURES = {"agreement": agreement, "kendall": kendall}
CELLS = 1 << 16  # of a checkpoint that are met at once; all checkpoints are met together


def measure_course(recording: "Recording") -> dict:
    """How good a run is at its checkpoints, and what chance would agree with it.

    Returns:
        ``steps``; by part of the data that was looked at, ``parts``: by measure of quality and group of
        samples one number a checkpoint, in percent, see :func:`~attnlib.recipes.qualities.qualities`;
        ``chance``: 𝒜̂ by what is looked up (``attention`` where learned, ``probe``), the mean over rows and
        checkpoints; and ``majority``: the accuracy, in percent, of giving the commonest answer always.
    """
    chance: dict[str, dict[str, float]] = {}
    for part in parts(recording):
        rows = _rows(recording, part)
        sides = {side: recording.tensors.get(_tensor(recording, part, side)) for side in LOOKED_UP}
        chance[part] = {side: _chance(flat, rows) for side, flat in sides.items() if flat is not None}
    return {
        "steps": recording["steps"].tolist(),
        "parts": {part: _course(recording, part) for part in parts(recording)},
        "chance": chance,
        "majority": {part: _majority(recording, part) for part in parts(recording)},
    }


def measure_agreement(first: "Recording", second: "Recording", *, pairs: str) -> dict:
    """𝒜(u, v) and Kendall's τ-b, u of the first run at its best checkpoint, v of the second at each.

    Every part of the data chooses for itself: the best checkpoint of the first run is the one at which it is
    best on the part's samples that select, or, the paper's way, on all of them; the earliest of equals; by
    accuracy, and for translations also by BLEU. So half of the training samples choose too, and the others
    report; but they are samples that the network was trained on, in either half.

    Args:
        pairs: which u and v, say ``"attention~probe saliency~probe"``; see :data:`SIDES`.

    Returns:
        ``steps`` of the second run; ``best``, the place among the first's checkpoints by part, measure of
        quality and group that chose (``selecting`` or ``all``); and by part, pair and place (as text)
        ``{"agreement" | "kendall": {"selecting" | "reporting": [[total, rows, undefined] a checkpoint]}}``:
        sums for :class:`~attnlib.probes.row_mean.RowMean`, rows weighted alike.

    Raises:
        BadInput: a side that there is not; runs that were not looked at on the same samples; a checkpoint at
            which the first's side was not looked for.
    """
    wanted = _sides(pairs)
    found: dict = {"steps": second["steps"].tolist(), "best": {}, "parts": {}}
    for part in parts(second):
        rows = _rows(second, part)
        if not torch.equal(rows.starts, _rows(first, part).starts):
            raise BadInput(f"{first.spec.setting} and {second.spec.setting} were looked at on other samples")
        chosen = found["best"][part] = _best(first, part)
        places = sorted({place for by_group in chosen.values() for place in by_group.values()})
        found["parts"][part] = {}
        for earlier, later in wanted:
            tops, among = (run[_tensor(run, part, side)] for run, side in ((first, earlier), (second, later)))
            if tops[places].isnan().all(1).any():
                raise BadInput(f"{first.spec.setting} has no {earlier} at its best checkpoint")
            found["parts"][part][f"{earlier}~{later}"] = {
                str(place): _sums(tops[place], among, rows) for place in places
            }
    return found


def parts(recording: "Recording") -> tuple[str, ...]:
    """``validation``, then the sample of the training data where one was looked at."""
    found = [name.split(".") for name in recording.tensors if name.endswith((".correct", ".right"))]
    return tuple(sorted((part for part, _ in found), key=lambda part: part != "validation"))


def _course(recording: "Recording", part: str) -> dict[str, dict[str, list[float]]]:
    """Qualities of every checkpoint, by measure and group."""
    changing = [f"{part}.{name}" for name in ("correct", "right", "bleu_counts")]
    fixed = {name: recording[name] for name in (f"{part}.target_mask",) if name in recording.tensors}
    looks = [
        qualities(fixed | {name: recording[name][i] for name in changing if name in recording.tensors}, part)
        for i in range(len(recording["steps"]))
    ]
    return {name: {group: [look[name][group] for look in looks] for group in GROUPS} for name in looks[0]}


def _majority(recording: "Recording", part: str) -> float:
    """The share of the commonest label or, of sentence pairs, of the commonest word to say, in percent."""
    if f"{part}.labels" in recording.tensors:
        answers = recording[f"{part}.labels"]
    else:
        answers = recording[f"{part}.target_output"][recording[f"{part}.target_mask"]]
    return 100 * int(answers.unique(return_counts=True)[1].max()) / answers.numel()


def _sides(pairs: str) -> list[tuple[str, str]]:
    found = [tuple(pair.split("~")) for pair in pairs.split()]
    if not found or any(len(sides) != 2 or not set(sides) <= set(SIDES) for sides in found):
        raise BadInput(f"pairs {pairs!r}: expected such as 'attention~probe', of {', '.join(SIDES)}")
    return found


def _best(recording: "Recording", part: str) -> dict[str, dict[str, int]]:
    """Place of the part's best checkpoint by each measure of quality and group that may choose."""
    return {
        name: {group: found[group].index(max(found[group])) for group in CHOOSING}
        for name, found in _course(recording, part).items()
    }


def _rows(recording: "Recording", part: str) -> RaggedRows:
    if f"{part}.offsets" in recording.tensors:
        return RaggedRows.of_texts(recording[f"{part}.offsets"])
    return RaggedRows.of_pairs(recording[f"{part}.source_mask"], recording[f"{part}.target_mask"])


def _tensor(recording: "Recording", part: str, side: str) -> str:
    """Where a recording has what is known of every position; the probe as log β, which has its order."""
    if side == "probe":
        side = "log_polarity" if f"{part}.log_polarity" in recording.tensors else "log_probe"
    return f"{part}.{side}"


def _sums(top: Float[Tensor, " cells"], among: Float[Tensor, "checkpoints cells"], rows: RaggedRows) -> dict:
    """Sums over rows of every measure, by half and checkpoint."""
    samples = int(rows.samples.max()) + 1
    selects = torch.zeros(samples, dtype=torch.bool, device=rows.samples.device)
    selects[halves(samples)[0].to(selects.device)] = True
    sums = {name: {half: [RowMean()] * len(among) for half in HALVES} for name in MEASURES}
    for places, mask, sample in rows.batches(CELLS):
        present = dict(zip(HALVES, (selects[sample], ~selects[sample]), strict=True))
        for name, function in MEASURES.items():
            values = function(top[places], among[:, places], mask)
            for half, means in sums[name].items():
                means[:] = [m + RowMean.of(v, present[half]) for m, v in zip(means, values, strict=True)]
    return {
        name: {half: [[m.total, m.rows, m.undefined] for m in means] for half, means in of_halves.items()}
        for name, of_halves in sums.items()
    }


def _chance(among: Float[Tensor, "checkpoints cells"], rows: RaggedRows) -> float:
    mean = RowMean()
    for places, mask, _ in rows.batches(CELLS):
        mean += RowMean.of(chance_agreement(among[:, places], mask))
    return mean.value
