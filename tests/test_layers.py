"""One direction of flow: each layer imports only what stands before it, and computing needs four packages."""

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "attnlib"
BEFORE = {
    "datasets": set(),
    "tasks": {"datasets"},
    "texts": {"datasets", "tasks"},
    "models": {"tasks", "texts"},
    "training": {"tasks", "models"},
    "decomposition": set(),
    "statistics": set(),
    "probes": {"tasks", "texts", "models", "decomposition"},
    "recipes": {"datasets", "tasks", "texts", "models", "training", "probes", "statistics"},
    "experiments": {
        "tasks",
        "texts",
        "models",
        "training",
        "decomposition",
        "probes",
        "statistics",
        "recipes",
        "adapters",
        "analysis",
    },
    "plotting": {"experiments", "decomposition"},
    "adapters": {"tasks", "models", "decomposition"},
    "analysis": {"adapters", "models", "decomposition", "probes"},
}
EVERYWHERE = {"errors", "files", "fingerprint", "rounding"}
COMPUTING = {"numpy", "torch", "safetensors", "jaxtyping", "attnlib"}
EXCEPT = {
    "datasets/fetch.py": {"pooch"},  # downloads; imported where used
    "adapters/hugging_face.py": {"transformers"},  # imported where used
    "analysis/checkpoint.py": {"transformers"},
    "analysis/command.py": {"rich"},
    "analysis/report.py": {"jinja2", "markupsafe"},  # imported where used
}
TEXT = {"sentencepiece", "sacrebleu"}  # of the layer that reads text; imported where used


def imports(path: Path, *, executed: bool = False) -> set[str]:
    """What a module imports; with ``executed`` without what only type checkers read."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if executed:
        tree = WithoutTypeChecking().visit(tree)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute, so that a result's code can be traced"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


class WithoutTypeChecking(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> ast.If | None:
        return None if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node


@pytest.mark.parametrize("layer", BEFORE)
def test_a_layer_imports_only_what_stands_before_it(layer):
    for path in (PACKAGE / layer).rglob("*.py"):
        used = {name.split(".")[1] for name in imports(path) if name.startswith("attnlib.")}
        assert used <= BEFORE[layer] | {layer} | EVERYWHERE, path


@pytest.mark.parametrize("layer", [layer for layer in BEFORE if layer != "plotting"])
def test_what_computes_needs_four_packages(layer):
    for path in (PACKAGE / layer).rglob("*.py"):
        roots = {name.partition(".")[0] for name in imports(path, executed=True)}
        allowed = COMPUTING | EXCEPT.get(path.relative_to(PACKAGE).as_posix(), set())
        allowed |= TEXT if layer == "texts" else set()
        assert roots - set(sys.stdlib_module_names) <= allowed, path
