"""The digits of a number that are kept."""

DIGITS = 7  # significant digits: more than any claim needs, fewer than bytes to review


def rounded(content: object) -> object:
    """The same content with every float rounded to :data:`DIGITS` significant digits; NaN becomes null."""
    if isinstance(content, float):
        return None if content != content else float(f"{content:.{DIGITS}g}")
    if isinstance(content, dict):
        return {str(name): rounded(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [rounded(value) for value in content]
    return content
