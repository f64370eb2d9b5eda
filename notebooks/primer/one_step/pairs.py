"""The sentences that the primers work with; without torch, for the notebook that draws them."""

PAIRS = (
    ("i love you .", "je t' aime ."),
    ("the cat sat on the mat .", "le chat s' est assis sur le tapis ."),
    ("i don 't know where he is .", "je ne sais pas où il est ."),
)
