"""Text for the second paper's experiments: cleaned, split, and made into ids."""
