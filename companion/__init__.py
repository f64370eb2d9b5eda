"""What reproduces the papers: the claims, their verdicts, and the book. Works in a checkout."""
