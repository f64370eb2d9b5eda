"""Which code a number comes from: a hash over the functions, classes and constants it needs.

An answer of the archive names the fingerprint of the function that measured it and of the code that trained
its network. Equal fingerprints mean that the same statements would run, wherever they are written::

    fingerprint(measure_readout)       # "5f0c9b6a4d21e377", the same after its module was moved or merged

The functions, classes and constants of this project that it refers to are followed, and what these refer to.
The hash of each covers its own syntax and, in place of the names it refers to, the hashes of what they mean
(a Merkle hash; symbols that refer to each other are hashed together).

Left out, since they can move no number: comments, docstrings, annotations, import statements, where a
module lies, names of top-level symbols and of locals, checks of input (an ``if`` that only raises), texts
of errors, the order of methods, and what :data:`OUTSIDE` lists; also fields of classes named ``...Settings``,
for they are in the key of a run (:mod:`companion.runs.keys`). Names of attributes, methods and arguments
count. A data set counts with the checksums of its files alone, and what makes data may be rewritten as long
as they stay the same to the last byte: ``contents.json`` of :mod:`companion.data` names its hash today and
the first one, and a test holds both to what is made.

What is looked up by name while the code runs (a task, a kind of run) has to be given as a root of its own.
"""

import ast
import builtins
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("attnlib", "companion", "notebooks")
ERRORS = "attnlib.errors"
CONTENTS = ROOT / "companion" / "data" / "contents.json"

# Symbols that are left out wherever they are used, by name: files and locks, progress, looking
# things up, arrays taken for tensors and masks that need not be given. A default that is one counts as none.
OUTSIDE = {"atomic_path", "write_json_atomic", "write_text_atomic", "discard_unsound", "load_newest"}
OUTSIDE |= {"save_checkpoint", "Report", "locate", "find", "cache_folder", "takes_arrays", "EVERYWHERE"}
# Modules whose symbols are looked up by name: what they find is a root of its own.
REGISTRIES = frozenset({"companion.data.registry", "companion.runs.registry"})
DATA_SETS = frozenset({"Dataset", "dataset"})  # make a data set: such a constant counts with its checksums

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
_CHECKS = "checks"  # a function without a body that counts
# Arguments, attributes and settings that had another name when answers were archived.
RENAMED = {"procedure": "recipe", "snapshot": "look", "snapshots": "looks", "first_snapshot": "first_look"}
RENAMED |= {"snapshots_per_doubling": "looks_per_doubling"}

Symbol = tuple[str, str]  # module, name
Root = Callable | str
_ELSEWHERE: dict[str, Path] = {}  # files of modules outside of this project whose functions are fingerprinted


