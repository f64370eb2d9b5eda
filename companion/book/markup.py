"""Text and verdicts in the Markdown of generated pages, and the templates of these."""

import re
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path

import jinja2

from companion.claims.model import Claim
from companion.claims.verdicts import Judgement, Verdict
from companion.claims.wording import SIGNS, key_in_words, outcome, outcome_of, source_label, whose

MARKS = r"([\\`*_{}\[\]<>()#+!|$~^&@%])"  # which may mean something in Markdown


def plain(text: str) -> str:
    """Text that Markdown shows as it stands: on one line, with every mark escaped."""
    return re.sub(MARKS, r"\\\1", " ".join(text.split()))


def with_code(text: str) -> str:
    """Like `plain`, but what stands in backticks stays code (smart quotes would turn its -- into a dash)."""
    text = " ".join(text.split())
    return re.sub(rf"`[^`|]+`|{MARKS}", lambda match: rf"\{match[0]}" if match[1] else match[0], text)


def claim_tag(note: str, text: str, claim: Claim, verdict: Verdict, *, is_badge: bool) -> str:
    """Return the button that stands in a sentence and opens the note of a claim.

    A source badge shows a sign, and says the outcome in words to those who hear the page.
    An evidence tag is a number.
    """
    if not is_badge:
        return f'<button type="button" class="evidence-tag" popovertarget="{note}">{plain(text)}</button>'
    heard = f'<span class="visually-hidden">: {outcome(claim, verdict)}</span>'
    css = f"source-badge {verdict.css_class} {claim.origin}"
    return f'<button type="button" class="{css}" popovertarget="{note}">{plain(text)}{heard}</button>'


def outcome_tag(claim: Claim, verdict: Verdict, words: str = "") -> str:
    """Return what came out, for the cell of a table: a source badge with its words, or plain words."""
    words = words or outcome(claim, verdict)
    if not (source := source_label(claim)):
        return f'<span class="outcome">{words}</span>'
    css = f"source-badge {verdict.css_class} {claim.origin}"
    sign = SIGNS[verdict]
    seen = sign if len(sign) == 1 else ""
    return f'<span class="{css}">{" ".join(filter(None, [source, seen]))}</span> {words}'


def outcome_badge(claim: Claim, verdict: Verdict) -> str:
    """Return a source badge alone, for a cell that is short; its outcome is heard."""
    heard = f'<span class="visually-hidden">: {outcome(claim, verdict)}</span>'
    css = f"source-badge {verdict.css_class} {claim.origin}"
    return f'<span class="{css}">{source_label(claim)} {SIGNS[verdict]}{heard}</span>'


def claim_note(
    note: str,
    claim: Claim,
    judgement: Judgement,
    profile: str,
    scorecard: str,
    *,
    is_borderline: bool = False,
) -> str:
    """Return the note that a badge opens: whose claim it is, what it says, what came out, the numbers."""
    row = "numbers" if claim.number else claim.id  # printed numbers have one place
    label = source_label(claim)
    kind = "of-source" if label else "of-ours"
    lines = [f"<p><b>{escape(whose(claim))}:</b> {escape(claim.says)}</p>"]
    came_out = outcome_of(claim, judgement)
    at = f", {profile} profile" if profile else ""
    lines.append(f"<p><b>{came_out[0].upper()}{came_out[1:]}</b>{at}.{_numbers_of(judgement)}</p>")
    if is_borderline:
        lines.append("<p>Borderline: it would not survive a correction for the number of tests.</p>")
    if judgement.reason:
        lines.append(f"<p>{escape(judgement.reason).replace('`', '')}</p>")
    link = f'<a href="{scorecard}#claim-{row}">How it was judged</a>'
    return f'<div popover id="{note}" class="claim-note {kind}">{"".join(lines)}<p>{link}</p></div>'


def _numbers_of(judgement: Judgement, most: int = 8) -> str:
    numbers = [(key_in_words(label), str(estimate)) for label, estimate in judgement.evidence.items()]
    if len(numbers) == 1:
        return f" {escape(numbers[0][1])}"
    rows = "".join(f"<br>{escape(words)}: {escape(estimate)}" for words, estimate in numbers[:most])
    return f"{rows}<br>and {len(numbers) - most} more" if len(numbers) > most else rows


@cache
def template(path: Path, **filters: Callable) -> jinja2.Template:
    """A page to be filled, with the functions of this module and some of its own as filters."""
    pages = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.filters |= {
        "plain": plain,
        "with_code": with_code,
        "outcome_tag": outcome_tag,
        "outcome_badge": outcome_badge,
        **filters,
    }
    return pages.from_string(path.read_text(encoding="utf-8"))
