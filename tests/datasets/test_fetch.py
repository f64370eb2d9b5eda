import gzip
import hashlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from attnlib.datasets.base import Dataset, File
from attnlib.datasets.fetch import fetch
from attnlib.datasets.locate import locate
from attnlib.errors import BadInput, CorruptFile, DataUnavailable

CONTENT = b"un\ndeux\ntrois\n" * 100
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path == "/gone":
            self.send_error(404)
            return
        body = gzip.compress(CONTENT) if self.path.endswith(".gz") else CONTENT
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # A truncated answer: less than was promised, then the connection is closed.
        self.wfile.write(body[: len(body) // 2] if "truncated" in self.path else body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("ATTNLIB_DATA", raising=False)
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "toy"


def toy(server, *files):
    base = f"http://127.0.0.1:{server.server_port}/"
    return Dataset(
        "toy", "Toy", "toy", tuple(replace(file, url=file.url and base + file.url) for file in files), base,
        "none", "allowed", "A note.",
    )  # fmt: skip


@pytest.mark.parametrize(("url", "stored"), [("a.fr", "sub/a.fr"), ("a.fr.gz", "sub/a.fr.gz")])
def test_a_download_is_verified_stored_and_found(server, cache, url, stored):
    dataset = toy(server, File("sub/a.fr", SHA256, url))
    assert [status.state for status in fetch(dataset)] == ["ok"]
    assert locate(dataset, "sub/a.fr") == cache / stored
    assert [path.name for path in (cache / "sub").iterdir()] == [stored.removeprefix("sub/")]


def test_what_is_there_already_is_not_fetched_again(server, cache):
    dataset = toy(server, File("a.fr", SHA256, "a.fr"))
    fetch(dataset)
    fetch(dataset)
    assert server.asked == ["/a.fr"]


def test_a_wrong_checksum_keeps_the_old_file_and_names_both(server, cache):
    cache.mkdir(parents=True)
    (cache / "a.fr").write_bytes(b"old")
    dataset = toy(server, File("a.fr", "0" * 64, "a.fr"))
    with pytest.raises(CorruptFile, match=f"expected sha256 {'0' * 64} .*found {SHA256}"):
        fetch(dataset)
    assert [(path.name, path.read_bytes()) for path in cache.iterdir()] == [("a.fr", b"old")]


@pytest.mark.parametrize("url", ["truncated", "truncated.gz", "gone"])
def test_a_broken_download_keeps_the_old_file(server, cache, url):
    cache.mkdir(parents=True)
    (cache / "a.fr").write_bytes(b"old")
    dataset = toy(server, File("a.fr", SHA256, url))
    with pytest.raises(
        DataUnavailable, match=f"cannot download http://127.0.0.1:.*/{url}.*or set ATTNLIB_DATA"
    ):
        fetch(dataset)
    assert [(path.name, path.read_bytes()) for path in cache.iterdir()] == [("a.fr", b"old")]


@pytest.mark.parametrize("old", ["a.fr", "a.fr.gz"])
@pytest.mark.parametrize("url", ["a.fr", "a.fr.gz"])
def test_a_corrupt_file_is_replaced_by_a_good_download(server, cache, old, url):
    cache.mkdir(parents=True)
    (cache / old).write_bytes(b"old")
    dataset = toy(server, File("a.fr", SHA256, url))
    assert [status.state for status in fetch(dataset)] == ["ok"]
    assert [path.name for path in cache.iterdir()] == [url]


def test_files_that_cannot_be_verified_are_left_out(server, cache):
    dataset = toy(
        server, File("a.fr", SHA256, "a.fr"), File("b.fr", None, "b.fr"), File("c.fr", SHA256, None)
    )
    assert [status.state for status in fetch(dataset)] == ["ok", "missing", "missing"]
    assert server.asked == ["/a.fr"]


def test_a_data_set_that_cannot_be_fetched_names_the_page_to_visit(server, cache):
    dataset = toy(server, File("b.fr", None, "b.fr"))
    with pytest.raises(DataUnavailable, match=r"A note\. Visit http://127.0.0.1:.* put the files into .*toy"):
        fetch(dataset)
    assert server.asked == []


def test_a_cache_that_cannot_be_written_is_named(server, tmp_path, monkeypatch):
    monkeypatch.delenv("ATTNLIB_DATA", raising=False)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "file"))
    with pytest.raises(BadInput, match=r"cannot write .*file/toy/a\.fr"):
        fetch(toy(server, File("a.fr", SHA256, "a.fr")))
