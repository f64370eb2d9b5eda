"""The tasks that networks are followed on; without torch, for the notebook that draws them."""

TEXT = "multi30k_en_fr"
TASKS = ("one_to_one", "reordering", "copying_sample", "copying_permutation", TEXT)
