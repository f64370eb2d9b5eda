"""Which code a number comes from: a hash over the functions, classes and constants it needs.

An answer of the archive names the fingerprint of the function that measured it and of the code that trained
its network. Equal fingerprints mean that the same statements would run, wherever they are written::

    fingerprint(measure_readout)       # "5f0c9b6a4d21e377", the same after its module was moved or merged

From a function, every function, class and constant of this project that it refers to is followed, through
imports and re-exports, and what these refer to. The hash of each covers its own syntax and, in place of the
names it refers to, the hashes of what they mean (a Merkle hash; symbols that refer to each other are hashed
together).

Left out, since they can move no number: comments, docstrings, annotations, import statements, where a
module lies, names of top-level symbols and of locals, checks of input (an ``if`` that only raises), texts
of errors, the order of methods, and what :data:`OUTSIDE` lists. Fields of classes named ``...Settings`` are
left out as well: they and their values are in the key of a run (:mod:`companion.runs.keys`). Names of
attributes, methods and arguments count. A data set counts with the checksums of its files and nothing else.
What makes data may be rewritten as long as the data stay the same to the last byte: ``contents.json`` of
:mod:`companion.data` names its hash today and the first one, and a test holds both to what is made.

The walk is over names. What is looked up by name while the code runs (a task, a kind of run) is not seen by
it and has to be given as a root of its own; so :func:`companion.runs.keys.code_of` does.
"""

import ast
import builtins
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("attnlib", "companion", "notebooks")
ERRORS = "attnlib.errors"
CONTENTS = ROOT / "companion" / "data" / "contents.json"

# Symbols that are left out wherever they are used, by name: files and locks, progress, looking things up.
OUTSIDE = frozenset(
    {
        "atomic_path",
        "write_json_atomic",
        "write_text_atomic",
        "discard_unsound",
        "load_newest",
        "save_checkpoint",
        "Report",
        "locate",
        "find",
        "cache_folder",
    }
)
# Modules whose symbols are looked up by name: what they find is a root of its own.
REGISTRIES = frozenset({"companion.data.registry", "companion.runs.registry"})
DATA_SETS = frozenset(
    {"Dataset", "dataset"}
)  # what makes a data set: a constant made so counts with its checksums

Symbol = tuple[str, str]  # module, name
Root = Callable | str
_ELSEWHERE: dict[str, Path] = {}  # files of modules outside of this project whose functions are fingerprinted


def fingerprint(*roots: Root) -> str:
    """Sixteen hex digits over the code that some functions or classes need.

    Args:
        roots: top-level functions or classes, or their names as ``"module:name"``, which imports nothing;
        their
            order does not count.

    >>> fingerprint("attnlib.files:rounded") == fingerprint(*2 * ["attnlib.files:rounded"])
    True

    Raises:
        ValueError: a root is not a top-level definition of a module.
    """
    return _joined({_digest_of(symbol) for root in roots for symbol in _defined(root)})


def symbols(*roots: Root) -> frozenset[str]:
    """What a fingerprint covers, as ``module:name``: for people who ask why it changed."""
    seen: set[Symbol] = set()
    waiting = [symbol for root in roots for symbol in _defined(root)]
    while waiting:
        symbol = waiting.pop()
        if symbol not in seen:
            seen.add(symbol)
            waiting.extend(_form(symbol).refers_to)
    return frozenset(f"{module}:{name}" for module, name in seen)


def data_sets(*roots: Root) -> tuple[str, ...]:
    """The data sets among what a fingerprint covers, as ``module:name`` of their constants, sorted."""
    return tuple(
        sorted(name for name in symbols(*roots) if _form(tuple(name.split(":"))).text.startswith("data "))
    )


def _defined(root: Root) -> list[Symbol]:
    """The definition that is meant; of a module all."""
    module, _, name = root.partition(":") if isinstance(root, str) else _where(root)
    found = (
        _resolve(module, name)
        if name.isidentifier() and (_path(module) or _path(f"{module}.{name}"))
        else None
    )
    if isinstance(found, str) and _path(found):
        return [(found, each) for each in _module(found).definitions]
    if not isinstance(found, tuple):
        raise ValueError(f"{root!r} is no top-level function or class of a module that can be read")
    return [found]


