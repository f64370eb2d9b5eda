"""The book as one PDF, printed by Chromium from the pages of the site: ``make pdf``.

Every page is opened once, so that its formulas are drawn. The articles become one document, in the order of
the table of contents, with folds open, links between pages, an outline and page numbers. Chromium prints it
in one go, so nothing has to be merged, and qpdf packs what it wrote. Playwright, which drives it, is what the
site's tests use.
"""

import functools
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pikepdf
from playwright.sync_api import sync_playwright
from sphinx_external_toc.parsing import parse_toc_data

from attnlib.errors import AttnlibError, BadInput
from attnlib.progress import following
from companion.book.markup import template
from companion.book.progress import last_seconds, note
from companion.book.project import current_project
from companion.book.site import table_of_contents

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
LEFT_OUT = ("api", "command_line", "changelog")  # reference of the code: for the screen
JOB = "pdf"  # the name of printing among the times of a build
WIDE = 658  # pixels between the margins of the paper
PAPER = {"format": "A4", "margin": {"top": "18mm", "bottom": "20mm", "left": "18mm", "right": "18mm"}}
FOOT = '<div style="font-size: 8px; width: 100%; text-align: center"><span class="pageNumber"></span></div>'


class Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open: a page asks for some thirty files

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class Patient(ThreadingHTTPServer):
    request_queue_size = 128  # the default of 5 loses connections on a busy machine


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server for a folder."""
    handler = functools.partial(Quiet, directory=str(folder))
    with Patient(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def printing_takes(build: Path) -> str:
    """How long Chromium prints, during which it says nothing: as last time, if it has printed before."""
    seconds = last_seconds(build).get(JOB)
    if seconds is None:
        return "printing, which takes some minutes"
    return f"printing, about {max(1, round(seconds / 60))} min left"


def print_book(pages: list[str], site: Path, out: Path) -> float:
    """Print some pages of a built site, given as paths below it, as one document.

    Returns the seconds in which Chromium printed. Raises BadInput: no site, or no Chromium.
    """
    if CHROMIUM is None or not (site / "index.html").is_file():
        way_out = "`make book` builds it; on Debian, apt install chromium"
        raise BadInput(f"a PDF needs the built site at {site} and Chromium on the path; {way_out}")
    collect = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDE, "height": 900})
        page.set_default_timeout(300_000)
        found = []
        with following(progress=True) as follower:
            after_page = follower.stage("pages", title="reading pages", n_batches=len(pages))
            for path in pages:
                page.goto(f"{address}/{path}")  # "networkidle" alone may come before a long page is read
                page.wait_for_load_state("networkidle")
                found.append(page.evaluate(collect, pages))
                after_page(len(found))
        print(printing_takes(site.parents[1]), file=sys.stderr, flush=True)
        began = time.monotonic()
        whole = template(Path(__file__).with_suffix(".html.jinja")).render(pages=found)
        page.goto(f"{address}/index.html")
        page.emulate_media(media="print", color_scheme="light")
        page.evaluate("html => { document.body.innerHTML = html; }", whole)
        page.evaluate("Promise.all([...document.images].map(image => image.decode().catch(() => 0)))")
        page.evaluate("wide => document.dispatchEvent(new CustomEvent('fit', { detail: wide }))", WIDE)
        out.parent.mkdir(parents=True, exist_ok=True)
        content = page.pdf(
            outline=True, tagged=True, print_background=True, display_header_footer=True,
            header_template="<span></span>", footer_template=FOOT, **PAPER,
        )  # fmt: skip
        browser.close()
    seconds = time.monotonic() - began
    with pikepdf.open(BytesIO(content)) as document:  # Chromium compresses no object but streams
        document.save(out, object_stream_mode=pikepdf.ObjectStreamMode.generate)
    return seconds


def main(out: Path) -> None:
    project = current_project()
    listed = parse_toc_data(table_of_contents(project.root))
    pages = [f"{page}.html" for page in listed if page.partition("/")[0] not in LEFT_OUT]
    note(project.build, JOB, print_book(pages, project.site.parent, out))
    print(out)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/book.pdf").resolve())
    except AttnlibError as error:
        raise SystemExit(f"error: {error}") from error
