"""What a result still lacks, short enough for a sentence."""


def missing_in_words(missing: list[str], most: int = 3) -> str:
    """Up to some kinds of model with their numbers, as in ``scan AO: 3``; more than these as two counts."""
    if len(missing) <= most:
        return ", ".join(missing)
    models = sum(int(kind.rpartition(": ")[2]) for kind in missing)
    return f"{models} models of {len(missing)} kinds"
