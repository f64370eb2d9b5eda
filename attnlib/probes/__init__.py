"""What stands beside a network to read it by: aligners of words, and attention compared with alignments."""
