"""Badges: whose claim a sentence rests on, what came out, and how it reads on a page."""

import re
from pathlib import Path

import pytest

from companion.book.prose import Book, PageHtml, filled
from companion.claims.verdicts import Verdict
from companion.claims.wording import outcome, source_label, source_of, whose
from tests.companion.book.book_builders import ROOT
from tests.companion.claims.claims_builders import save, write_paper

PAGE = "primer/source_reversal"
GAINS = {
    "id": "gains",
    "place": "Section 1",
    "says": "It gains <much>.",
    "experiment": "source_reversal",
    "keys": ["gain"],
    "judge": {"above": 0},
    "smallest_effect": {"value": 0.01, "because": "less would not be seen"},
    "profiles": ["paper"],
}
CLAIMS = (
    GAINS,
    GAINS | {"id": "inferred", "inferred_from": "a sentence of the paper"},
    GAINS | {"id": "reported", "reported_by": "a summary of the paper"},
    GAINS | {"id": "ours", "kind": "reading"},
    GAINS | {"id": "falsifier", "kind": "falsifier", "judge": {"below": 0}},
)
MOST_BADGES = 3  # of a page, in running text
NEGATION = re.compile(
    r"\b(not|no|nor|never|neither|none|nothing|nobody|nowhere|cannot)\b|n['’]t\b", re.IGNORECASE
)
SOURCE_NAMED = re.compile(r"\b(paper|primer|Aitken|Snell)\b|\bIt also calls\b")
PAGES = sorted([*(ROOT / "notebooks").rglob("*.md"), *(ROOT / "book").rglob("*.md")])


@pytest.fixture
def book(tmp_path):
    write_paper(tmp_path / "claims", *CLAIMS)
    save(tmp_path, {"gain": {"value": 0.25, "low": 0.24, "high": 0.26, "n": 5}}, "paper", "source_reversal")
    return Book(tmp_path)


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        pytest.param("{verdict}`gains = reproduced`", "paper ✓", id="a source's claim has a badge"),
        pytest.param("{verdict}`inferred = reproduced`", "paper, inferred ✓", id="an inferred one says so"),
        pytest.param("{verdict}`reported = reproduced`", "paper, reported ✓", id="so does a reported one"),
        pytest.param("{verdict}`ours = reproduced`", "0.25 [0.24, 0.26], n = 5", id="our own is a number"),
        pytest.param(
            "{verdict}`falsifier = not reproduced`", "0.25 [0.24, 0.26], n = 5", id="so is a falsifier"
        ),
        pytest.param("{evidence}`gains = reproduced`", "0.25 [0.24, 0.26], n = 5", id="a number if asked"),
    ],
)
def test_what_a_sentence_shows_follows_from_the_claims_file(book, mark, text):
    shown, wrong = filled(f"It gains {mark}.", book, PAGE)
    assert (shown.replace("\\", ""), wrong) == (f"It gains *({text})*.", [])


def test_a_checked_sentence_shows_nothing(book):
    assert filled("It gains\n{checked}`gains = reproduced`.", book, PAGE)[0] == "It gains."


def test_a_checked_sentence_is_checked(book):
    _, ((line, message),) = filled("It gains\n{checked}`gains = undecided`.", book, PAGE)
    assert line == 2
    assert "claim gains is `reproduced` today at the paper profile" in message


@pytest.mark.parametrize(
    ("low", "words"),
    [
        pytest.param(0.005, "too close to the threshold to tell", id="an interval without zero"),
        pytest.param(-0.005, "too few runs to tell", id="an interval with zero"),
    ],
)
def test_an_open_verdict_says_whether_there_is_an_effect(tmp_path, low, words):
    write_paper(tmp_path / "claims", GAINS)
    save(tmp_path, {"gain": {"value": 0.02, "low": low, "high": 0.04, "n": 5}}, "paper", "source_reversal")
    table, _ = filled("```{claims}\ngains\n```", Book(tmp_path), PAGE, PageHtml(PAGE))
    assert words in table


