"""Published data sets are found, checked, downloaded and read; what is wrong with a file is said."""

import gzip
import hashlib
import re
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from attnlib.errors import BadInput, CorruptFile, DataUnavailable
from companion.book.download_bar import DownloadBar
from companion.data import sources
from companion.data.sources import Dataset, File, check, dataset, fetch, locate
from companion.data.text import read_lines
from tests.attnlib.refusals import assert_refused
from tests.companion.data.data_builders import put
from tests.tables import beside

CONTENT = b"un\ndeux\ntrois\n" * 100
SHA256 = hashlib.sha256(CONTENT).hexdigest()
HOME = "http://127.0.0.1:9/"
FILES = (File("sub/a.fr", SHA256, HOME + "a.fr"), File("free.tsv", None, HOME + "free"))
TOY = Dataset("toy", "Toy", "toy_files", FILES, HOME, "none", "allowed", "A note.")


def states(statuses):
    return [status.state for status in statuses]


@pytest.mark.parametrize("name", sources.names())
def test_entries_are_complete(name):
    data = dataset(name)
    assert data.name == name
    assert data.redistribution in ("allowed", "forbidden", "unclear")
    assert [file.name for file in data.files] == sorted({file.name for file in data.files}) != []
    for file in data.files:
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
        if file.url:
            assert file.name.rsplit("/")[-1] in file.url
            assert "/master/" not in file.url  # an address that moves cannot have a checksum
            assert "{" not in file.url
        # A file without address or checksum must be explained.
        assert file.fetchable or data.note
    # Text that may not be passed on is not fetched from someone's copy.
    assert data.redistribution != "forbidden" or not any(file.fetchable for file in data.files)


@pytest.mark.parametrize("name", sources.names())
def test_no_file_at_hand_is_corrupt(name):
    statuses = check(dataset(name))
    if all(status.state == "missing" for status in statuses):
        pytest.skip(f"data: no file of {name} here")
    assert not [status.detail for status in statuses if status.state == "corrupt"]


@pytest.fixture
def places(tmp_path, monkeypatch):
    """The folder of the data set in the mirror and in the cache, both empty."""
    mirror, cache = tmp_path / "mirror", tmp_path / "cache"
    for root in (mirror, cache):
        (root / "toy_files" / "sub").mkdir(parents=True)
    monkeypatch.setenv("ATTNLIB_DATA", str(mirror))
    monkeypatch.setenv("ATTNLIB_CACHE", str(cache))
    return mirror / "toy_files", cache / "toy_files"


@pytest.mark.parametrize("place", [0, 1], ids=["mirror", "cache"])
@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress)], ids=["plain", "gzip"])
def test_a_file_is_found_plain_or_compressed_in_mirror_or_cache(places, place, suffix, pack):
    path = places[place] / f"sub/a.fr{suffix}"
    path.write_bytes(pack(CONTENT))
    assert locate(TOY, "sub/a.fr") == path
    assert states(check(TOY)) == ["ok", "missing"]


def test_the_mirror_comes_before_the_cache(places):
    for place in places:
        (place / "sub/a.fr").write_bytes(CONTENT)
    assert locate(TOY, "sub/a.fr") == places[0] / "sub/a.fr"


def test_a_packed_file_stands_for_what_is_in_it(places):
    put(places[0], {"free.tsv.gz": b"anything"})
    assert locate(TOY, "free.tsv") == places[0] / "free.tsv.gz"


def test_a_file_without_a_known_checksum_is_called_so(places):
    (places[0] / "sub/a.fr").write_bytes(CONTENT)
    put(places[0], {"free.tsv.gz": b"anything"})
    assert states(check(TOY)) == ["ok", "no checksum known"]


@pytest.mark.parametrize(
    ("look_up", "message"),
    [
        pytest.param(
            partial(dataset, "multi3k"), "no data set 'multi3k'; did you mean 'multi30k'", id="a_set"
        ),
        pytest.param(
            partial(locate, TOY, "sub/a.f"),
            "no file of data set toy 'sub/a.f'; did you mean 'sub/a.fr'",
            id="a_file",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(look_up, message):
    assert_refused(look_up, message)


def test_both_ways_to_get_a_missing_file_are_named(places):
    ways = "`attnlib data fetch toy`, or set ATTNLIB_DATA to a folder"
    with pytest.raises(DataUnavailable, match=ways) as raised:
        locate(TOY, "sub/a.fr")
    assert all(str(place.parent) in str(raised.value) for place in places)


def test_the_address_of_a_file_that_cannot_be_fetched_is_named(places):
    message = "cannot be fetched by itself, see http://127"
    assert_refused(partial(locate, TOY, "free.tsv"), message, DataUnavailable)


@pytest.mark.parametrize(
    ("name", "pack", "content", "message"),
    [
        ("a.fr", bytes, b"drei\n", f"expected sha256 {SHA256} .*found [0-9a-f]{{64}};"),
        ("a.fr.gz", gzip.compress, gzip.compress(CONTENT, mtime=0)[:-4], "no complete gzip file"),
    ],
    ids=["another content", "truncated"],
)
def test_a_copy_that_becomes_corrupt_is_noticed(places, name, pack, content, message):
    path = places[0] / "sub" / name
    path.write_bytes(pack(CONTENT))
    assert locate(TOY, "sub/a.fr") == path
    path.write_bytes(content)
    with pytest.raises(CorruptFile, match=message):
        locate(TOY, "sub/a.fr")
    assert check(TOY)[0].state == "corrupt"


def test_where_the_folders_are(monkeypatch, tmp_path):
    for name in ("ATTNLIB_DATA", "ATTNLIB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert sources.mirror_folder() is None
    assert sources.cache_folder() == Path.home() / ".cache/attnlib"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert sources.cache_folder() == Path.home() / ".cache/attnlib"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert sources.cache_folder() == tmp_path / "attnlib"
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "own"))
    assert sources.cache_folder() == tmp_path / "own"
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path / "nowhere"))
    assert_refused(sources.mirror_folder, "nowhere is not a folder")


