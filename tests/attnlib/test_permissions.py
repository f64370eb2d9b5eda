"""Files have the permissions that the umask or the file before them gives."""

import os
import stat

import pytest

from attnlib.files import atomic_path, locked, write_text_atomic


@pytest.fixture(params=[pytest.param(0o077, id="private"), pytest.param(0o002, id="group")])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_goes_by_the_umask(tmp_path, umask):
    write_text_atomic(tmp_path / "text", "new")
    assert mode_of(tmp_path / "text") == 0o666 & ~umask


def test_a_lock_goes_by_the_umask(tmp_path, umask):
    with locked(tmp_path):
        assert mode_of(tmp_path / ".lock") == 0o666 & ~umask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o444, 0o755], ids=oct)
def test_a_file_that_is_written_again_keeps_its_permissions(tmp_path, umask, mode):
    path = tmp_path / "text"
    path.touch()
    path.chmod(mode)
    write_text_atomic(path, "again")
    assert mode_of(path) == mode


def test_what_is_to_be_private_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "text"
    path.touch()
    path.chmod(0o600)
    with atomic_path(path) as temporary:
        assert mode_of(temporary) == 0o600
