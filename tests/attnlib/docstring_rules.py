"""What a docstring of a public name has to have: arguments, results, and an example that doctest runs."""

import ast
import re
from collections.abc import Iterator


def faults(source: str) -> list[str]:
    """Return what is missing in the docstrings of a module's public functions, classes and methods.

    A function has ``Args`` for each parameter, ``Returns`` or ``Yields`` unless it returns None or its first
    sentence says what it returns, ``Raises`` for each error that it raises itself, and an ``Example`` with
    its output. An entry of ``Args`` says more than the name and the type of its parameter. A class has
    ``Attributes`` for its annotated fields, or else ``Args`` for the parameters of its constructor, and an
    example. A method needs no example, a property one line.
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
    is_in_summary = documentation.startswith(("Return ", "Yield "))
    if returns != "None" and not is_in_summary and not re.search(r"^(Returns|Yields):$", documentation, re.M):
        yield "no Returns"
    for name, annotation in annotations_of(node).items():
        if says_nothing(name, annotation, documentation):
            yield f"{name} repeats its name or type"
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


#: words of an entry that say nothing about a parameter
_EMPTY_WORDS = {"a", "an", "any", "as", "before", "is", "it", "likewise", "of", "some", "that", "the", "what"}


def says_nothing(name: str, annotation: str, documentation: str) -> bool:
    """Return True if an entry has no word but those of the parameter's name and type."""
    entry = re.search(rf"^    {re.escape(name)}: (.*(?:\n     .*)*)", documentation, re.MULTILINE)
    if entry is None:
        return False
    known = set(re.findall(r"[a-z]+", f"{name} {annotation}".lower()))
    words = set(re.findall(r"[a-z\d']+|[^\w\s.,:;]", entry[1].lower()))
    return words <= known | _EMPTY_WORDS


def annotations_of(node: ast.FunctionDef) -> dict[str, str]:
    """Types of the parameters, as they are written, by name."""
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return {item.arg: ast.unparse(item.annotation) if item.annotation else "" for item in every}


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
