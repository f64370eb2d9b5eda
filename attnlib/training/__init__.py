"""Training: corpora, batches, a course of updates; seeded and resumable."""