class Handler(SimpleHTTPRequestHandler):
    def copyfile(self, source, outputfile):
        """A truncated answer: less than was promised, then the connection is closed."""
        content = source.read()
        outputfile.write(content[: len(content) // 2] if "truncated" in self.path else content)

    def log_message(self, *arguments):
        self.server.requests.append(self.path)


@pytest.fixture
def server(places, monkeypatch, tmp_path):
    monkeypatch.delenv("ATTNLIB_DATA")
    put(tmp_path / "served", dict.fromkeys(("a.fr", "truncated"), CONTENT))
    put(tmp_path / "served", dict.fromkeys(("a.fr.gz", "truncated.gz"), gzip.compress(CONTENT)))
    handler = partial(Handler, directory=tmp_path / "served")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.requests = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def served(server, *files):
    base = f"http://127.0.0.1:{server.server_port}/"
    return replace(TOY, files=tuple(replace(file, url=file.url and base + file.url) for file in files))


@pytest.mark.parametrize("old", [None, "a.fr", "a.fr.gz"])
@pytest.mark.parametrize("url", ["a.fr", "a.fr.gz"])
def test_what_is_missing_or_corrupt_is_downloaded_once(places, server, old, url):
    if old:
        (places[1] / "sub" / old).write_bytes(b"old")
    data = served(server, File("sub/a.fr", SHA256, url))
    assert states(fetch(data)) == states(fetch(data)) == ["ok"]
    assert locate(data, "sub/a.fr") == places[1] / "sub" / url
    assert [path.name for path in (places[1] / "sub").iterdir()] == [url]
    assert server.requests == [f"/{url}"]


@pytest.mark.parametrize(
    ("url", "sha256", "error", "message"),
    [
        ("a.fr", "0" * 64, CorruptFile, f"expected sha256 {'0' * 64} .*found {SHA256}"),
        *((url, SHA256, DataUnavailable, "cannot download http://127.0.0.1:.*/{}.*or set ATTNLIB_DATA")
          for url in ("truncated", "truncated.gz", "gone")),
    ],
)  # fmt: skip
def test_a_download_that_fails_keeps_the_old_file(places, server, url, sha256, error, message):
    (places[1] / "sub/a.fr").write_bytes(b"old")
    with pytest.raises(error, match=message.format(url)):
        fetch(served(server, File("sub/a.fr", sha256, url)))
    assert [(path.name, path.read_bytes()) for path in (places[1] / "sub").iterdir()] == [("a.fr", b"old")]


def test_a_server_that_is_not_reached_is_said_in_a_few_words(places, server):
    data = served(server, File("sub/a.fr", SHA256, "a.fr"))
    server.shutdown()
    server.server_close()
    with pytest.raises(DataUnavailable, match=r"a\.fr: no connection to the server") as refusal:
        fetch(data)
    assert "Max retries" not in str(refusal.value)


def test_a_download_shows_how_far_it_is(server, capsys):
    fetch(served(server, File("sub/a.fr", SHA256, "a.fr")), progress=DownloadBar)
    error = capsys.readouterr().err
    assert "sub/a.fr" in error
    assert "1.4/1.4 kB" in error


def test_files_that_cannot_be_verified_are_left_out(server):
    unknown, by_hand = File("b.fr", None, "b.fr"), File("c.fr", SHA256, None)
    data = served(server, File("a.fr", SHA256, "a.fr"), unknown, by_hand)
    assert states(fetch(data)) == ["ok", "missing", "missing"]
    with pytest.raises(DataUnavailable, match=r"A note\. Visit http://127.0.0.1:.* put the files into .*toy"):
        fetch(served(server, unknown))
    assert server.requests == ["/a.fr"]


def test_a_cache_that_cannot_be_written_is_named(server, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "file"))
    data_set = served(server, File("a.fr", SHA256, "a.fr"))
    assert_refused(partial(fetch, data_set), "cannot write … file/toy_files/a.fr")


# -- lines of text -------------------------------------------------------------------------------------------

LINES = beside(__file__, "lines")


@pytest.mark.parametrize(("content", "lines"), LINES)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_only_newlines_end_lines(tmp_path, content, lines, pack):
    (tmp_path / "file").write_bytes(pack(content.encode()))
    assert read_lines(tmp_path / "file") == lines


LATIN = "eins\nzwei\nfünf\n".encode("latin-1")
PACKED = gzip.compress(b"many words\n" * 50, mtime=0)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (LATIN, BadInput, "file, line 3: byte 0xfc is not UTF-8"),
        (gzip.compress(LATIN, mtime=0), BadInput, "file, line 3: byte 0xfc is not UTF-8"),
        *((PACKED[:cut], CorruptFile, "file is not a complete gzip file") for cut in (5, 20, -9)),
        (None, DataUnavailable, "cannot read … file: No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path, content, error, message):
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    assert_refused(partial(read_lines, tmp_path / "file"), message, error)
