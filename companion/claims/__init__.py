"""What the papers say, held against our results: claims, judges and verdicts."""
