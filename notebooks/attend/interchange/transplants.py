"""Into which side of the scores the residual of the sentence with the other opening is put."""

TRANSPLANTS = ("none", "keys", "query", "both")
