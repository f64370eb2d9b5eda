"""What a docstring of a public name has to have: arguments, results, and an example that doctest runs."""

import ast
import re
from collections.abc import Iterator


def faults(source: str) -> list[str]:
    """Return what is missing in the docstrings of a module's public functions, classes and methods.

    A function has ``Args`` for each parameter, ``Returns`` or ``Yields`` unless it returns None, ``Raises``
    for each error that it raises itself, and an ``Example`` with its output. A class has ``Attributes`` for
    its annotated fields, or else ``Args`` for the parameters of its constructor, and an example. A method
    needs no example, a property one line.
    """
    missing = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and is_public(node):
            missing += [f"{node.name}: {fault}" for fault in faults_of_function(node, needs_example=True)]
        if isinstance(node, ast.ClassDef) and is_public(node):
            missing += [f"{node.name}: {fault}" for fault in faults_of_class(node)]
    return missing


def faults_of_class(node: ast.ClassDef) -> Iterator[str]:
    documentation = ast.get_docstring(node) or ""
    yield from (f"no {name}" for name in fields_of(node) if not is_listed(name, documentation))
    yield from faults_of_example(documentation)
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and is_public(method):
            for fault in faults_of_function(method, needs_example=False):
                yield f"{method.name}: {fault}"


def faults_of_function(node: ast.FunctionDef, *, needs_example: bool) -> Iterator[str]:
    documentation = ast.get_docstring(node) or ""
    if not documentation:
        yield "no docstring"
    decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
    if "property" in decorators:
        return
    yield from (f"no {name}" for name in parameters_of(node) if not is_listed(name, documentation))
    returns = ast.unparse(node.returns) if node.returns else "None"
    if returns != "None" and not re.search(r"^(Returns|Yields):$", documentation, re.MULTILINE):
        yield "no Returns"
    yield from (f"no {error}" for error in sorted(errors_of(node)) if not is_listed(error, documentation))
    if needs_example:
        yield from faults_of_example(documentation)


def faults_of_example(documentation: str) -> Iterator[str]:
    if not re.search(r"^Example:\n    >>> ", documentation, re.MULTILINE):
        yield "no Example"


def is_public(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return not node.name.startswith("_")


def is_listed(name: str, documentation: str) -> bool:
    """In a section, as in ``    name: what it is.``"""
    return re.search(rf"^    {re.escape(name)}: ", documentation, re.MULTILINE) is not None


def parameters_of(node: ast.FunctionDef) -> list[str]:
    every = node.args
    parameters = [*every.posonlyargs, *every.args, *every.kwonlyargs]
    parameters += [parameter for parameter in (every.vararg, every.kwarg) if parameter is not None]
    names = [parameter.arg for parameter in parameters]
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def errors_of(node: ast.FunctionDef) -> set[str]:
    """Names of the errors that the function itself raises."""
    raised = [item.exc for item in ast.walk(node) if isinstance(item, ast.Raise)]
    return {ast.unparse(error.func) for error in raised if isinstance(error, ast.Call)}


def fields_of(node: ast.ClassDef) -> list[str]:
    fields = [item.target.id for item in node.body if isinstance(item, ast.AnnAssign)]
    fields = [name for name in fields if not name.startswith("_")]
    constructors = [item for item in node.body if getattr(item, "name", "") == "__init__"]
    if fields or not constructors:
        return fields
    return parameters_of(constructors[0])
