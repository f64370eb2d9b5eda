"""The built site, served to a headless Chromium from which the rest of the network is cut off."""

import functools
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "build" / "_build" / "html"


@pytest.fixture(scope="session")
def html() -> Path:
    """Folder of the built site."""
    if not (HTML / "index.html").is_file():
        pytest.fail(f"no site at {HTML}: run 'make book' first", pytrace=False)
    return HTML


@pytest.fixture(scope="session")
def pages(html: Path) -> list[str]:
    """Every page of the book, as paths below the site; search, index and code listings are not among them."""
    sources = (html / "_sources").rglob("*")
    found = sorted(
        path.relative_to(html / "_sources").with_suffix(".html").as_posix()
        for path in sources
        if path.is_file()
    )
    assert "index.html" in found
    return found


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="session")
def address(html: Path) -> Iterator[str]:
    """Address of a server for the site, with a slash at the end."""
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_QuietHandler, directory=str(html))
    ) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium of the system; Playwright's own is never downloaded."""
    from playwright.sync_api import sync_playwright

    executable = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if executable is None:
        pytest.fail("no chromium on the path: install Debian's package 'chromium'", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Visit:
    """A page open in the browser, and what went wrong on the way."""

    page: object
    refused: list[str] = field(default_factory=list)  # requests that would have left this machine
    failed: list[str] = field(default_factory=list)  # files of the site that are not there
    errors: list[str] = field(default_factory=list)  # console errors and uncaught exceptions

    @property
    def complaints(self) -> list[str]:
        return self.refused + self.failed + self.errors


@pytest.fixture(scope="session")
def visit(chromium, address: str):
    """``with visit(path, scheme="light", width=1280) as visited:`` has a page open, its formulas drawn."""

    @contextmanager
    def open_page(path: str, *, scheme: str = "light", width: int = 1280) -> Iterator[Visit]:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        visited = Visit(context.new_page())

        def gate(route) -> None:
            url = route.request.url
            if url.startswith((address, "data:", "blob:")):
                route.continue_()
            else:
                visited.refused.append(url)
                route.abort()

        def heard(message) -> None:
            # The text of a missing file does not name it; `failed` does.
            if message.type == "error" and "404" not in message.text:
                visited.errors.append(f"{path}: {message.text}")

        def answered(response) -> None:
            if response.status >= 400:
                visited.failed.append(f"{path}: {response.status} {response.url}")

        context.route("**/*", gate)
        visited.page.on("pageerror", lambda error: visited.errors.append(f"{path}: {error}"))
        visited.page.on("console", heard)
        visited.page.on("response", answered)
        visited.page.goto(address + path)
        visited.page.evaluate("() => window.MathJax?.startup?.promise")
        visited.page.wait_for_timeout(100)
        yield visited
        context.close()

    return open_page
