"""The book in a browser without a network: quiet, legible, searchable, and whole; and on paper.

Opening a page is what takes time, so every page is opened once in each of three ways for all tests.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pikepdf
import pytest

from attnlib.errors import BadInput
from companion.book.progress import note
from companion.book.project import audit_of
from tests.tables import beside
from workflows import pdf
from workflows.pdf import print_book

WAYS = {
    "light": {"scheme": "light", "width": 1280},
    "dark": {"scheme": "dark", "width": 1280},
    "narrow": {"scheme": "light", "width": 390},
}
HERE = Path(__file__).parent
LOOKS, CUT = ((HERE / f"{name}.js").read_text(encoding="utf-8") for name in ("looks", "cut"))
AXE = (HERE / "axe" / "axe.min.js").read_text(encoding="utf-8")  # npm's axe-core, unchanged
# What passes is not described, which would take as long as finding what does not.
VIOLATIONS = """async options => {
  const found = await axe.run({resultTypes: ["violations"], ...options});
  return found.violations.map(
    rule => [rule.impact, rule.id, rule.nodes.length, rule.nodes[0].html.slice(0, 200)]);
}"""
OF_COLOURS = ["color-contrast", "link-in-text-block"]  # axe's other rules say the same in either scheme
QUESTIONS = beside(__file__, "questions")


@pytest.fixture(scope="session")
def seen(visit, pages) -> dict[tuple[str, str], dict]:
    """What each page looks like in each way of opening it."""
    result = {}
    for way, options in WAYS.items():
        for path in pages:
            with visit(path, **options) as visited:
                looks = visited.page.evaluate(LOOKS)
                looks |= {"complaints": visited.complaints, "bytes": visited.bytes()}
                if way != "narrow":
                    visited.page.evaluate(AXE)
                    rules = {"runOnly": OF_COLOURS} if way == "dark" else {}
                    looks["axe"] = visited.page.evaluate(VIOLATIONS, rules)
                if way == "light":
                    looks["cut"] = visited.page.evaluate(CUT)
                result[way, path] = looks
    return result


FAULTS = {  # of a page in one way of opening it; nothing where there is none
    "a request or a complaint": lambda way, page: page["complaints"],
    "what axe finds": lambda way, page: page.get("axe"),
    "a table or a line to type cut at 1280 pixels": lambda way, page: page.get("cut"),
    "something that moves while it opens": lambda way, page: page["shifts"] > 0.1,
    "more than three megabytes": lambda way, page: page["bytes"] > 3e6,
    "faint text": lambda way, page: way != "narrow" and [text for text in page["contrast"] if text[0] < 4.5],
    "the other theme": lambda way, page: page["theme"] != WAYS[way]["scheme"],
    "what sticks out of a narrow window": lambda way, page: way == "narrow" and page["sticksOut"],
    "a narrow window that scrolls sideways": lambda way, page: way == "narrow" and page["pageWidth"] > 390,
}


BROKEN = """<!doctype html><html lang="en"><title>x</title><main><h1>x</h1><img src="data:,">
<p style="color: #ccc; background: #fff">faint <a href="x" style="color: #bbb">link</a></p></main>"""


@pytest.mark.parametrize(("options", "rules"), [({}, {"image-alt"}), ({"runOnly": OF_COLOURS}, set())])
def test_axe_finds_what_is_wrong(chromium, options, rules):
    page = chromium.new_page()
    page.set_content(BROKEN)
    page.evaluate(AXE)
    violated = {rule for _, rule, *_ in page.evaluate(VIOLATIONS, options)}
    page.close()
    assert violated == {"color-contrast", *rules}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_page_has(seen, fault):
    faults = {place: FAULTS[fault](place[0], page) for place, page in seen.items()}
    assert {place: wrong for place, wrong in faults.items() if wrong} == {}


def test_a_request_that_would_leave_goes_nowhere(visit):
    with visit("index.html") as visited:
        reached = visited.page.evaluate("fetch('https://example.org/').then(() => true, () => false)")
        assert not reached


def test_a_request_that_would_leave_is_seen(visit):
    with visit("index.html") as visited:
        visited.page.evaluate("fetch('https://example.org/').then(() => true, () => false)")
        assert "index.html: https://example.org/" in visited.complaints


def has_formulas(path):
    return re.search(r'class="[^"]*\bmath\b', path.read_text(encoding="utf-8")) is not None


def test_every_formula_is_drawn(seen, html, pages):
    for path in pages:
        if path != "chapter_audits.html" and has_formulas(html / path):
            formulas = seen["light", path]["math"]
            assert formulas["drawn"] > 0, path
            assert (formulas["undrawn"], formulas["broken"]) == (0, []), path
            assert seen["narrow", path]["math"]["wide"] == [], path


def test_only_pages_with_formulas_have_katex(html, pages):
    """Sphinx gives the list of audits what the pages below it in the contents need."""
    with_katex = [path for path in pages if "katex.min.js" in (html / path).read_text(encoding="utf-8")]
    with_formulas = [path for path in pages if has_formulas(html / path)]
    assert set(with_katex) - {"chapter_audits.html"} == set(with_formulas) - {"chapter_audits.html"}
    assert "index.html" in with_formulas
    assert len(with_formulas) < len(pages)


@pytest.mark.parametrize(("question", "page"), QUESTIONS.items())
def test_search_leads_to_the_right_page_first(visit, question, page):
    with visit(f"search.html?q={quote(question)}") as visited:
        first = visited.page.wait_for_selector("#search-results li a")
        assert first.get_attribute("href").partition("?")[0].partition("#")[0] == f"{page}.html"
        assert visited.complaints == []


def test_the_site_is_light(html):
    assert sum(path.stat().st_size for path in html.rglob("*") if path.is_file()) <= 60e6
    drawn = {path.read_bytes() for path in (html / "_static" / "figures").rglob("*.svg")}
    copies = [path.name for path in (html / "_images").glob("*.svg") if path.read_bytes() in drawn]
    assert copies == [], "a figure is a file of the site once"
    assert "image/svg+xml" not in (html / "_sources" / "attend" / "temporal_share.ipynb").read_text("utf-8")


def test_every_control_shows_that_the_keyboard_is_on_it(visit):
    with visit("attend/temporal_share.html") as visited:
        shown = {}
        for _ in range(120):
            visited.page.keyboard.press("Tab")
            name, outline = visited.page.evaluate(
                """() => { const e = document.activeElement, s = getComputedStyle(e);
                return [e.title || e.ariaLabel || e.textContent.trim(), s.outlineStyle + s.boxShadow]; }"""
            )
            shown[name] = outline
        for control in ("Toggle primary sidebar", "Search", "Download this page", "Fullscreen mode"):
            assert any(control in name for name in shown), (control, list(shown))
        assert [name for name, outline in shown.items() if outline == "nonenone"] == []


def test_a_word_of_the_glossary_shows_its_meaning(visit):
    with visit("attend/temporal_share.html") as visited:
        link = visited.page.locator("a.term").first
        meaning = link.get_attribute("data-meaning")
        assert link.get_attribute("href").startswith("../notation.html#term-")
        link.focus()
        shown = link.evaluate("e => getComputedStyle(e, '::after').content")
        assert meaning in shown.replace("\\", "")


BADGE = "button.source-badge"
OPEN = ".claim-note:popover-open"


def test_a_badge_opens_its_note_by_keyboard(visit):
    with visit("attend/temporal_share.html") as visited:
        visited.page.locator(BADGE).first.focus()
        visited.page.keyboard.press("Enter")
        assert "Inferred from the paper" in visited.page.locator(OPEN).inner_text()


def test_escape_closes_the_note_of_a_badge(visit):
    with visit("attend/temporal_share.html") as visited:
        visited.page.locator(BADGE).first.focus()
        visited.page.keyboard.press("Enter")
        visited.page.keyboard.press("Escape")
        assert visited.page.locator(OPEN).count() == 0


def test_a_tap_opens_the_note_of_a_badge_within_the_window(chromium, address):
    context = chromium.new_context(viewport={"width": 390, "height": 800}, has_touch=True)
    page = context.new_page()
    page.goto(f"{address}attend/temporal_share.html")
    page.locator(BADGE).first.tap()
    box = page.locator(OPEN).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    context.close()


def test_the_note_of_a_badge_opens_without_scripts(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}attend/temporal_share.html")
    page.locator(BADGE).first.click()
    assert page.locator(".claim-note").first.is_visible()
    context.close()


def test_a_pointer_that_rests_on_a_badge_opens_its_note(visit):
    with visit("attend/temporal_share.html") as visited:
        visited.page.locator(BADGE).first.hover()
        visited.page.wait_for_selector(OPEN)
        visited.page.mouse.move(5, 5)
        visited.page.wait_for_selector(OPEN, state="hidden")


def test_on_paper_the_notes_of_badges_are_below_the_page(visit):
    with visit("attend/temporal_share.html") as visited:
        visited.page.emulate_media(media="print")
        assert visited.page.locator(".claim-note.of-source").first.is_visible()
        assert not visited.page.locator(".claim-note.of-ours").first.is_visible()


def test_the_list_of_pages_shows_where_one_is(visit, address):
    with visit("index.html") as visited:
        for path in ("attend/temporal_share.html", "learn/agreement.html"):
            visited.page.goto(address + path)
            visited.page.wait_for_timeout(200)
            current = visited.page.locator(".bd-sidebar-primary li.current.active > a").first.bounding_box()
            assert 0 <= current["y"] <= 880, path


def test_every_image_is_there(seen, pages):
    for path in pages:
        for image in seen["dark", path]["images"]:
            assert image["width"] > 0, (path, image)


def test_every_image_says_what_it_shows(seen, pages):
    for path in pages:
        for image in seen["dark", path]["images"]:
            # Sphinx takes the address for the text where none is given.
            assert image["alt"], (path, image)
            assert Path(image["source"]).name not in image["alt"], (path, image)


def test_figures_follow_the_dark_of_their_page(seen, pages):
    drawn = [
        (path, image)
        for path in pages
        for image in seen["dark", path]["images"]
        if image["inText"] and image["source"].endswith(".svg")
    ]
    assert drawn
    for path, image in drawn:
        shown = (image["scheme"], image["ground"], image["filter"])
        assert shown == ("dark", "rgba(0, 0, 0, 0)", "none"), (path, image)


def test_pictures_of_pixels_keep_a_white_ground_in_the_dark(seen, pages):
    for path in pages:
        for image in seen["dark", path]["images"]:
            if image["inText"] and not image["source"].endswith(".svg"):
                assert (image["ground"], image["filter"]) == ("rgb(255, 255, 255)", "none"), (path, image)


def test_figures_are_light_on_a_light_page(seen, pages):
    schemes = {
        image["scheme"] for path in pages for image in seen["light", path]["images"] if image["inText"]
    }
    assert schemes == {"light"}


def test_every_figure_that_a_page_offers_is_shown_on_it_or_on_its_audit(html, pages):
    for path in pages:
        text = (html / path).read_text(encoding="utf-8")
        offered = re.findall(r'href="[^"]*/([^"/]+)\.svg" download', text)
        audit = html / f"{audit_of(path.removesuffix('.html'))}.html"
        both = text + (audit.read_text(encoding="utf-8") if audit.is_file() else "")
        shown = re.findall(r'<figure class="align-default" id="([^"]+)"', both)
        if "how to rerun this page" in text:
            assert len(offered) == len(shown), (path, offered, shown)


def test_no_description_of_an_attribute_is_taken_for_its_type(html):
    text = "".join(path.read_text(encoding="utf-8") for path in (html / "api").glob("*.html"))
    assert 'Raises<span class="colon"' in text
    assert 'Type<span class="colon"' not in text


def test_every_page_has_a_title_with_a_description_for_other_sites(html, pages):
    wrong = []
    for page in pages:
        text = (html / page).read_text(encoding="utf-8")
        shown = dict(re.findall(r'<meta property="og:(title|description)" content="([^"]*)"', text))
        if not shown["title"] or not shown["description"] or re.search("[✓✗]", shown["description"]):
            wrong.append((page, shown))
    assert wrong == []


def test_every_page_has_a_picture_for_other_sites(html, pages):
    wrong = []
    for page in pages:
        text = (html / page).read_text(encoding="utf-8")
        shown = dict(re.findall(r'<meta property="og:(image)" content="([^"]*)"', text))
        picture = ((html / page).parent / shown["image"]).resolve()
        if picture.suffix != ".png" or not picture.is_file():
            wrong.append((page, shown["image"]))
    assert wrong == []


def test_links_inside_the_site_resolve(html, pages):
    texts = {
        path: path.read_text(encoding="utf-8") for path in html.rglob("*.html") if "_static" not in path.parts
    }
    names = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    broken = []
    for path in (html / page for page in pages):
        for link in re.findall(r'<(?:a|link)\b[^>]*\bhref="([^"]+)"', texts[path]):
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            goal = (path.parent / target.partition("?")[0]).resolve() if target else path
            if not goal.is_file() or (anchor and goal in names and anchor not in names[goal]):
                broken.append((path.relative_to(html).as_posix(), link))
    assert broken == []


def test_in_a_narrow_window_wide_figures_scroll_by_keyboard(seen, pages):
    for path in pages:
        for figure in seen["narrow", path]["figures"]:
            assert figure["shown"] >= 0.745 * figure["natural"] - 1, (path, figure)
            assert figure["stop"] == figure["scrolls"], (path, figure)
            assert figure["caption"] <= 390, (path, figure)
        wide = [figure for figure in seen["light", path]["figures"] if figure["scrolls"] or figure["stop"]]
        assert wide == [], path
    assert any(seen["narrow", path]["figures"] for path in pages)


def test_a_figure_says_that_it_scrolls_where_it_does(seen, pages):
    for path in pages:
        for figure in seen["narrow", path]["figures"]:
            assert ("Scrolls sideways" in figure["hint"]) == figure["scrolls"], (path, figure)


FIGURE = """<!doctype html><html lang="en"><title>x</title><style>{css}</style><main class="bd-article">
<figure><img alt="x" width="{width}" height="200" style="--natural: {width}px" src="data:image/svg+xml,%3Csvg
xmlns='http://www.w3.org/2000/svg' width='{width}' height='200'/%3E"><figcaption>x</figcaption></figure>
</main></html>"""


@pytest.mark.parametrize(
    ("inches", "shown"), [(3, 288), (5, 358), (8.6, 615)], ids=["small", "narrow", "wide"]
)
def test_on_a_telephone_a_figure_shrinks_as_far_as_its_letters_allow(chromium, inches, shown):
    css = Path(__file__).parents[3].joinpath("book/_static/attnlib.css").read_text(encoding="utf-8")
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.set_content(FIGURE.format(css=f"main {{ width: 358px; }} {css}", width=round(96 * inches)))
    width = page.evaluate("document.querySelector('img').getBoundingClientRect().width")
    page.close()
    assert width == pytest.approx(shown, abs=1)


DRAWING = """<!doctype html><html lang="en"><title>x</title><style>{css}</style><main class="bd-article">
<figure style="width: 100px"><figcaption><p>x<a class="headerlink" style="margin-left: 99px" href="#x">#</a>
</p></figcaption></figure></main></html>"""


def test_on_a_telephone_no_figure_scrolls_for_the_mark_that_links_to_its_caption(chromium):
    css = Path(__file__).parents[3].joinpath("book/_static/attnlib.css").read_text(encoding="utf-8")
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    page.set_content(DRAWING.format(css=css))
    scrolled, wide = page.evaluate("(f => [f.scrollWidth, f.clientWidth])(document.querySelector('figure'))")
    page.close()
    assert scrolled == wide


THEME_AFTER = """event => {
  if (event) dispatchEvent(new Event(event));
  return document.documentElement.dataset.theme;
}"""


def test_a_dark_page_is_dark_again_once_it_was_printed_light(visit):
    with visit("attend/temporal_share.html", scheme="dark") as visited:
        themes = [visited.page.evaluate(THEME_AFTER, event) for event in ("", "beforeprint", "afterprint")]
    assert themes == ["dark", "light", "dark"]


# -- on paper: pages of the site become one packed document --------------------------------------------------

COLLECT = Path(pdf.__file__).with_suffix(".js").read_text(encoding="utf-8")


@pytest.mark.slow
def test_pages_become_one_document_with_links_between_them(html, tmp_path):
    pages = ["index.html", "learn/optimal_attention.html", "notation.html"]
    with ThreadPoolExecutor(1) as thread:  # the browser of the other tests holds this one's event loop
        thread.submit(print_book, pages, html, tmp_path / "book.pdf").result()
    with pikepdf.open(tmp_path / "book.pdf") as document:
        assert len(document.pages) >= 8
        objects = [entry.unparse(resolved=True) for entry in document.objects]
    assert (tmp_path / "book.pdf").read_bytes().count(b" obj\n") < len(objects) / 2, "objects are packed"
    whole = b"\n".join(objects)
    assert b"/Outlines" in whole
    assert b"attention and the lexical probe" in whole, "words of a heading of two lines are joined"
    assert b"/Dest /notation" in whole
    assert b"http://127.0.0.1" not in whole, "a link would lead to the server that printed it"


@pytest.mark.slow
def test_no_shadow_is_printed_as_a_picture(html, tmp_path):
    """Each would be as large as its page; hundreds of them made the PDF of the book twice as large."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(print_book, ["attend/temporal_share.html"], html, tmp_path / "page.pdf").result()
    with pikepdf.open(tmp_path / "page.pdf") as document:
        sizes = [pixels(thing) for thing in document.objects if is_picture(thing)]
    assert [size for size in sizes if size > PIXELS_OF_A_PAGE] == []


