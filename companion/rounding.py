"""How many digits of a number are kept."""

DIGITS = 7  # significant digits: more than a finding needs, and the same on processors that round apart


def rounded(content: object, *, decimals: int | None = None) -> object:
    """Round every float of a content that is plain JSON.

    >>> rounded({"loss": [0.123456789, float("nan")], "steps": 12})
    {'loss': [0.1234568, None], 'steps': 12}
    >>> rounded([12.3456], decimals=2)
    [12.35]

    Args:
        content: dictionaries, lists and tuples of numbers and other values.
        decimals: digits to keep after the point; by default :data:`DIGITS` significant digits are kept.

    Returns:
        The same content, names as text, tuples as lists, and None for NaN.
    """
    if isinstance(content, float):
        if content != content:
            return None
        if decimals is not None:
            return round(content, decimals)
        return float(f"{content:.{DIGITS}g}")
    if isinstance(content, dict):
        return {str(name): rounded(value, decimals=decimals) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value, decimals=decimals) for value in content]
    return content
