import gzip
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from attnlib.datasets.base import Dataset, File
from attnlib.datasets.locate import cache_folder, check, locate, mirror_folder
from attnlib.errors import BadInput, CorruptFile, DataUnavailable, UnknownName

CONTENT = b"un\ndeux\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
TOY = Dataset(
    name="toy",
    title="Toy",
    folder="toy_files",
    files=(
        File("sub/a.fr", SHA256, "http://127.0.0.1:9/a.fr"),
        File("free.tsv", None, "http://127.0.0.1:9/free"),
    ),
    home="http://127.0.0.1:9/",
    licence="none",
    redistribution="allowed",
)


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
    assert [status.state for status in check(TOY)] == ["ok", "missing"]


def test_the_mirror_comes_before_the_cache(places):
    for place in places:
        (place / "sub/a.fr").write_bytes(CONTENT)
    assert locate(TOY, "sub/a.fr") == places[0] / "sub/a.fr"


def test_a_missing_file_says_both_ways_to_get_it(places):
    with pytest.raises(
        DataUnavailable, match=r"`attnlib data fetch toy`, or set ATTNLIB_DATA to a folder"
    ) as raised:
        locate(TOY, "sub/a.fr")
    assert str(places[0].parent) in str(raised.value)
    assert str(places[1].parent) in str(raised.value)
    with pytest.raises(DataUnavailable, match="cannot be fetched by itself, see http://127"):
        locate(TOY, "free.tsv")


def test_another_content_is_corrupt_and_both_checksums_are_named(places):
    path = places[0] / "sub/a.fr"
    path.write_bytes(b"drei\n")
    with pytest.raises(CorruptFile) as raised:
        locate(TOY, "sub/a.fr")
    assert SHA256 in str(raised.value)
    assert hashlib.sha256(b"drei\n").hexdigest() in str(raised.value)
    assert check(TOY)[0].state == "corrupt"


def test_a_truncated_copy_is_corrupt(places):
    (places[0] / "sub/a.fr.gz").write_bytes(gzip.compress(CONTENT)[:-4])
    with pytest.raises(CorruptFile, match="no complete gzip file"):
        locate(TOY, "sub/a.fr")
    assert check(TOY)[0].state == "corrupt"


def test_a_file_that_changes_is_read_again(places):
    path = places[0] / "sub/a.fr"
    path.write_bytes(CONTENT)
    locate(TOY, "sub/a.fr")
    path.write_bytes(CONTENT + b"trois\n")
    with pytest.raises(CorruptFile):
        locate(TOY, "sub/a.fr")


def test_a_file_without_known_checksum_is_found_and_said_to_be_so(places):
    (places[0] / "free.tsv.gz").write_bytes(b"anything")
    assert locate(TOY, "free.tsv") == places[0] / "free.tsv.gz"
    assert check(TOY)[1].state == "no checksum known"


def test_an_unknown_file_is_refused_with_the_nearest_name(places):
    with pytest.raises(UnknownName, match=r"no file of data set toy 'sub/a.f'; did you mean 'sub/a\.fr'"):
        locate(TOY, "sub/a.f")


def test_where_the_folders_are(monkeypatch, tmp_path):
    for name in ("ATTNLIB_DATA", "ATTNLIB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert mirror_folder() is None
    assert cache_folder() == Path.home() / ".cache/attnlib"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert cache_folder() == Path.home() / ".cache/attnlib"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "attnlib"
    monkeypatch.setenv("ATTNLIB_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.setenv("ATTNLIB_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(BadInput, match="nowhere is not a folder"):
        mirror_folder()


def test_resolving_needs_the_standard_library_alone():
    script = (
        "import sys; before = set(sys.modules); import attnlib.datasets as d; d.check(d.get('scan'));"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "assert not new - sys.stdlib_module_names - {'attnlib'}, new"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
