"""How far what one run of a network says of positions agrees with what another says along its training.

Snell et al. 2021, section 3.1, equation 10, and appendix A.4.
"""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attnlib.errors import BadInput
from attnlib.experiments.measures.course_quality import HALVES_SEED, measure_quality, parts
from attnlib.probes.agreement import agreement, chance_agreement
from attnlib.probes.contextualised import halves
from attnlib.probes.kendall import kendall
from attnlib.probes.ragged import RaggedRows
from attnlib.probes.row_mean import RowMean

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording

SIDES = ("attention", "saliency", "probe")  # α, Δ and β
HALVES = ("selecting", "reporting")
MEASURES = {"agreement": agreement, "kendall": kendall}
CELLS = 1 << 16  # of a checkpoint that are met at once; all checkpoints are met together


def measure_agreement(first: "Recording", second: "Recording", *, pairs: str) -> dict:
    """𝒜(u, v) and Kendall's τ-b, u of the first run at its best checkpoint, v of the second at each.

    The best checkpoint of the first run is the one at which it is best on all samples of the validation
    part, the earliest of equals: by accuracy, and for translations also by BLEU.

    Args:
        pairs: which u and v, say ``"attention~probe saliency~probe"``; see :data:`SIDES`.

    Returns:
        ``steps`` of the second run, ``best``, the first's checkpoint by measure of quality, and by part, pair
        and measure of quality ``{"agreement" | "kendall": {"selecting" | "reporting": [[total, rows,
        undefined] a checkpoint]}}``: sums for :class:`~attnlib.probes.row_mean.RowMean`, rows weighted alike.
        ``chance`` by part and v: 𝒜̂, the mean over rows and checkpoints.

    Raises:
        BadInput: a side that there is not; runs that were not looked at on the same samples.
    """
    wanted = _sides(pairs)
    chosen = _best(first)
    found: dict = {"steps": second["steps"].tolist(), "best": chosen, "parts": {}, "chance": {}}
    for part in parts(second):
        rows = _rows(second, part)
        if not torch.equal(rows.starts, _rows(first, part).starts):
            raise BadInput(f"{first.spec.setting} and {second.spec.setting} were looked at on other samples")
        found["parts"][part] = {}
        for earlier, later in wanted:
            tops, among = _flat(first, part, earlier), _flat(second, part, later)
            # Most often one checkpoint is best by every measure of quality.
            of_places = {place: _sums(tops[place], among, rows) for place in set(chosen.values())}
            found["parts"][part][f"{earlier}~{later}"] = {
                quality: of_places[place] for quality, place in chosen.items()
            }
        later = dict.fromkeys(later for _, later in wanted)
        found["chance"][part] = {side: _chance(_flat(second, part, side), rows) for side in later}
    return found


def _sides(pairs: str) -> list[tuple[str, str]]:
    found = [tuple(pair.split("~")) for pair in pairs.split()]
    if not found or any(len(sides) != 2 or not set(sides) <= set(SIDES) for sides in found):
        raise BadInput(f"pairs {pairs!r}: expected such as 'attention~probe', of {', '.join(SIDES)}")
    return found


def _best(recording: "Recording") -> dict[str, int]:
    """Place of the best checkpoint by each measure of quality."""
    qualities = measure_quality(recording)["parts"]["validation"]
    return {name: found["all"].index(max(found["all"])) for name, found in qualities.items()}


def _rows(recording: "Recording", part: str) -> RaggedRows:
    if f"{part}.offsets" in recording.tensors:
        return RaggedRows.of_texts(recording[f"{part}.offsets"])
    return RaggedRows.of_pairs(recording[f"{part}.source_mask"], recording[f"{part}.target_mask"])


def _flat(recording: "Recording", part: str, side: str) -> Float[Tensor, "checkpoints cells"]:
    """What is known of every position of every row; the probe as the logarithm of β, which has its order."""
    if side == "probe":
        side = "log_polarity" if f"{part}.log_polarity" in recording.tensors else "log_probe"
    return recording[f"{part}.{side}"]


def _sums(top: Float[Tensor, " cells"], among: Float[Tensor, "checkpoints cells"], rows: RaggedRows) -> dict:
    """Sums over rows of every measure, by half and checkpoint."""
    samples = int(rows.samples.max()) + 1
    selects = torch.zeros(samples, dtype=torch.bool)
    selects[halves(samples, HALVES_SEED)[0]] = True
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