def _where(root: Callable) -> tuple[str, str, str]:
    """Module and name of a function; a module outside of this project is read from its file, not followed."""
    root = getattr(root, "__wrapped__", root)
    if root.__module__.partition(".")[0] not in PACKAGES:
        _ELSEWHERE[root.__module__] = Path(root.__code__.co_filename)
    return root.__module__, ":", root.__qualname__


def _joined(digests: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()[:16]


# -- modules and names --


@dataclass
class _Module:
    """The top level of a module: name → its definitions, or what an import binds it to."""

    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)  # name → dotted path


def _path(module: str) -> Path | None:
    """The file of a module, found by its name so that nothing is imported; None where there is none."""
    if module.partition(".")[0] not in PACKAGES:
        return _ELSEWHERE.get(module)
    base = ROOT.joinpath(*module.split("."))
    candidates = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


@cache
def _module(name: str) -> _Module:
    path = _path(name)
    found = _Module()
    for statement in _top_level(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            found.imports |= _imported(statement)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.definitions.setdefault(statement.name, []).append(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                for node in ast.walk(target):
                    if isinstance(node, ast.Name):
                        found.definitions.setdefault(node.id, []).append(statement)
    return found


def _top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, those within ``if`` and ``try`` too, without what only type checkers read."""
    for statement in body:
        if isinstance(statement, ast.If) and not _is_type_checking(statement.test):
            yield from _top_level([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            handled = [line for handler in statement.handlers for line in handler.body]
            yield from _top_level([*statement.body, *handled, *statement.orelse, *statement.finalbody])
        elif not isinstance(statement, ast.If):
            yield statement


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _imported(statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    if isinstance(statement, ast.Import):
        return {a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                for a in statement.names}  # fmt: skip
    return {a.asname or a.name: f"{statement.module}.{a.name}" for a in statement.names}


@cache
def _resolve(module: str, name: str) -> Symbol | str | None:
    """What a name means at the top level of a module.

    Returns:
        a symbol of this project, the dotted path of anything else that is imported (a module of this project
        included), or None for a name that is neither.
    """
    if _path(module) is None:
        return f"{module}.{name}"
    known = _module(module)
    if name in known.definitions:
        return (module, name)
    if name in known.imports:
        return _at(known.imports[name])
    if _path(f"{module}.{name}"):
        return f"{module}.{name}"
    return None


def _at(dotted: str) -> Symbol | str:
    """What a dotted path of an import leads to."""
    if _path(dotted) or "." not in dotted:
        return dotted
    owner, _, name = dotted.rpartition(".")
    if owner.partition(".")[0] not in PACKAGES:
        return dotted
    return (_resolve(owner, name) if _path(owner) else None) or dotted


# -- one symbol --


@dataclass(frozen=True)
class _Form:
    """The syntax of a symbol as text; a reference to another one is ``<n>``, the n-th of ``refers_to``."""

    text: str
    refers_to: tuple[Symbol, ...]


@cache
def _form(symbol: Symbol) -> _Form:
    module, name = symbol
    writer = _Writer(module)
    parts = [writer.definition(statement, name) for statement in _module(module).definitions[name]]
    return _Form("\n".join(parts), tuple(writer.refers_to))


_EMPTY_FUNCTION = "checks"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Writer:
    """Writes the normal form of definitions of one module."""

    def __init__(self, module: str):
        self.module = module
        self.refers_to: dict[Symbol, int] = {}
        self.scopes: list[dict[str, str | None]] = []  # innermost last: name → token, None until first met
        self.imports: list[dict[str, str]] = []  # of imports within functions
        self.locals = 0

    def definition(self, statement: ast.stmt, name: str) -> str:
        """A top-level definition without its own name."""
        if isinstance(statement, _Function):
            return self._function(statement, "")
        if isinstance(statement, ast.ClassDef):
            return self._class(statement, "")
        if isinstance(statement, ast.AugAssign):
            return f"{type(statement.op).__name__}= {self._node(statement.value)}"
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        plain = all(isinstance(target, ast.Name) for target in targets)
        place = "" if plain else f"{name} in {[ast.dump(target) for target in targets]}"
        value = statement.value
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and self._makes_data(value.func.id)
        ):
            return f"data {_checksums(self.module, name)}"
        return f"{place}= {self._node(value) if value is not None else 'nothing'}"

    def _makes_data(self, name: str) -> bool:
        found = _resolve(self.module, name)
        return isinstance(found, tuple) and found[1] in DATA_SETS

    # names

    def _name(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                if scope[name] is None:
                    scope[name] = f"local {self.locals}"
                    self.locals += 1
                return scope[name]
        return self._meaning(name)

    def _global(self, name: str) -> Symbol | str | None:
        for imports in reversed(self.imports):
            if name in imports:
                return _at(imports[name])
        return _resolve(self.module, name)

    def _meaning(self, name: str) -> str:
        found = self._global(name)
        if found is None:
            return f"{'builtin' if hasattr(builtins, name) else 'name'} {name}"
        return self._reference(found)

    def _reference(self, found: Symbol | str) -> str:
        if isinstance(found, str):
            if _path(found):  # a module of this project as a value: all that it defines
                defined = [(found, name) for name in _module(found).definitions]
                return f"module [{' '.join(sorted(self._reference(one) for one in defined))}]"
            return f"import {found}"
        module, name = found
        if module == ERRORS:
            return f"error {name}"
        if name in OUTSIDE or module in REGISTRIES:
            return "outside"
        return f"<{self.refers_to.setdefault(found, len(self.refers_to))}>"

    def _attribute(self, node: ast.Attribute) -> str:
        """``np.linalg.norm`` as one import, ``module.name`` as what it means, anything else by its name."""
        owner = node.value
        if isinstance(owner, ast.Name) and not any(owner.id in scope for scope in self.scopes):
            found = self._global(owner.id)
            if isinstance(found, str) and _path(found):
                member = _resolve(found, node.attr)
                if member is not None:
                    return self._reference(member)
        text = self._node(owner)
        if text.startswith("import "):
            return f"{text}.{node.attr}"
        return "outside" if text == "outside" else f"({text}).{node.attr}"

    # definitions

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
        arguments = node.args
        decorators = [self._node(each) for each in node.decorator_list]
        defaults = [
            self._node(each) if each else "-" for each in (*arguments.defaults, *arguments.kw_defaults)
        ]
        names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        names += [each for each in (arguments.vararg, arguments.kwarg) if each]
        shape = (
            len(arguments.posonlyargs),
            len(arguments.args),
            bool(arguments.vararg),
            bool(arguments.kwarg),
        )
        with self._scope(node, {each.arg: f"argument {each.arg}" for each in names}):
            body = self._body(node.body)
        if not body and not decorators:
            return _EMPTY_FUNCTION
        listed = ",".join(each.arg for each in names)
        return f"def {name}[{','.join(decorators)}]({shape} {listed}; {','.join(defaults)}){{{body}}}"

    def _class(self, node: ast.ClassDef, name: str) -> str:
        head = [self._node(each) for each in (*node.decorator_list, *node.bases)]
        head += [f"{each.arg}={self._node(each.value)}" for each in node.keywords]
        fields = []
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                if not node.name.endswith("Settings"):
                    value = self._node(statement.value) if statement.value is not None else "-"
                    fields.append(f"{statement.target.id}={value}")
            elif isinstance(statement, ast.Assign):
                targets = ",".join(each.id for each in statement.targets)
                fields.append(f"{targets}:={self._node(statement.value)}")
            elif not isinstance(statement, _Function) and (text := self._statement(statement)):
                fields.append(text)
        methods = sorted(
            (each for each in node.body if isinstance(each, _Function)), key=lambda each: each.name
        )
        written = filter(lambda text: text != _EMPTY_FUNCTION, map(self._method, methods))
        return f"class {name}({','.join(head)}){{{';'.join([*fields, *written])}}}"

    def _method(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        met, self.locals = self.locals, 0  # each numbers its own names, so that their order does not count
        text = self._function(node, node.name)
        self.locals = met
        return text

    def _scope(self, node: ast.AST, given: dict[str, str]) -> "_Scope":
        bound, imports = _bound(node)
        return _Scope(self, dict.fromkeys(bound) | given, imports)

    # statements

    def _body(self, body: Sequence[ast.stmt]) -> str:
        return ";".join(filter(None, map(self._statement, body)))

    def _statement(self, node: ast.stmt) -> str:
        """The normal form of a statement; empty where it can move no number."""
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass() | ast.Global() | ast.Nonlocal():
                return ""
            case ast.Expr(value=ast.Constant()):
                return ""
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if self._only_checks(name):
                return ""
            case ast.If(body=[ast.Raise()], orelse=[]) if not _assigns(node.test):
                return ""
            case ast.Raise(exc=exc):
                return f"raise {self._node(exc.func if isinstance(exc, ast.Call) else exc) if exc else ''}"
            case ast.AnnAssign(target=target, value=value):
                return f"{self._node(target)}={self._node(value)}" if value is not None else ""
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return f"{self._name(node.name)}:{self._function(node, '')}"
            case ast.ClassDef():
                return f"{self._name(node.name)}:{self._class(node, '')}"
            case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try() | ast.Match():
                return self._block(node)
        return self._node(node)

    def _only_checks(self, name: str) -> bool:
        """Whether a name is a function of this project that does nothing but raise on bad input."""
        if any(name in scope for scope in self.scopes):
            return False
        found = self._global(name)
        if not isinstance(found, tuple):
            return False
        return all(isinstance(each, ast.FunctionDef) and all(map(_is_check, each.body))
                   for each in _module(found[0]).definitions[found[1]])  # fmt: skip

    def _block(self, node: ast.stmt) -> str:
        match node:
            case ast.For():
                head = f"for {self._node(node.iter)} as {self._node(node.target)}"
                body, rest = self._body(node.body), self._body(node.orelse)
                return f"{head}{{{body}}}else{{{rest}}}" if body or rest else ""
            case ast.While():
                test, body, rest = self._node(node.test), self._body(node.body), self._body(node.orelse)
                return f"while {test}{{{body}}}else{{{rest}}}"
            case ast.If():
                test, body, rest = self._node(node.test), self._body(node.body), self._body(node.orelse)
                return f"if {test}{{{body}}}else{{{rest}}}" if body or rest else ""
            case ast.With():
                items = ",".join(self._node(item) for item in node.items)
                return f"with {items}{{{self._body(node.body)}}}"
            case ast.Try():
                body = self._body([*node.body, *node.orelse])
                handlers = [
                    f"except {self._node(h.type) if h.type else ''}{{{text}}}"
                    for h in node.handlers
                    if (text := self._handler(h))
                ]
                last = self._body(node.finalbody)
                return f"try{{{body}}}{''.join(handlers)}finally{{{last}}}" if handlers or last else body
        return self._node(node)

    def _handler(self, handler: ast.ExceptHandler) -> str:
        """What is done about an error; empty where another one is raised, which only rewords it."""
        if all(isinstance(statement, ast.Raise) for statement in handler.body):
            return ""
        return self._body(handler.body) or "pass"

    # expressions

    def _node(self, node: object) -> str:
        match node:
            case None | ast.Load() | ast.Store() | ast.Del():
                return ""
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Constant(value=value):
                return f"{type(value).__name__} {value!r}"
            case ast.Lambda(args=arguments):
                names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                names += [each for each in (arguments.vararg, arguments.kwarg) if each]
                defaults = [
                    self._node(each) if each else "-"
                    for each in (*arguments.defaults, *arguments.kw_defaults)
                ]
                with _Scope(self, {each.arg: None for each in names}, {}):
                    listed = ",".join(self._name(each.arg) for each in names)
                    return f"lambda {listed};{','.join(defaults)}:{self._node(node.body)}"
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case ast.AST():
                parts = []
                for name in node._fields:
                    value = getattr(node, name, None)
                    if isinstance(value, list):
                        parts.append("[" + ",".join(self._each(item) for item in value) + "]")
                    elif isinstance(value, ast.AST):
                        parts.append(self._each(value))
                    elif value is not None and name not in ("type_comment", "kind"):
                        parts.append(repr(value))
                return f"{type(node).__name__}({','.join(parts)})"
        return repr(node)

    def _each(self, node: object) -> str:
        return self._statement(node) if isinstance(node, ast.stmt) else self._node(node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> str:
        first = self._node(node.generators[0].iter)  # read outside of the comprehension's own scope
        names = {n.id: None for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        with _Scope(self, names, {}):
            parts = [first]
            for place, generator in enumerate(node.generators):
                source = "" if place == 0 else self._node(generator.iter)
                tests = ",".join(map(self._node, generator.ifs))
                parts.append(f"{self._node(generator.target)} in {source} if {tests}")
            made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            return f"{type(node).__name__}({';'.join(parts)}: {','.join(map(self._node, made))})"


class _Scope:
    """A scope of names while the writer is inside a function, lambda or comprehension."""

    def __init__(self, writer: _Writer, names: dict[str, str | None], imports: dict[str, str]):
        self.writer, self.names, self.known = writer, names, imports

    def __enter__(self) -> None:
        self.writer.scopes.append(self.names)
        self.writer.imports.append(self.known)

    def __exit__(self, *_: object) -> None:
        self.writer.scopes.pop()
        self.writer.imports.pop()


def _bound(function: ast.AST) -> tuple[list[str], dict[str, str]]:
    """Names that a function binds itself, and what its own imports bind names to."""
    names: dict[str, None] = {}
    imports: dict[str, str] = {}
    outer: set[str] = set()
    waiting = list(reversed(function.body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= _imported(node)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            outer |= set(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = None
            continue
        elif isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            names |= {n.target.id: None for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
            continue
        elif (isinstance(node, ast.ExceptHandler) and node.name) or (
            isinstance(node, ast.MatchAs | ast.MatchStar) and node.name
        ):
            names[node.name] = None
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))
    return [name for name in names if name not in outer], imports


def _is_check(node: ast.stmt) -> bool:
    """Whether a statement can do nothing but raise: assignments to locals, and conditions on them."""
    match node:
        case ast.Raise() | ast.Assert() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(target, ast.Name) for target in targets)
        case ast.If() | ast.For():
            return all(map(_is_check, [*node.body, *node.orelse]))
    return False


def _assigns(test: ast.expr) -> bool:
    return any(isinstance(node, ast.NamedExpr) for node in ast.walk(test))


@cache
def _checksums(module: str, name: str) -> str:
    """The checksums of a data set's files, as JSON; where it comes from and its name do not count."""
    files = getattr(import_module(module), name).files
    return json.dumps(sorted(str(file.sha256) for file in files))


# -- the graph --

_DIGESTS: dict[Symbol, str] = {}


def _digest_of(root: Symbol) -> str:
    if root not in _DIGESTS:
        for component in _components(root):
            _DIGESTS.update(_digests(component))
    return _DIGESTS[root]


def _digests(component: Sequence[Symbol]) -> dict[Symbol, str]:
    """Hashes of symbols that refer to each other, all else that they refer to being hashed already.

    Each begins with its own text and is then, as often as there are symbols, joined with the hashes of
    those it refers to, so that any two that differ come to differ.
    """
    found = dict.fromkeys(component, "self")
    for _ in component:
        found = {symbol: _hashed(_form(symbol), found) for symbol in component}
    if len(component) == 1:
        return {symbol: _first_made_by().get(digest, digest) for symbol, digest in found.items()}
    together = _joined(found.values())
    return {symbol: _joined([digest, together]) for symbol, digest in found.items()}


@cache
def _first_made_by() -> dict[str, str]:
    """The hash of what makes data today → of what made the same data first."""
    entries = json.loads(CONTENTS.read_text(encoding="utf-8")).values()
    return {entry["is"]: entry["was"] for entry in entries}


def _hashed(form: _Form, near: dict[Symbol, str]) -> str:
    children = [near.get(child) or _DIGESTS[child] for child in form.refers_to]
    return hashlib.sha256("\n".join([form.text, *children]).encode()).hexdigest()[:16]


def _components(root: Symbol) -> list[list[Symbol]]:
    """Strongly connected components of what ``root`` needs, each after those it refers to (Tarjan 1972)."""
    index: dict[Symbol, int] = {}
    low: dict[Symbol, int] = {}
    stack: list[Symbol] = []
    found: list[list[Symbol]] = []
    work: list[tuple[Symbol, Iterator[Symbol]]] = []

    def enter(symbol: Symbol) -> None:
        index[symbol] = low[symbol] = len(index)
        stack.append(symbol)
        work.append((symbol, iter(_form(symbol).refers_to)))

    enter(root)
    while work:
        symbol, children = work[-1]
        for child in children:
            if child in _DIGESTS:
                continue
            if child not in index:
                enter(child)
                break
            if child in stack:
                low[symbol] = min(low[symbol], index[child])
        else:
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[symbol])
            if low[symbol] == index[symbol]:
                place = stack.index(symbol)
                found.append(stack[place:])
                del stack[place:]
    return found
