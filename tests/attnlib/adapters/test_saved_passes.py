"""Passes in files: what was saved comes back, and what cannot be read is named."""

import pytest
from safetensors.torch import save_file

from attnlib.adapters import pass_of_tensors, saved_passes
from attnlib.adapters.tensors import MAPS
from attnlib.errors import BadInput, CorruptFile
from tests.attnlib.adapters.test_tensors import FULL, PLAIN, assert_same_pass


def write(folder, name, given):
    save_file({key: value.contiguous().clone() for key, value in given.items()}, folder / name)


def is_map(name):
    return name.endswith(("weight", "_bias", "scale"))


def test_what_was_saved_comes_back_in_the_order_of_the_names(tmp_path):
    write(tmp_path, "b.safetensors", PLAIN)
    write(tmp_path, "a.safetensors", FULL)
    (tmp_path / "notes.txt").write_text("not a batch")
    first, second = saved_passes(tmp_path)
    assert_same_pass(first, pass_of_tensors(FULL))
    assert_same_pass(second, pass_of_tensors(PLAIN))


def test_weights_may_stand_in_a_file_of_their_own(tmp_path):
    write(tmp_path, MAPS, {name: value for name, value in FULL.items() if is_map(name)})
    for batch in "ab":
        own = {name: value for name, value in FULL.items() if not is_map(name)}
        write(tmp_path, f"{batch}.safetensors", own)
    passes = list(saved_passes(tmp_path))
    assert len(passes) == 2
    for found in passes:
        assert_same_pass(found, pass_of_tensors(FULL))


def test_one_file_after_the_other_is_read(tmp_path):
    write(tmp_path, "a.safetensors", PLAIN)
    (tmp_path / "b.safetensors").write_bytes(b"\x08\x00")
    passes = saved_passes(str(tmp_path))
    assert_same_pass(next(passes), pass_of_tensors(PLAIN))
    with pytest.raises(CorruptFile, match=r"b\.safetensors cannot be read as safetensors .*write it again"):
        next(passes)


@pytest.mark.parametrize("name", ["a.safetensors", MAPS])
def test_a_file_that_was_cut_off_is_corrupt(tmp_path, name):
    write(tmp_path, "a.safetensors", PLAIN)
    write(tmp_path, name, PLAIN)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:-5])
    with pytest.raises(CorruptFile, match=f"{name} cannot be read as safetensors"):
        list(saved_passes(tmp_path))


def test_a_message_names_the_file(tmp_path):
    write(tmp_path, "a.safetensors", {"cross.0.query_states": PLAIN["cross.0.query_states"]})
    with pytest.raises(BadInput, match=r"a\.safetensors: tensors lack source_tokens"):
        list(saved_passes(tmp_path))


def test_a_folder_without_files_is_refused(tmp_path):
    write(tmp_path, MAPS, PLAIN)
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(BadInput, match=r"holds no \*\.safetensors; expected one a batch"):
            list(saved_passes(folder))
