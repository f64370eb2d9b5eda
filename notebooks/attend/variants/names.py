"""Variants of the suite's networks by name; without torch, so that cells that draw import them at no cost."""

PLAIN = "plain"
LONGER = "_longer"  # ends the name of a variant that was trained for twice as many updates
VARIANT_MEANINGS = {
    PLAIN: "the suite's network",
    "context_readout": "the output layer sees the context alone",
    "gated": "gated feed-forward states instead of a tanh layer",
    "learned_maps": "learned maps for queries, keys and values",
    "authors_defaults": "starts, and computes its GRU, as the authors' library did",
    "authors_defaults_longer": "the same, trained for twice as many updates",
}
KINDS = ("AED", "AO")  # of plain networks
