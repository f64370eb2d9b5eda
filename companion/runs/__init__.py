"""Training runs: what defines one, what trains it, and what is kept of it."""
