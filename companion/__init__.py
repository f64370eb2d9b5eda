"""What reproduces the papers from a checkout: data, runs, results, claims, book."""