def fingerprint(*roots: Root) -> str:
    """Sixteen hex digits over the code that some functions or classes need.

    Args:
        roots: top-level functions or classes, or their names as ``"module:name"``, which imports nothing; in
            any order.

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
    return frozenset(map(":".join, seen))


def data_sets(*roots: Root) -> tuple[str, ...]:
    """The data sets among what a fingerprint covers, as ``module:name`` of their constants, sorted."""
    found = (name for name in symbols(*roots) if _form(tuple(name.split(":"))).text.startswith("data "))
    return tuple(sorted(found))


def _defined(root: Root) -> list[Symbol]:
    """The definition that is meant; of a module all."""
    if not isinstance(root, str):
        root = getattr(root, "__wrapped__", root)
        if root.__module__.partition(".")[0] not in PACKAGES:  # it is read from its file, and not followed
            _ELSEWHERE[root.__module__] = Path(root.__code__.co_filename)
        root = f"{root.__module__}:{root.__qualname__}"
    module, _, name = root.partition(":")
    readable = name.isidentifier() and (path_of(module) or path_of(f"{module}.{name}"))
    found = _resolve(module, name) if readable else None
    if isinstance(found, str) and path_of(found):
        return [(found, each) for each in _module(found).definitions]
    if not isinstance(found, tuple):
        raise ValueError(f"{root!r} is no top-level function or class of a module that can be read")
    return [found]


def _joined(digests: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()[:16]


# -- modules and names --


class _Module(NamedTuple):
    """The top level of a module: name → its definitions, or the dotted path that an import binds it to."""

    definitions: dict[str, list[ast.stmt]]
    imports: dict[str, str]


def path_of(module: str) -> Path | None:
    """The file of a module, found by its name so that nothing is imported; None where there is none."""
    if module.partition(".")[0] not in PACKAGES:
        return _ELSEWHERE.get(module)
    base = ROOT.joinpath(*module.split("."))
    return next(filter(Path.is_file, (base.with_suffix(".py"), base / "__init__.py")), None)


@cache
def _module(name: str) -> _Module:
    found = _Module({}, {})
    for statement in _top_level(_as_archived(ast.parse(path_of(name).read_text(encoding="utf-8"))).body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            found.imports.update(_imported(statement))
        elif isinstance(statement, _Function | ast.ClassDef):
            found.definitions.setdefault(statement.name, []).append(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for node in (node for target in targets for node in ast.walk(target)):
                if isinstance(node, ast.Name):
                    found.definitions.setdefault(node.id, []).append(statement)
    return found


def _as_archived(tree: ast.Module) -> ast.Module:
    """The module with the names that :data:`RENAMED` lists as they were."""
    for node in ast.walk(tree):
        for place in ("id", "attr", "arg", *(("name",) if isinstance(node, _Function) else ())):
            if (name := getattr(node, place, None)) in RENAMED:
                setattr(node, place, RENAMED[name])
    return tree


def _top_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, those within ``if`` and ``try`` too, without what only type checkers read."""
    for statement in body:
        match statement:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.If():
                yield from _top_level([*statement.body, *statement.orelse])
            case ast.Try():
                handled = [line for handler in statement.handlers for line in handler.body]
                yield from _top_level([*statement.body, *handled, *statement.orelse, *statement.finalbody])
            case _:
                yield statement


