"""Text and verdicts in the Markdown of generated pages."""

import re

from companion.claims.verdicts import Verdict

MARKS = r"([\\`*_{}\[\]<>()#+!|$~^&@%])"  # which may mean something in Markdown


def plain(text: str) -> str:
    """Text that Markdown shows as it stands: on one line, with every mark escaped."""
    return re.sub(MARKS, r"\\\1", " ".join(text.split()))


def with_code(text: str) -> str:
    """Like `plain`, but what stands in backticks stays code (smart quotes would turn its -- into a dash)."""
    text = " ".join(text.split())
    return re.sub(rf"`[^`|]+`|{MARKS}", lambda found: rf"\{found[0]}" if found[1] else found[0], text)


def badge(verdict: Verdict) -> str:
    """The verdict as the site's style sheet colours it."""
    return span(verdict.css_class, verdict.value)


def span(name: str, text: str) -> str:
    return f'<span class="verdict {name}">{text}</span>'
