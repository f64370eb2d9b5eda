"""Recipes: how each network of the second paper is trained, and what is recorded of it along the way."""