def _imported(statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    if isinstance(statement, ast.ImportFrom):
        return {a.asname or a.name: f"{statement.module}.{a.name}" for a in statement.names}
    return {a.asname or top: a.name if a.asname else top
            for a in statement.names for top in [a.name.partition(".")[0]]}  # fmt: skip


@cache
def _resolve(module: str, name: str) -> Symbol | str | None:
    """What a name means in a module: a symbol of this project, the dotted path of anything else that is
    imported (a module of this project included), or None for a name that is neither."""
    known, dotted = path_of(module) and _module(module), f"{module}.{name}"
    if known and name in known.definitions:
        return (module, name)
    if known and name in known.imports:
        return _at(known.imports[name])
    return dotted if not known or path_of(dotted) else None


def _at(dotted: str) -> Symbol | str:
    """What a dotted path of an import leads to."""
    owner, _, name = dotted.rpartition(".")
    if path_of(dotted) or owner.partition(".")[0] not in PACKAGES or not path_of(owner):
        return dotted
    return _resolve(owner, name) or dotted


# -- one symbol --


class _Form(NamedTuple):
    """The syntax of a symbol as text; a reference to another one is ``<n>``, the n-th of ``refers_to``."""

    text: str
    refers_to: tuple[Symbol, ...]


@cache
def _form(symbol: Symbol) -> _Form:
    module, name = symbol
    writer = _Writer(module)
    parts = [writer.definition(statement, name) for statement in _module(module).definitions[name]]
    return _Form("\n".join(parts), tuple(writer.refers_to))


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
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self._function(statement, "")
            case ast.ClassDef():
                return self._class(statement, "")
            case ast.AugAssign(op=op, value=value):
                return f"{type(op).__name__}= {self._node(value)}"
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        plain = all(isinstance(target, ast.Name) for target in targets)
        place = "" if plain else f"{name} in {[ast.dump(target) for target in targets]}"
        match statement.value:
            case None:
                return f"{place}= nothing"
            case ast.Call(func=ast.Name(id=maker)) if self._makes_data(maker):
                return f"data {_checksums(self.module, name)}"
        return f"{place}= {self._node(statement.value)}"

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
        found = self._global(name)
        if found is None:
            return f"{'builtin' if hasattr(builtins, name) else 'name'} {name}"
        return self._reference(found)

    def _global(self, name: str) -> Symbol | str | None:
        for imports in reversed(self.imports):
            if name in imports:
                return _at(imports[name])
        return _resolve(self.module, name)

    def _reference(self, found: Symbol | str) -> str:
        if isinstance(found, str):
            if path_of(found):  # a module of this project as a value: all that it defines
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
            if isinstance(found, str) and path_of(found):
                member = _resolve(found, node.attr)
                if member is not None:
                    return self._reference(member)
        text = self._node(owner)
        if text.startswith("import "):
            return f"{text}.{node.attr}"
        return "outside" if text == "outside" else f"({text}).{node.attr}"

    # definitions

    def _function(self, node: _Function, name: str) -> str:
        written = map(self._node, node.decorator_list)
        decorators = ",".join(text for text in written if text != "outside")
        names, defaults = self._arguments(node.args)
        places = len(node.args.posonlyargs), len(node.args.args)
        shape = (*places, bool(node.args.vararg), bool(node.args.kwarg))
        bound, imports = _bound(node)
        with self._scope(dict.fromkeys(bound) | {each: f"argument {each}" for each in names}, imports):
            body = self._body(node.body)
        if not body and not decorators:
            return _CHECKS
        return f"def {name}[{decorators}]({shape} {','.join(names)}; {defaults}){{{body}}}"

    def _arguments(self, node: ast.arguments) -> tuple[list[str], str]:
        """Their names, and their defaults as text."""
        names = [*node.posonlyargs, *node.args, *node.kwonlyargs, *filter(None, (node.vararg, node.kwarg))]
        defaults = (self._node(each) if each else "-" for each in (*node.defaults, *node.kw_defaults))
        return [each.arg for each in names], ",".join(text for text in defaults if text != "outside")

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
        methods = sorted((each for each in node.body if isinstance(each, _Function)), key=lambda m: m.name)
        written = filter(lambda text: text != _CHECKS, map(self._method, methods))
        return f"class {name}({','.join(head)}){{{';'.join([*fields, *written])}}}"

    def _method(self, node: _Function) -> str:
        met, self.locals = self.locals, 0  # each numbers its own names, so that their order does not count
        text = self._function(node, node.name)
        self.locals = met
        return text

    @contextmanager
    def _scope(self, names: dict[str, str | None], imports: dict[str, str] | None = None) -> Iterator[None]:
        """Names of a function, lambda or comprehension, while the writer is inside."""
        self.scopes.append(names)
        self.imports.append(imports or {})
        yield
        self.scopes.pop()
        self.imports.pop()

    # statements

    def _body(self, body: Sequence[ast.stmt]) -> str:
        return ";".join(filter(None, map(self._statement, body)))

    def _statement(self, node: ast.stmt) -> str:
        """The normal form of a statement; empty where it can move no number."""
        match node:
            case (
                ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass() | ast.Global() | ast.Nonlocal()
                | ast.Expr(value=ast.Constant())
            ):  # fmt: skip
                return ""
            case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if self._only_checks(name):
                return ""
            case ast.If(body=[ast.Raise()], orelse=[], test=test) if not _named(test):
                return ""
            case ast.Raise(exc=exc):
                return f"raise {self._node(exc.func if isinstance(exc, ast.Call) else exc) if exc else ''}"
            case ast.AnnAssign(target=target, value=value):
                return f"{self._node(target)}={self._node(value)}" if value is not None else ""
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return f"{self._name(node.name)}:{self.definition(node, node.name)}"
            case ast.For():
                head = f"for {self._node(node.iter)} as {self._node(node.target)}"
                body, rest = self._body(node.body), self._body(node.orelse)
                return f"{head}{{{body}}}else{{{rest}}}" if body or rest else ""
            case ast.While() | ast.If():
                test, body, rest = self._node(node.test), self._body(node.body), self._body(node.orelse)
                word = type(node).__name__.lower()
                return f"{word} {test}{{{body}}}else{{{rest}}}" if body or rest or word == "while" else ""
            case ast.With():
                return f"with {','.join(map(self._node, node.items))}{{{self._body(node.body)}}}"
            case ast.Try():
                body = self._body([*node.body, *node.orelse])
                caught = ((text, each.type) for each in node.handlers if (text := self._handler(each)))
                handlers = "".join(f"except {self._node(kind)}{{{text}}}" for text, kind in caught)
                last = self._body(node.finalbody)
                return f"try{{{body}}}{handlers}finally{{{last}}}" if handlers or last else body
        return self._generic(node)

    def _only_checks(self, name: str) -> bool:
        """Whether a name is a function of this project that does nothing but raise on bad input."""
        if any(name in scope for scope in self.scopes):
            return False
        found = self._global(name)
        definitions = _module(found[0]).definitions[found[1]] if isinstance(found, tuple) else [None]
        return all(
            isinstance(each, ast.FunctionDef) and all(map(_is_check, each.body)) for each in definitions
        )

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
            case ast.Lambda():
                names, defaults = self._arguments(node.args)
                with self._scope(dict.fromkeys(names)):
                    listed = ",".join(map(self._name, names))
                    return f"lambda {listed};{defaults}:{self._node(node.body)}"
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case ast.stmt():
                return self._statement(node)
            case ast.AST():
                return self._generic(node)
            case list():
                return f"[{','.join(map(self._node, node))}]"
        return repr(node)

    def _generic(self, node: ast.AST) -> str:
        values = (getattr(node, name, None) for name in node._fields if name not in ("type_comment", "kind"))
        parts = (self._node(value) for value in values if value is not None)
        return f"{type(node).__name__}({','.join(parts)})"

    def _comprehension(self, node: _Comprehension) -> str:
        first = self._node(node.generators[0].iter)  # read outside of the comprehension's own scope
        names = {n.id: None for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        with self._scope(names):
            parts = [first]
            for place, generator in enumerate(node.generators):
                source = "" if place == 0 else self._node(generator.iter)
                tests = ",".join(map(self._node, generator.ifs))
                parts.append(f"{self._node(generator.target)} in {source} if {tests}")
            made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            return f"{type(node).__name__}({';'.join(parts)}: {','.join(map(self._node, made))})"


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
        elif isinstance(node, _Function | ast.ClassDef):
            names[node.name] = None
            continue
        elif isinstance(node, ast.Lambda | _Comprehension):
            names |= dict.fromkeys(_named(node))
            continue
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names[node.name] = None
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))
    return [name for name in names if name not in outer], imports


