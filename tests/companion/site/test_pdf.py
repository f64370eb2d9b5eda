"""The book on paper: pages of the site become one packed document."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pikepdf
import pytest

from attnlib.errors import BadInput
from workflows import pdf
from workflows.pdf import print_book

COLLECT = Path(pdf.__file__).with_suffix(".js").read_text(encoding="utf-8")


@pytest.mark.slow
def test_pages_become_one_document_with_links_between_them(html, tmp_path):
    pages = ["index.html", "learn/optimal_attention.html", "notation.html"]
    with ThreadPoolExecutor(1) as thread:  # the browser of the other tests holds this one's event loop
        thread.submit(print_book, pages, html, tmp_path / "book.pdf").result()
    with pikepdf.open(tmp_path / "book.pdf") as found:
        assert len(found.pages) >= 8
        objects = [own.unparse(resolved=True) for own in found.objects]
    assert (tmp_path / "book.pdf").read_bytes().count(b" obj\n") < len(objects) / 2, "objects are packed"
    whole = b"\n".join(objects)
    assert b"/Outlines" in whole
    assert rb"and the lexical probe \(Snell A.1\)" in whole, "words of a heading of two lines are joined"
    assert b"/Dest /notation" in whole
    assert b"http://127.0.0.1" not in whole, "a link would lead to the server that printed it"


def test_what_is_folded_with_its_code_is_printed_without_the_code(visit):
    with visit("learn/optimal_attention.html") as visited:
        folds = visited.page.locator(".tag_hide-cell details").count()
        visited.page.evaluate(COLLECT, ["learn/optimal_attention.html"])  # the article is left as printed
        assert folds > 0
        assert visited.page.locator(".tag_hide-cell details .cell_output").count() == folds
        assert visited.page.locator(".bd-article .cell_input").count() == 0


def test_without_a_site_the_way_out_is_named(tmp_path):
    with pytest.raises(BadInput, match="make book"):
        print_book(["index.html"], tmp_path, tmp_path / "book.pdf")
