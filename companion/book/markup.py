"""Text and verdicts in the Markdown of generated pages, and the templates of these."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import jinja2

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


@cache
def template(path: Path, **filters: Callable) -> jinja2.Template:
    """A page to be filled, with the functions of this module and some of its own as filters."""
    pages = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.filters |= {"plain": plain, "badge": badge, "with_code": with_code, **filters}
    return pages.from_string(path.read_text(encoding="utf-8"))
