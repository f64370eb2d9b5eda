"""The book on paper: pages of the site become one document, packed without a loss."""

import re
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attnlib.errors import BadInput
from workflows import pdf
from workflows.pack import packed
from workflows.pdf import print_book

COLLECT = Path(pdf.__file__).with_suffix(".js").read_text(encoding="utf-8")
STREAM = re.compile(rb"<<(.*?)>>\nstream\n(.*?)\nendstream", re.DOTALL)


def objects_of(content: bytes) -> dict[int, bytes]:
    """Every object of a packed document, found by its table alone."""
    start = int(content[content.rindex(b"startxref") + 9 :].split()[0])
    table = zlib.decompress(STREAM.search(content, start)[2])
    found = {}
    for number, (kind, place, index) in enumerate(struct.iter_unpack(">BIH", table)):
        if kind == 1:
            assert content[place:].startswith(b"%d 0 obj\n" % number)
            found[number] = content[place : content.index(b"endobj", place)]
        elif kind == 2:
            about, data = STREAM.search(content, struct.unpack_from(">BIH", table, 7 * place)[1]).groups()
            inside, first = zlib.decompress(data), int(re.search(rb"/First (\d+)", about)[1])
            own, offset = (int(each) for each in inside[:first].split()[2 * index : 2 * index + 2])
            assert own == number
            found[number] = inside[first + offset :]
    return found


def test_packing_keeps_every_object_and_drops_what_is_there_twice():
    data = zlib.compress(b"0 0 m " * 50)
    picture = b"<</Filter /FlateDecode /Length %d>>\nstream\n%b\nendstream" % (len(data), data)
    bodies = [b"<</Type /Catalog /Pages 2 0 R>>", b"<</Kids [3 0 R 4 0 R]>>", picture, picture]
    content, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(bodies, 1):
        places.append(len(content))
        content += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(content)
    content += b"xref\n0 5\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % at for at in places)
    content += b"trailer\n<</Size 5\n/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % start
    found = objects_of(packed(bytes(content)))
    assert found[1].startswith(bodies[0])
    assert found[2].startswith(b"<</Kids [3 0 R 3 0 R]>>")
    assert [number for number, body in found.items() if picture in body] == [3]


@pytest.mark.slow
def test_pages_become_one_document_with_links_between_them(html, tmp_path):
    pages = ["index.html", "learn/optimal_attention.html", "notation.html"]
    with ThreadPoolExecutor(1) as thread:  # the browser of the other tests holds this one's event loop
        thread.submit(print_book, pages, html, tmp_path / "book.pdf").result()
    found = objects_of((tmp_path / "book.pdf").read_bytes())
    whole = b"\n".join(found.values())
    assert whole.count(b"/Type /Page\n") >= 8
    assert b"/Outlines" in whole
    assert rb"and the lexical probe \(Snell A.1\)" in whole, "words of a heading of two lines are joined"
    assert b"/Dest /notation" in whole
    assert b"http://127.0.0.1" not in whole, "a link would lead to the server that printed it"


def test_what_is_folded_with_its_code_is_printed_without_the_code(visit):
    with visit("learn/optimal_attention.html") as visited:
        folds = visited.page.locator(".tag_hide-cell details").count()
        visited.page.evaluate(
            COLLECT, ["learn/optimal_attention.html"]
        )  # the article is left as it is printed
        assert folds > 0
        assert visited.page.locator(".tag_hide-cell details .cell_output").count() == folds
        assert visited.page.locator(".bd-article .cell_input").count() == 0


def test_without_a_site_the_way_out_is_named(tmp_path):
    with pytest.raises(BadInput, match="make book"):
        print_book(["index.html"], tmp_path, tmp_path / "book.pdf")
