"""What a generator or a context manager switches on is off again whatever happens in its caller."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("attnlib", "companion", "notebooks")
SOURCES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
FILES = [path for path in SOURCES if b"yield" in path.read_bytes()]  # no other has a generator
MODES = ("inference_mode", "no_grad", "enable_grad", "set_grad_enabled")


def functions_of(path):
    tree = ast.parse(path.read_bytes())
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def is_context_manager(function):
    return any("contextmanager" in ast.unparse(decorator) for decorator in function.decorator_list)


def yields_within(node):
    """Each yield of a function with the statements around it, outermost first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.Yield | ast.YieldFrom):
            yield child.lineno, []
        for line, around in yields_within(child):
            yield line, [child, *around]


def modes_around(statements):
    items = [item for node in statements if isinstance(node, ast.With) for item in node.items]
    contexts = [ast.unparse(item.context_expr) for item in items]
    return [context for context in contexts if any(mode in context for mode in MODES)]


def tidies_up(statements):
    return any(isinstance(node, ast.Try | ast.With) for node in statements)


def test_no_generator_yields_within_a_mode_of_torch():
    leaking = []
    for path in FILES:
        generators = [function for function in functions_of(path) if not is_context_manager(function)]
        yields = [place for function in generators for place in yields_within(function)]
        leaking += [f"{path}:{line}" for line, around in yields if modes_around(around)]
    assert not leaking


def test_every_context_manager_tidies_up_after_an_exception():
    untidy = []
    for path in FILES:
        managers = [function for function in functions_of(path) if is_context_manager(function)]
        yields = [place for function in managers for place in yields_within(function)]
        untidy += [f"{path}:{line}" for line, around in yields if not tidies_up(around)]
    assert not untidy
