"""How much each output hangs on each input: gradients through a recorded network, untrained and trained."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnlib.training.corpus import Batch, collate
from companion.runs import registry
from companion.runs.procedure import Recording
from notebooks.shared.sequence_course import load_task

_BATCH = 64


def measure_gradients(recording: Recording, *, length: int, samples: int) -> dict:
    """Norm of the gradient of the right word's logit, less the mean logit, by each source embedding.

    Not of its log-probability, whose gradient vanishes where the word is certain.
    """
    settings, module = recording.spec.resolved, registry.load(recording.spec.procedure)
    drawn = {"min_length": length, "max_length": length, "n_train": 1, "n_held_out": samples}
    options = tuple((dict(settings.task_options) | drawn).items())
    task = load_task(type(settings)(task=settings.task, options=options))
    sizes = len(task.source_vocabulary), len(task.target_vocabulary)
    networks = {
        "trained": module.recorded_network(recording),
        "untrained": module.new_network(settings, *sizes).eval(),
    }
    found: dict[str, object] = {"length": length, "samples": len(task.held_out)}
    for stage, network in networks.items():
        total = torch.zeros(length, length, dtype=torch.float64)
        for first in range(0, len(task.held_out), _BATCH):
            batch = collate(task.held_out, range(first, min(first + _BATCH, len(task.held_out))))
            total += gradient_norms(network, batch)[:, :length, :length].double().sum(0)
        mean = total / len(task.held_out)
        found[stage] = mean.tolist()
        found[f"aligned_{stage}"] = float((mean.diagonal() / mean.sum(1)).mean())
    return found


def gradient_norms(network: nn.Module, batch: Batch) -> Float[Tensor, "batch target source"]:
    """Norms of d (z_s − mean z) / d x_t, z_s the right word's logit at s, for all places, marks included."""
    inputs = network.embedding_source(batch.source).detach().requires_grad_()
    logits = network.decode(batch, *network.encode_inputs(inputs, batch.source_mask)).logits
    right = logits.gather(-1, batch.target_output[..., None])[..., 0] - logits.mean(-1)
    rows = []
    for step in range(right.shape[1]):
        # Samples do not touch each other, so the gradient of their sum is the gradient of each.
        (own,) = torch.autograd.grad(right[:, step].sum(), inputs, retain_graph=True)
        rows.append(own.norm(dim=-1))
    return torch.stack(rows, dim=1)
