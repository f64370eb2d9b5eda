"""Read networks with word aligners, the agreement of attention with alignments, and the lexical probe."""
