"""Streams of random numbers by purpose: what one seed draws for different ends does not hang together."""

import numpy as np
import torch

PARAMETERS, TRAINING, HELD_OUT, ORDER, HEAD = range(5)  # what a seed is used for


def stream(seed: int, *use: int) -> torch.Generator:
    """A generator of its own for a seed, a purpose, and where there are many of a purpose, which one.

    >>> stream(0, TRAINING, 3).initial_seed() == stream(0, TRAINING, 4).initial_seed()
    False
    """
    mixed = np.random.SeedSequence((seed, *use)).generate_state(1)[0]
    return torch.Generator().manual_seed(int(mixed))
