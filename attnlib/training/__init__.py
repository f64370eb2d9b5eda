"""Training: seeded, resumable, cached."""
