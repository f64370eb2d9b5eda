import hashlib
import os
import subprocess
import sys

import pytest

from attnlib.errors import BadInput, UnknownName
from companion.data import registry

PRINT_DIGEST = "import test_task_registry as t; print(t.digest())"


def digest():
    """Of all that the tasks made by rule hold."""
    whole = hashlib.sha256()
    for name, options in (
        ("one_to_one", {"n_train": 500}),
        ("permutation", {"n_train": 500}),
        ("reversal", {"n_train": 500}),
        ("reordering", {"n_train": 500, "n_held_out": 500}),
        ("scan", {}),
        ("scan_extended", {"n_train": 500}),
    ):
        task = registry.load(name, **options)
        for corpus in (task.train, task.held_out):
            for field in ("source_ids", "source_offsets", "target_ids", "target_offsets"):
                whole.update(getattr(corpus, field).tobytes())
        whole.update(repr((task.source_vocabulary, task.target_vocabulary)).encode())
        whole.update(repr(task.gold and [sorted(links) for links in task.gold]).encode())
    return whole.hexdigest()


def test_the_tasks_are_found_without_a_list():
    by_rule = {"one_to_one", "permutation", "reversal", "reordering", "scan", "scan_extended"}
    from_text = {"multi30k_en_fr", "multi30k_en_de", "tatoeba_en_fr", "europarl_de_en", "parallel"}
    assert by_rule | from_text <= set(registry.names())


@pytest.mark.parametrize("name", registry.names())
def test_every_option_has_a_default_and_the_module_is_named(name):
    assert all(value is not registry.inspect.Parameter.empty for value in registry.options_of(name).values())
    assert registry.builder(name).__name__ == name


def test_an_unknown_task_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownName, match="no task 'one_to_on'; did you mean 'one_to_one'"):
        registry.load("one_to_on")


def test_an_unknown_option_is_refused_with_the_nearest_name():
    with pytest.raises(BadInput, match="task 'scan' has no option 'n_trian'; did you mean 'n_train'"):
        registry.load("scan", n_trian=3)


@pytest.mark.parametrize("value", ["3", 3.0, True])
def test_an_option_of_the_wrong_type_is_refused(value):
    with pytest.raises(BadInput, match=r"option 'n_train' of task 'scan' takes int \| None; got"):
        registry.load("scan", n_train=value)


def test_tasks_are_the_same_in_another_process_with_another_hash_seed():
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.path.dirname(__file__)}
    other = subprocess.run(
        [sys.executable, "-c", PRINT_DIGEST], env=environment, capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == digest()