def test_the_cell_of_an_outcome_hides_nothing_that_only_a_mouse_finds(book):
    table, _ = filled("```{claims}\nours\n```", book, PAGE, PageHtml(PAGE))
    assert "title=" not in table


def test_the_note_of_a_borderline_verdict_says_so(book):
    form = PageHtml(PAGE, frozenset({"gains"}))
    filled("It gains {verdict}`gains = reproduced`.", book, PAGE, form)
    assert "<p>Borderline: it would not survive" in form.notes["note-gains"]


def test_a_badge_opens_its_note(book):
    form = PageHtml(PAGE)
    text, _ = filled("It gains {verdict}`gains = reproduced`.", book, PAGE, form)
    assert (
        '<button type="button" class="source-badge reproduced said" popovertarget="note-gains">paper ✓'
        in text
    )
    assert '<span class="visually-hidden">: reproduced</span></button>.' in text
    note = form.notes_html()
    assert '<div popover id="note-gains"' in note
    assert "<b>The paper says (Section 1):</b> It gains &lt;much&gt;." in note
    assert "<b>Reproduced</b>, paper profile. 0.250 [0.240, 0.260], n = 5" in note
    assert 'href="../scorecard.html#claim-gains"' in note


def test_notes_have_no_blank_line_between_them(book):
    """Markdown would end the block of HTML there."""
    form = PageHtml(PAGE)
    filled("{verdict}`gains = reproduced` {verdict}`ours = reproduced`", book, PAGE, form)
    assert "\n\n" not in form.notes_html().strip()


@pytest.mark.parametrize("verdict", [Verdict.REPRODUCED, Verdict.NOT_REPRODUCED])
def test_a_falsifier_is_neither_red_nor_green(book, verdict):
    claim = book.claim("falsifier")
    assert source_label(claim) == ""
    assert "reproduced" not in outcome(claim, verdict)


def test_an_inferred_statement_does_not_hold_here(book):
    assert outcome(book.claim("inferred"), Verdict.NOT_REPRODUCED) == "does not hold here"


def test_the_statement_of_a_source_is_not_reproduced(book):
    assert outcome(book.claim("gains"), Verdict.NOT_REPRODUCED) == "not reproduced"


def test_what_others_report_of_a_paper_is_quoted_as_theirs(book):
    claim = book.claim("reported")
    assert whose(claim) == "Reported of the paper by others (Section 1)"
    assert outcome(claim, Verdict.NOT_REPRODUCED) == "does not hold here"


# -- the pages of the book -----------------------------------------------------------------------------------


def badges_in_running_text(path: Path) -> list[tuple[str, str, str]]:
    """Claim, verdict and the words before it of each source badge in paragraphs and lists.

    The words begin with the sentence, or behind the last mark in it.
    """
    text = re.sub(
        r"(?ms)^```.*?^```$|^(:{3,})\{dropdown\}.*?^\1$|^\|.*?$", "", path.read_text(encoding="utf-8")
    )
    badges, last = [], 0
    for mark in re.finditer(
        r"\{(verdict|evidence|checked)\}`\s*([a-z0-9-]+)(?:@\w+)?\s*=\s*([a-z ]+?)\s*`", text
    ):
        before = text[last : mark.start()]
        last = mark.end()
        if mark[1] == "verdict" and source_of(BOOK.claim(mark[2])):
            badges.append((mark[2], mark[3], re.split(r"[.?!;]\*{0,2}\s|\n\n", before)[-1]))
    return badges


BOOK = Book(ROOT)
IDS = [path.relative_to(ROOT).as_posix() for path in PAGES]


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_a_page_has_at_most_three_badges_in_running_text(path):
    assert len(badges_in_running_text(path)) <= MOST_BADGES


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_no_badge_stands_behind_a_negation(path):
    behind = [claim for claim, _, words in badges_in_running_text(path) if NEGATION.search(words)]
    assert behind == []


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_before_a_badge_that_says_no_the_sentence_says_whose_claim_it_is(path):
    badges = badges_in_running_text(path)
    nameless = [
        claim
        for claim, verdict, words in badges
        if verdict == "not reproduced" and not SOURCE_NAMED.search(words)
    ]
    assert nameless == []
