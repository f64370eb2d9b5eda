"""Training runs: what defines one, how each kind trains, and what is kept of it."""
