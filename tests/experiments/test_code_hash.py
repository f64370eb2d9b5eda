"""The hash of a result's code: what computes counts, what explains does not."""

import sys

import pytest

from attnlib import code_hash as module
from attnlib.code_hash import code_hash, imported_modules

CACHED = (
    module._source,
    module._tree,
    module._syntax,
    module._direct_imports,
    module.imported_modules,
    module.code_hash,
)
COMPUTING = """
from attnlib.toy.helper import double
def f(x):
    return double(x)
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A package ``attnlib.toy`` to edit, found in place of the real sources."""
    folder = tmp_path / "attnlib"
    (folder / "toy").mkdir(parents=True)
    files = {"toy/main.py": COMPUTING, "toy/helper.py": "def double(x):\n    return 2 * x\n"}
    files["toy/__init__.py"] = "from attnlib.toy.other import unused\n"
    files["toy/other.py"] = "unused = 1\n"
    for name, text in files.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(module, "__file__", str(folder / "code_hash.py"))

    def hashed(**edits):
        for name, text in edits.items():
            (folder / "toy" / f"{name}.py").write_text(text)
        for cached in CACHED:
            cached.cache_clear()
        return code_hash("attnlib.toy.main")

    yield hashed
    for cached in CACHED:
        cached.cache_clear()


def test_comments_docstrings_and_layout_do_not_count(toy):
    before = toy()
    assert (
        toy(helper='"""New words."""\ndef double(x):\n    """More."""\n\n    return (2 *\n  x)  # twice\n')
        == before
    )


def test_code_counts_also_where_it_is_imported_from(toy):
    before = toy()
    changed = toy(helper="def double(x):\n    return 3 * x\n")
    assert changed != before
    assert toy(helper="def double(x):\n    return 2 * x\n") == before


def test_a_string_that_is_not_a_docstring_counts(toy):
    before = toy(helper="def double(x):\n    return x + 'a'\n")
    assert toy(helper="def double(x):\n    return x + 'b'\n") != before


def test_names_re_exported_by_a_package_do_not_count(toy):
    before = toy()
    assert toy(other="unused = 2\n") == before


def test_what_only_type_checkers_read_does_not_count(toy):
    before = toy(main=COMPUTING + "if TYPE_CHECKING:\n    pass\n")
    assert toy(main=COMPUTING + "if TYPE_CHECKING:\n    from attnlib.toy.other import unused\n") != before
    # The block itself is syntax of the module; what it imports is not followed.
    assert "attnlib.toy.other" not in imported_modules("attnlib.toy.main")


def test_hashing_imports_nothing_heavy_and_an_unknown_module_is_an_error():
    import subprocess

    code = (
        "import sys; from attnlib.code_hash import code_hash\n"
        "code_hash('attnlib.experiments.temporal_share'); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    with pytest.raises(ModuleNotFoundError, match=r"attnlib\.nothing"):
        code_hash("attnlib.nothing")


def test_results_do_not_depend_on_tasks_they_do_not_use():
    modules = imported_modules(
        "attnlib.experiments.temporal_share", "attnlib.training.loop", "attnlib.tasks.scan"
    )
    assert "attnlib.decomposition.components" in modules
    assert "attnlib.tasks.scan_grammar" in modules
    assert (
        not {"attnlib.tasks.multi30k", "attnlib.experiments.alignment_breakdown", "attnlib.tasks"} & modules
    )
