"""Networks of the library: VED, AED and AO, the primers' networks, a Transformer, the second paper's models.

Called on a batch, each of them returns an :class:`attnlib.Trace`, which an analysis reads.
"""
