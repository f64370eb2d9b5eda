"""Families of tasks: those that differ by a setting, or by the language translated into, are one.

Cells that draw read it from here, since what trains the networks imports torch.
"""

FAMILIES = {"reordering": "reordering", "scan": "scan", "multi30k": "captions"}  # variants of one task


def family(task: str) -> str:
    """Return the family of a task, which is the task itself where it has no variants.

    >>> family("reordering_25"), family("multi30k_en_de"), family("one_to_one")
    ('reordering', 'captions', 'one_to_one')
    """
    return next((name for start, name in FAMILIES.items() if task.startswith(start)), task)
