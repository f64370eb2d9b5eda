"""The built site, served to a headless Chromium from which the rest of the network is cut off."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from workflows.pdf import CHROMIUM, served

ROOT = Path(__file__).resolve().parents[3]
HTML = ROOT / "build" / "_build" / "html"


def pytest_collection_modifyitems(items):
    for item in items:
        if {"html", "chromium"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


class EveryPageIsEnough:
    """Where every page is looked at, the few are among them and are not opened twice."""

    @staticmethod
    @pytest.hookimpl(trylast=True)  # once it is known which tests are wanted
    def pytest_collection_modifyitems(config, items):
        pages = {item: item.callspec.params.get("pages") for item in items if hasattr(item, "callspec")}
        few = [item for item, chosen in pages.items() if chosen == "few"]
        if few and "every" in pages.values():
            config.hook.pytest_deselected(items=few)
            items[:] = [item for item in items if item not in few]


def pytest_configure(config):
    config.pluginmanager.register(EveryPageIsEnough)


@pytest.fixture(scope="session")
def html() -> Path:
    if not (HTML / "index.html").is_file():
        pytest.fail(f"no site at {HTML}: run 'make book' first", pytrace=False)
    return HTML


# Pages that are unlike each other.
FEW = [
    "attend/temporal_share.html",
    "changelog.html",
    "index.html",
    "scorecard.html",
    "take_attention_apart.html",
]


@pytest.fixture(scope="session", params=["few", pytest.param("every", marks=pytest.mark.long)])
def pages(request, html: Path) -> list[str]:
    """Pages of the book, as paths below the site; search, index and code listings are not among them."""
    if request.param == "few":
        return FEW
    sources = (html / "_sources").rglob("*.*")
    return sorted(path.relative_to(html / "_sources").with_suffix(".html").as_posix() for path in sources)


@pytest.fixture(scope="session")
def address(html: Path) -> Iterator[str]:
    with served(html) as host:
        yield f"{host}/"


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium of the system; Playwright's own is never downloaded."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        pytest.fail("no chromium on the path: install Debian's package 'chromium'", pytrace=False)
    with sync_playwright() as playwright:
        # The network is cut: no name but that of this machine can be looked up.
        cut = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", cut])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    """``opened(path, width=800)`` is a page of a file, in a window of its own, which must not complain."""
    pages, complaints = [], []

    def opened(path: Path, address: str = "", *, width: int = 800, **options: object):
        pages.append(page := chromium.new_page(viewport={"width": width, "height": 900}, **options))
        page.on("dialog", lambda dialog: complaints.append(dialog.message) or dialog.dismiss())
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("request", lambda asked: asked.url.startswith("file:") or complaints.append(asked.url))
        page.on("requestfailed", lambda asked: complaints.append(asked.url))
        page.goto(path.as_uri() + address)
        return page

    yield opened
    assert complaints == []
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def visit(chromium, address: str):
    """``with visit(path, scheme="light", width=1280) as visited:`` has a page open, its formulas drawn.

    ``complaints`` has requests that would have left this machine, files of the site that are not there, and
    errors of scripts; ``bytes()`` is the size of all that the page asked for.
    """
    contexts: dict[tuple[str, int], object] = {}  # one each, so that scripts are read once

    @contextmanager
    def open_page(path: str, *, scheme: str = "light", width: int = 1280) -> Iterator[SimpleNamespace]:
        if (scheme, width) not in contexts:
            size = {"width": width, "height": 900}
            contexts[scheme, width] = chromium.new_context(viewport=size, color_scheme=scheme)
        page, complaints = contexts[scheme, width].new_page(), []
        sizes: dict[str, int] = {}

        def complain(of: object) -> None:
            complaints.append(f"{path}: {of}")

        def answered(response) -> None:
            sizes[response.url] = int(response.headers.get("content-length", 0))
            if response.status >= 400:
                complain(f"{response.status} {response.url}")

        allowed = (address, "data:", "blob:")
        page.on("request", lambda asked: asked.url.startswith(allowed) or complain(asked.url))
        page.on("pageerror", complain)
        # The text of a missing file does not name it; its answer does.
        page.on(
            "console",
            lambda message: message.type != "error" or "404" in message.text or complain(message.text),
        )
        page.on("response", answered)
        page.set_default_timeout(90_000)
        page.goto(address + path)
        page.evaluate("() => document.fonts.ready.then(() => true)")
        page.wait_for_timeout(100)
        yield SimpleNamespace(page=page, complaints=complaints, bytes=lambda: sum(sizes.values()))
        page.close()

    return open_page
