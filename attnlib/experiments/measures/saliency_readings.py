"""How far each reading of saliency agrees with the lexical probe of a network that never attends.

Snell et al. 2021, sections 3.1 and 5.1. The network is taken as its training ends, for there its parameters
are kept; the tables take it at its best checkpoint.
"""

from typing import TYPE_CHECKING

import torch

from attnlib.errors import BadInput
from attnlib.experiments.measures.recorded_translation import recorded_batches
from attnlib.probes.agreement import agreement
from attnlib.probes.kendall import kendall
from attnlib.probes.row_mean import RowMean
from attnlib.probes.saliency_readings import READINGS, saliency_readings
from attnlib.recipes.cells import padded_cells
from attnlib.recipes.translation import recorded_network

if TYPE_CHECKING:
    from attnlib.recipes.recipe import Recording

MEASURES = {"agreement": agreement, "kendall": kendall}


def measure_saliency_readings(first: "Recording", second: "Recording") -> dict:
    """𝒜(Δ, β) and Kendall's τ-b, Δ of the first run's last network, β of the second run at each checkpoint.

    Returns:
        ``steps`` of the second run; by reading ``{"agreement" | "kendall": a number a checkpoint}``, in
        percent, over all words of all validation samples.

    Raises:
        BadInput: the first run kept no network; runs that were not looked at on the same samples.
    """
    masks = second["validation.source_mask"], second["validation.target_mask"]
    if not all(map(torch.equal, masks, (first["validation.source_mask"], first["validation.target_mask"]))):
        raise BadInput(f"{first.spec.setting} and {second.spec.setting} were looked at on other samples")
    network = recorded_network(first.spec.resolved, first.tensors).to(first["steps"].device)
    probes = padded_cells(second["validation.log_probe"], *masks, fill=-torch.inf)
    sums = {(reading, name): [RowMean()] * len(probes) for reading in READINGS for name in MEASURES}
    for batch in recorded_batches(first, 0):
        probe = probes[:, batch.indices, : batch.target_mask.shape[1], : batch.source_mask.shape[1]]
        rows = batch.source_mask[:, None, :].expand(probe.shape[1:])
        for reading, values in saliency_readings(network, batch).items():
            for name, function in MEASURES.items():
                own = sums[reading, name]
                found = function(values, probe, rows)
                own[:] = [
                    mean + RowMean.of(one, batch.target_mask) for mean, one in zip(own, found, strict=True)
                ]
    return {"steps": second["steps"].tolist()} | {
        reading: {name: [100 * mean.value for mean in sums[reading, name]] for name in MEASURES}
        for reading in READINGS
    }
