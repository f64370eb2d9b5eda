"""What one sample costs: multiplications of each part of a network of the primer's family.

Counted are products of matrices, which is nearly all that there is, and the scaling of ``scaled_dot``;
biases, gates, tanh and softmax are not. Embeddings are looked up.
"""

from torch import nn

from attnlib.errors import BadInput
from attnlib.models.sequence_to_sequence import SequenceToSequence


def sample_products(network: SequenceToSequence, source: int, target: int) -> dict[str, int]:
    """Multiplications for one sample, under teacher forcing.

    Args:
        source, target: steps of encoder and decoder, end marks included.

    Returns:
        ``encoder`` and ``decoder`` (the recurrences, and the maps between them), ``score``, ``context`` (the
        weighted mean of the encoder states) and ``output``; what a network does not have is 0.

    >>> from torch import Generator
    >>> from attnlib.models.sequence_config import SequenceConfig
    >>> config = SequenceConfig(source_size=9, target_size=7, width=2)
    >>> sample_products(SequenceToSequence(config, Generator()), 5, 3)
    {'encoder': 120, 'decoder': 72, 'score': 30, 'context': 30, 'output': 66}

    Raises:
        BadInput: fewer than one step.
    """
    if min(source, target) < 1:
        raise BadInput(f"{source} source and {target} target steps; both must be at least 1")
    config = network.config
    found = {
        "encoder": source * _weights(network.encoder),
        "decoder": target * _weights(network.decoder),
        "score": 0,
        "context": 0,
        "output": target * network.readout.weight.numel(),
    }
    if hasattr(network, "start_map"):
        found["decoder"] += config.layers * network.start_map.weight.numel()
    if hasattr(network, "summary_map"):
        found["decoder"] += network.summary_map.weight.numel()
    if config.attends:
        found["score"] = network.score.products(target, source)
        found["context"] = target * source * config.encoder_width
    if hasattr(network, "attentional_map"):
        found["output"] += target * network.attentional_map.weight.numel()
    return found


def _weights(layer: nn.RNNBase) -> int:
    """Entries of its matrices: each is multiplied once a step, in both directions."""
    return sum(p.numel() for name, p in layer.named_parameters() if name.startswith("weight"))
