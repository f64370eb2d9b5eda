"""What one sees of the package from outside: names, their completion, and what it asks for."""

import ast
from pathlib import Path

import attnlib

FOLDER = Path(attnlib.__file__).parent


def test_type_checkers_see_the_names_that_are_imported_on_first_use():
    tree = ast.parse(Path(attnlib.__file__).read_text(encoding="utf-8"))
    (block,) = (each for each in tree.body if isinstance(each, ast.If))
    seen = {alias.asname: each.module for each in block.body for alias in each.names}
    assert seen == attnlib._PUBLIC
    assert (FOLDER / "py.typed").is_file()
    for name in attnlib.__all__:
        assert getattr(attnlib, name).__doc__ or name == "__version__"
