"""Text and verdicts in the Markdown of generated pages."""

import re

from companion.claims.verdicts import Verdict


def plain(text: str) -> str:
    """Text that Markdown shows as it stands: on one line, with every mark that may mean something escaped."""
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>()#+!|$~^&@%])", r"\\\1", text)


def with_code(text: str) -> str:
    """Like `plain`, but what stands in backticks stays code (smart quotes would turn its -- into a dash)."""
    pieces = re.split(r"(`[^`|]+`)", " ".join(text.split()))
    return "".join(piece if piece.startswith("`") and len(piece) > 2 else _escaped(piece) for piece in pieces)


def badge(verdict: Verdict) -> str:
    """The verdict as the site's style sheet colours it."""
    return span(verdict.css_class, verdict.value)


def span(name: str, text: str) -> str:
    return f'<span class="verdict {name}">{text}</span>'
