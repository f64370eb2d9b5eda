"""From where on a network has learned. Without torch, so that notebooks that draw import it at no cost."""

LEARNED = 0.95  # of the words right, the least of a network that has learned a synthetic task
BAD = 0.6  # accuracy under which a single head's course ends on all data seeds (the authors' configuration)
ROUNDING = 1e-6  # by which a number in single precision may be below the limit that it is at
HALF = 0.5  # of the words to copy: from there on words are known, or attention is there


def enough(accuracy: float) -> bool:
    """Return True if an accuracy is what claims presuppose of a network that has learned its task.

    In single precision, as networks give it, 95 % is a hair less.

    >>> enough(0.95), enough(0.949999988), enough(0.9498)
    (True, True, False)
    """
    from companion.claims.presupposed import holds  # a bare node, which only measures, cannot read claims

    return holds("learned", token_accuracy=accuracy + ROUNDING)


def standing(accuracy: list[float]) -> str | None:
    """What a course alone makes of a head (Snell et al., 5.2): ``good``, ``bad``, or None for neither.

    >>> standing([0.1, 0.96, 0.5]), standing([0.1, 0.7, 0.5]), standing([0.1, 0.5, 0.7])
    ('good', 'bad', None)
    """
    if enough(max(accuracy)):
        return "good"
    return "bad" if accuracy[-1] < BAD else None
