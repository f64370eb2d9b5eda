"""The dial: one made grammar, in which more and more sentences change the order of their words.

Cells that draw read it from here, since what trains the networks imports torch.
"""

DIAL = ("reordering_0", "reordering_25", "reordering_50", "reordering_75", "reordering_100")
