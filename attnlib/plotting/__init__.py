"""How results are drawn: one look for the whole book."""