def _named(node: ast.AST) -> list[str]:
    """Names that ``:=`` binds within an expression."""
    return [each.target.id for each in ast.walk(node) if isinstance(each, ast.NamedExpr)]


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


@cache
def _checksums(module: str, name: str) -> str:
    """The checksums of a data set's files, as JSON; where it comes from and its name do not count."""
    files = getattr(import_module(module), name).files
    return json.dumps(sorted(str(file.sha256) for file in files))


# -- the graph --

_DIGESTS: dict[Symbol, str] = {}


def _digest_of(root: Symbol) -> str:
    """The hash of a symbol, after those of all it needs: component by component (Tarjan 1972)."""
    index: dict[Symbol, int] = {}
    low: dict[Symbol, int] = {}
    stack: list[Symbol] = []

    def visit(symbol: Symbol) -> None:
        index[symbol] = low[symbol] = len(index)
        stack.append(symbol)
        for child in _form(symbol).refers_to:
            if child not in index and child not in _DIGESTS:
                visit(child)
            if child in stack:
                low[symbol] = min(low[symbol], low[child])
        if low[symbol] == index[symbol]:
            place = stack.index(symbol)
            _DIGESTS.update(_digests(stack[place:]))
            del stack[place:]

    if root not in _DIGESTS:
        visit(root)
    return _DIGESTS[root]


def _digests(component: Sequence[Symbol]) -> dict[Symbol, str]:
    """Hashes of symbols that refer to each other. Each is as often as there are symbols joined with those of
    what it refers to, so that any two that differ come to differ."""
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
