"""The Transformer on any task by name; see :mod:`notebooks.shared.sequence_course`."""

from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import nn

from attnlib.errors import BadInput
from attnlib.models.transformer import MultiHeadAttention, Transformer, TransformerConfig
from attnlib.trace import AttentionKind
from companion.runs.loop import Report
from companion.runs.procedure import Recording
from notebooks.shared.sequence_course import SequenceSettings, record_course, restored, task_of
from notebooks.shared.snapshots import Tensors

VERSION = 1  # of the training: raised when what it trains changes

__all__ = ["VERSION", "Settings", "new_network", "record", "recorded_network", "task_of"]


@dataclass(frozen=True)
class Settings(SequenceSettings):
    """The network beside the task: see :class:`~attnlib.models.transformer.TransformerConfig`."""

    # Lower than a recurrent network's, and reached after ``warmup`` updates: a Transformer that starts at
    # full speed may not start at all (Xiong et al. 2020, section 3.3).
    learning_rate: float = 1e-3
    warmup: int = 100
    width: int = 128
    heads: int = 4
    layers: int = 2
    hidden: int | None = None
    positions: str = "sinusoidal"
    embedding_scale: float = 1.0
    # Whether queries and keys of the encoder's self-attention share one map, so that its scores are
    # symmetric: Reformer's "shared-QK" (Kitaev et al. 2020, section 2), without its norm of the keys.
    tied: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.config(1, 1)  # what it cannot be, the network's own settings say

    def config(self, source_size: int, target_size: int) -> TransformerConfig:
        names = {field.name for field in fields(TransformerConfig)} & {field.name for field in fields(self)}
        return TransformerConfig(source_size, target_size, **{name: getattr(self, name) for name in names})


def new_network(settings: Settings, source_size: int, target_size: int) -> Transformer:
    config = settings.config(source_size, target_size)
    network = Transformer(config, torch.Generator().manual_seed(settings.seed))
    return tie_encoder(network) if settings.tied else network


def record(settings: Settings, folder: Path, *, device: str = "cpu", report: Report | None = None) -> Tensors:
    return record_course(new_network, settings, folder, device=device, report=report)


def recorded_network(recording: Recording) -> Transformer:
    return restored(new_network, recording)


class TiedAttention(MultiHeadAttention):
    """The query map is the key map as well: with q_s = k_s / √d, the score a_st = q_s · k_t is a_ts.

    The attention need not be symmetric: a softmax makes each row sum to one, and no column.
    """

    def __init__(self, config: TransformerConfig, kind: AttentionKind, layer: int):
        super().__init__(config, kind, layer)
        del self.key_map

    @property
    def key_map(self) -> nn.Linear:
        return self.query_map


def tie_encoder(network: Transformer) -> Transformer:
    """Every self-attention of the encoder with one map for queries and keys, in place; all else stays.

    Raises BadInput for positions that self-attention itself deals with.
    """
    if network.config.positions in ("relative", "rotary"):
        raise BadInput(
            f"{network.config.positions} positions live in the self-attention that would be tied; take "
            "sinusoidal, learned or none"
        )
    for number, layer in enumerate(network.encoder):
        attention = layer.self_attention
        with torch.random.fork_rng(devices=[]):  # what is drawn stays that of the network
            tied = TiedAttention(network.config, "encoder_self", number)
        tied.query_map, tied.value_map, tied.output_map = (
            attention.query_map,
            attention.value_map,
            attention.output_map,
        )
        layer.self_attention = tied
    return network
