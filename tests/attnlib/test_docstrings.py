"""Every public name says what it takes, returns and raises, and shows it in an example.

The examples are run with the other tests: pytest collects the doctests of ``attnlib``.
"""

import ast
import inspect
import re
import textwrap
from dataclasses import fields, is_dataclass
from importlib import import_module

import pytest

PACKAGES = ("attnlib.analysis", "attnlib.decomposition")  # whose public names are checked, with all they hold
MODULES = (  # single modules whose names of ``attnlib.__all__`` are checked
    "attnlib.deprecated",
    "attnlib.errors",
    "attnlib.linear_map",
    "attnlib.trace",
)
SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):\n((?:    .*\n|\n)*)", re.M)
ENTRY = re.compile(r"^    (\**\w+(?:, \**\w+)*):", re.M)
BY_PYTHON = {"args", "kwargs"}


def public_objects():
    """Names and objects of the packages' ``__all__`` that are classes or functions defined in them."""
    objects = {}
    for package in ("attnlib", *PACKAGES):
        module = import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            home = getattr(value, "__module__", "")
            is_checked = home in MODULES or home.startswith(PACKAGES)
            if is_checked and (inspect.isclass(value) or inspect.isfunction(value)):
                objects[f"{home}.{name}"] = value
    return objects


def public_methods(objects):
    """The methods with parameters that the public classes define themselves, by name."""
    methods = {}
    for class_name, cls in objects.items():
        if not inspect.isclass(cls):
            continue
        attributes = {field.name for field in fields(cls)} if is_dataclass(cls) else set()
        for name, value in vars(cls).items():
            function = getattr(value, "__func__", value)  # of a class method or a static method
            is_default = name in attributes  # a function that a field has by default
            if name.startswith("_") or is_default or not inspect.isfunction(function):
                continue
            if parameters_of(function):
                methods[f"{class_name}.{name}"] = function
    return methods


def parameters_of(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def sections_of(text):
    """The sections of a docstring in Google's convention, by name."""
    return dict(SECTION.findall(inspect.cleandoc(text) + "\n"))


def entries_of(section):
    """The names that a section describes; several may share a description."""
    names = set()
    for entry in ENTRY.findall(section):
        names |= {name.strip().lstrip("*") for name in entry.split(",")}
    return names


def raised_by(function):
    """Names of the errors that the function itself raises."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            names.add(ast.unparse(node.exc.func))
    return names


OBJECTS = public_objects()
FUNCTIONS = {name: value for name, value in OBJECTS.items() if inspect.isfunction(value)}
CLASSES = {name: value for name, value in OBJECTS.items() if inspect.isclass(value)}
CALLABLES = FUNCTIONS | public_methods(OBJECTS)
DATACLASSES = {name: value for name, value in CLASSES.items() if is_dataclass(value)}
# Errors are raised, and former names are there to be replaced: an example of them would help nobody.
WITH_EXAMPLE = {
    name: value
    for name, value in OBJECTS.items()
    if not name.startswith(("attnlib.errors.", "attnlib.deprecated."))
}


@pytest.mark.parametrize("name", CALLABLES)
def test_every_parameter_has_its_sentence(name):
    described = entries_of(sections_of(CALLABLES[name].__doc__).get("Args", ""))
    assert set(parameters_of(CALLABLES[name])) <= described | BY_PYTHON


@pytest.mark.parametrize("name", CALLABLES)
def test_what_is_returned_is_described(name):
    """In a section, or for a method in its first line: "Return the mask of a side"."""
    annotation = inspect.signature(CALLABLES[name]).return_annotation
    if annotation is None:
        return
    summary = CALLABLES[name].__doc__.partition("\n\n")[0].lower()
    is_in_summary = name not in FUNCTIONS and re.search(r"\b(return|yield)\b", summary)
    assert is_in_summary or sections_of(CALLABLES[name].__doc__).keys() & {"Returns", "Yields"}


@pytest.mark.parametrize("name", CALLABLES)
def test_errors_that_a_function_raises_are_listed(name):
    assert raised_by(CALLABLES[name]) <= entries_of(sections_of(CALLABLES[name].__doc__).get("Raises", ""))


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_a_public_name_has_an_example(name):
    assert re.search(r"^Example:\n    >>> ", inspect.cleandoc(WITH_EXAMPLE[name].__doc__), re.M)


@pytest.mark.parametrize("name", DATACLASSES)
def test_every_field_is_listed_among_the_attributes(name):
    public = {field.name for field in fields(DATACLASSES[name]) if not field.name.startswith("_")}
    assert public <= entries_of(sections_of(DATACLASSES[name].__doc__).get("Attributes", ""))


@pytest.mark.parametrize("name", CLASSES)
def test_every_argument_of_a_constructor_is_described(name):
    constructor = vars(CLASSES[name]).get("__init__")
    if constructor is None or is_dataclass(CLASSES[name]):  # a dataclass has its attributes
        pytest.skip("its constructor is inherited, or made of its attributes")
    sections = sections_of(CLASSES[name].__doc__)
    described = entries_of(sections.get("Args", "")) | entries_of(sections.get("Attributes", ""))
    assert set(parameters_of(constructor)) <= described
