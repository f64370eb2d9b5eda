"""Drawing attention and its parts."""