PIXELS_OF_A_PAGE = 1_000_000  # at the 300 dots an inch of Chromium's masks a page has five times as many


def is_picture(thing: pikepdf.Object) -> bool:
    return isinstance(thing, pikepdf.Stream) and thing.get("/Subtype") == "/Image"


def pixels(picture: pikepdf.Stream) -> int:
    return int(picture.Width) * int(picture.Height)


def test_what_is_folded_with_its_code_is_printed_without_the_code(visit):
    with visit("learn/optimal_attention_audit.html") as visited:
        folds = visited.page.locator(".tag_hide-cell details").count()
        visited.page.evaluate(COLLECT, ["learn/optimal_attention_audit.html"])  # leaves it as printed
        assert folds > 0
        assert visited.page.locator(".tag_hide-cell details .cell_output").count() == folds
        assert visited.page.locator(".bd-article .cell_input").count() == 0


def test_printing_says_how_long_it_took_last_time(tmp_path):
    assert pdf.printing_takes(tmp_path) == "printing, which takes some minutes"
    note(tmp_path, pdf.JOB, 185.0)
    assert pdf.printing_takes(tmp_path) == "printing, about 3 min left"


def test_without_a_site_the_way_out_is_named(tmp_path):
    with pytest.raises(BadInput, match="make book"):
        print_book(["index.html"], tmp_path, tmp_path / "book.pdf")
