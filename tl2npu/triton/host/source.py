"""A file with Triton kernels: which functions are kernels, what its names mean, where kernels are launched."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType

from tl2npu.across.decided import decided
from tl2npu.across.symbols import Chosen, Constant, Definition, External, Function, Symbols
from tl2npu.across.tables import Module, function_name
from tl2npu.dialects.triton.tle import HINTS, RANGES, tle_name
from tl2npu.source.benchmark import model_of
from tl2npu.source.functions import Scope
from tl2npu.source.triton_imports import REEXPORTS, triton_name
from tl2npu.triton.host.evaluate import Host
from tl2npu.triton.host.evidence import Evidence
from tl2npu.triton.host.expressions import LaunchSite
from tl2npu.triton.host.held import launches_by_name
from tl2npu.triton.host.ranks import ranks
from tl2npu.triton.host.whiles import with_counted_loops
from tl2npu.triton.host.wrapped import (
    as_decorators,
    is_jit,
    meaning,
    names_by_version,
    of_module,
    own_names,
    plain_decorators,
    unread,
    without_wrappers,
)
from tl2npu.triton.read.spec import Source
from tl2npu.triton.read.values import Value

_ORDER = frozenset({"pipe_stages", "pipe_orders", "executors"})


def without_hints(function: ast.FunctionDef, aliases: Mapping[str, str]) -> list[tuple[int, str]]:
    """Put the bodies of ``with tle.pipeline_group(...)`` and ``with tle.dsa.hint(...)`` in their place.

    Changes the tree. Returns the lines of the hints that asked for an order or for cores, and their text.
    """
    unwrap = _Unwrap(aliases)
    unwrap.visit(function)
    return unwrap.dropped


class _Unwrap(ast.NodeTransformer):
    def __init__(self, aliases: Mapping[str, str]) -> None:
        self.aliases = aliases
        self.dropped: list[tuple[int, str]] = []

    def name(self, node: ast.expr) -> str | None:
        """The name in TLE of a function that is called."""
        if not isinstance(node, ast.Call):
            return None
        first, _, rest = ast.unparse(node.func).partition(".")
        return tle_name(f"{self.aliases[first]}.{rest}".rstrip(".")) if first in self.aliases else None

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.AST]:
        self.generic_visit(node)
        found = [self.name(item.context_expr) for item in node.items]
        if not all(name in HINTS for name in found) or any(item.optional_vars for item in node.items):
            return node
        if "pipeline_group" in found:
            self.dropped.append((node.lineno, f"`{ast.unparse(node.items[0].context_expr)}`"))
        return list(node.body)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        if self.name(node.iter) in RANGES and isinstance(node.iter, ast.Call):
            words = [word.arg for word in node.iter.keywords if word.arg in _ORDER]
            self.dropped += [(node.lineno, f"`{word}`") for word in words]
        return node


@dataclass
class Elsewhere:
    """``file``: where the text stands that imports. ``read``: the source of another module, and its device functions.

    ``found``: by their names in the file, the device functions; ``constants``, ``aliases`` and ``unset`` are those of
    :class:`Source`.
    """

    file: Path
    symbols: Symbols
    read: Callable[[Path, str], tuple[Source, dict[str, ast.FunctionDef]] | None]
    found: dict[str, tuple[ast.FunctionDef, Source]] = field(default_factory=dict)
    constants: dict[str, Value] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    unset: dict[str, str] = field(default_factory=dict)

    def look(self, names: Iterable[str]) -> None:
        """Look for what the module binds to names by its imports, and to nothing else."""
        for name in sorted(names):
            self._take(name, self.symbols.defined(self.file, name))

    def _take(self, name: str, found: Definition | None) -> None:
        variable = found.variable if isinstance(found, Chosen) else ""
        found = found.found if isinstance(found, Chosen) else found
        self.unset |= {name: variable} if variable else {}
        if isinstance(found, Constant):
            value = found.value
            if value is None or isinstance(value, (bool, int, float, str)):
                self.constants[name] = value
        elif isinstance(found, External) and found.dotted.startswith("triton."):
            self.aliases[name] = found.dotted
        elif isinstance(found, Function) and found.module.path != self.file:
            other = self.read(found.module.path, found.module.text)
            if other is not None and found.node.name in other[1]:
                self.found[name] = other[1][found.node.name], other[0]


_MODULES = ("triton", "math", "torch", "numpy", *{name.split(".")[0] for name in REEXPORTS})


@dataclass(frozen=True)
class TritonFile:
    """A parsed file. ``jitted``: its ``triton.jit`` functions; ``kernels``: those launched or reading program ids;
    ``hints``: by kernel, the lines and texts of hints that are left out; ``twice``: names of more than one function;
    ``chosen``: ``if`` statements in place of launches of one of two kernels. ``made``: by kernel, the statements that
    make it one, where these are no decorators. ``scope``: what the code around kernels sees. ``kept``: what was worked
    out of the file, for those that ask again.
    """

    tree: ast.Module
    source: Source
    jitted: dict[str, ast.FunctionDef]
    kernels: dict[str, ast.FunctionDef]
    launches: list[LaunchSite]
    values: dict[str, ast.expr]
    hints: dict[str, list[tuple[int, str]]]
    twice: frozenset[str] = frozenset()
    chosen: tuple[ast.If, ...] = ()
    made: Mapping[str, tuple[ast.Assign, ...]] = field(default_factory=dict)
    scope: Scope = field(default_factory=lambda: Scope({}, {}))
    kept: dict[object, object] = field(default_factory=dict)

    @property
    def unread(self) -> list[ast.FunctionDef]:
        """Functions that run as kernels in a way that is not read."""
        return list(unread(self.tree, self.source.aliases))

    @cached_property
    def rebound(self) -> frozenset[str]:
        """Names that the file gives a function, a class or a value of its own, or imports from several modules."""
        found: Counter[str] = Counter(name for name, _ in set(aliases_of(self.tree)))
        own = {name for name, count in found.items() if count > 1}
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                own.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
        return frozenset(own)

    def path(self, node: ast.expr) -> str:
        """What a dotted name means: its path by the imports; the text itself where none shows it, or the file has
        another meaning for it, too."""
        text = ast.unparse(node)
        first, _, rest = text.partition(".")
        if first in self.rebound:
            return text
        return triton_name(f"{self.source.aliases.get(first, first)}.{rest}".rstrip("."))

    def under(
        self, site: LaunchSite, assumed: Mapping[str, bool], guessed: Mapping[str, int] = MappingProxyType({})
    ) -> LaunchSite | None:
        """A launch as it is where conditions of its function hold or do not; None where it is not made then.
        ``guessed``: ranks of tensors that only the axes show that it asks for."""
        found: list[LaunchSite] = []
        scope = site.scope
        assert site.function is not None
        host = _host(site.function, scope.kernels, scope.functions, deepcopy(scope.evidence), found, assumed)
        host.given, host.ranks = (ranks.guessing(guessed) for ranks in (host.given, host.ranks))
        host.parameters()
        host.run(site.function.body)
        made = next((item for item in found if item.place == site.place), None)
        return made.where(site.given) if made is not None and site.given else made


def parse(text: str, path: Path | None = None, symbols: Symbols | None = None) -> TritonFile:
    """The file. Raises ``SyntaxError``.

    ``symbols`` looks up what it imports from other modules of the repository, if it is known where the file stands.
    """
    tree = ast.parse(text)
    aliases = dict(aliases_of(tree))
    values = dict(_set_once(tree))
    unset = _choose_functions(tree, values, aliases)
    aliases = {**dict(own_names(values, aliases)), **dict(names_by_version(tree, aliases)), **aliases}
    without_wrappers(tree, aliases)
    made = as_decorators(tree, aliases)
    plain_decorators(tree, aliases)
    jitted = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(is_jit(item, aliases) for item in node.decorator_list)
    }
    chosen = tuple(launches_by_name(tree, jitted))
    hints = {name: without_hints(node, aliases) for name, node in jitted.items()}
    for node in jitted.values():
        with_named_constants(node)
        with_counted_loops(node)
    launched = {
        node.func.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name)
    }
    calls = (n.func for function in jitted.values() for n in ast.walk(function) if isinstance(n, ast.Call))
    called = {func.id for func in calls if isinstance(func, ast.Name)}
    kernels = {
        name: node for name, node in jitted.items() if name in launched or (name not in called and _reads_program(node))
    }
    counted = Counter(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in jitted)
    twice = frozenset(name for name, count in counted.items() if count > 1)
    known = {name: node for name, node in jitted.items() if name not in twice}
    source = Source(known, dict(_constants(values)), aliases, unset=unset)
    if path is not None and symbols is not None and jitted:
        source = _with_imports(source, path, symbols, {})
    scope = _scope(tree, values, path, symbols)
    return TritonFile(tree, source, jitted, kernels, _launches(tree, jitted), values, hints, twice, chosen, made, scope)


def _choose_functions(tree: ast.Module, values: Mapping[str, ast.expr], aliases: Mapping[str, str]) -> dict[str, str]:
    """Leave out device functions, and Triton's, where the module chooses another one; by the name of that, the
    environment variable that must not be set. Changes the tree."""

    def function(stmt: ast.stmt) -> str:
        of = stmt.value if isinstance(stmt, ast.Assign) else None
        return function_name(stmt) if of is None or meaning(of, aliases).startswith("triton.") else ""

    launched = {ast.unparse(node.value) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    unset: dict[str, str] = {}
    for stmt in of_module(tree.body):
        verdict = decided(stmt.test, values) if isinstance(stmt, ast.If) else None
        if isinstance(stmt, ast.If) and verdict is not None:
            live, dead = verdict.arms(stmt)
            own = {name for name in map(function, live) if name} - launched
            gone = [function(item) in own for item in dead]
            dead[:] = [ast.copy_location(ast.Pass(), item) if go else item for item, go in zip(dead, gone, strict=True)]
            unset |= dict.fromkeys(own, verdict.unset) if verdict.unset else {}
    return unset


def _scope(tree: ast.Module, values: Mapping[str, ast.expr], path: Path | None, symbols: Symbols | None) -> Scope:
    """What code of a module sees, with what the module sets names to before any condition changes that."""
    first: dict[str, ast.expr] = {}
    for stmt in of_module(tree.body):
        if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
            first.setdefault(stmt.targets[0].id, stmt.value)

    for owner in (stmt for stmt in tree.body if isinstance(stmt, ast.ClassDef)):
        for name, value in _set_once(ast.Module(owner.body, [])):
            first.setdefault(f"{owner.name}.{name}", value)

    @cache
    def elsewhere(name: str) -> tuple[ast.FunctionDef | ast.expr, Scope] | None:
        found = symbols.defined(path, name) if path is not None and symbols is not None else None
        if isinstance(found, Constant):
            return ast.parse(repr(found.value), mode="eval").body, Scope({}, {})
        if isinstance(found, Function):
            return (found.node, of(found.module)) if found.module.path != path else None
        table = symbols.module(path) if path is not None and symbols is not None else None
        bindings = table.bindings.get(name, ()) if table is not None else ()
        if symbols is None or path is None or len(bindings) != 1 or not bindings[0].dotted or not bindings[0].attribute:
            return None
        place = symbols.locate(path, bindings[0].dotted)
        module = symbols.module(place) if place is not None else None
        if module is None:
            return None
        scope, name = of(module), bindings[0].attribute
        return (scope.values[name], scope) if name in scope.values else scope.elsewhere(name)

    def of(module: Module) -> Scope:
        return _scope(module.tree, dict(_set_once(module.tree)), module.path, symbols)

    return Scope({**first, **values}, functions(tree), elsewhere)


def _with_imports(source: Source, path: Path, symbols: Symbols, read: dict[Path, Source | None]) -> Source:
    """The source with what its device functions take from other modules. ``read``: modules that are known already."""

    def other(file: Path, text: str) -> tuple[Source, dict[str, ast.FunctionDef]] | None:
        if file not in read:
            read[file] = None  # one that imports itself through others
            found = parse(text)
            read[file] = _with_imports(found.source, file, symbols, read)
        made = read[file]
        return (made, dict(made.functions)) if made is not None else None

    names = {node.id for function in source.functions.values() for node in ast.walk(function) if type(node) is ast.Name}
    imports = Elsewhere(path, symbols, other)
    imports.look(names - source.functions.keys() - source.constants.keys())
    aliases = {**source.aliases, **imports.aliases}
    return replace(
        source,
        constants={**source.constants, **imports.constants},
        aliases=aliases,
        elsewhere=imports.found,
        unset={**source.unset, **imports.unset},
    )


def _set_once(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """What the module assigns to names that nothing sets again."""
    times: Counter[str] = Counter()
    for stmt in tree.body:
        inside = list(ast.walk(stmt))
        times.update(name for node in inside if isinstance(node, ast.Global) for name in node.names)
        if not isinstance(stmt, (ast.FunctionDef, ast.ClassDef)):
            times.update(node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    for stmt in tree.body:
        target = stmt.targets[0] if isinstance(stmt, ast.Assign) else getattr(stmt, "target", None)
        value = stmt.value if isinstance(stmt, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(target, ast.Name) and value is not None and times[target.id] == 1:
            yield target.id, value


def aliases_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What names mean by the imports of a file, as far as Triton's kernels ask."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in _MODULES:
                    yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            known = REEXPORTS.get(node.module, {})
            for alias in node.names:
                yield alias.asname or alias.name, known.get(alias.name, f"{node.module}.{alias.name}")


def _reads_program(node: ast.FunctionDef) -> bool:
    """True for what runs as a kernel: it asks for its program, and returns nothing, as Triton lets no kernel do."""
    inside = list(ast.walk(node))
    returns = any(isinstance(item, ast.Return) and item.value is not None for item in inside)
    return not returns and any(isinstance(item, ast.Attribute) and item.attr == "program_id" for item in inside)


def _constants(values: dict[str, ast.expr]) -> Iterator[tuple[str, Value]]:
    for name, node in values.items():
        while isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "constexpr" and node.args:
            node = node.args[0]
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            continue
        if isinstance(value, (bool, int, float, str)) or value is None:
            yield name, value


def functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Functions and methods by name; methods as ``Class.method`` too, ``forward`` of autograd as ``Class.apply`` and by
    the name that ``name = Class.apply`` gives it."""
    found: dict[str, ast.FunctionDef] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    found[f"{node.name}.{item.name}"] = item
        elif isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, node)
    found |= {f"{name[:-8]}.apply": node for name, node in found.items() if name.endswith(".forward")}
    for stmt in tree.body:
        if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
            applied = found.get(ast.unparse(stmt.value)) if isinstance(stmt.value, ast.Attribute) else None
            if applied is not None:
                found[stmt.targets[0].id] = applied
    return found


def _launches(tree: ast.Module, jitted: dict[str, ast.FunctionDef]) -> list[LaunchSite]:
    """Every launch. Functions are read twice, callers first, so that what they show of parameters is known."""
    known = functions(tree)
    plain = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name not in jitted]
    plain.sort(key=lambda node: -node.lineno)
    evidence = Evidence()
    sites: list[LaunchSite] = []
    names = frozenset(jitted)
    model = model_of(tree)
    run = [] if model is None else ast.parse(f"{model}(*get_init_inputs())(*get_inputs())").body
    for turn in range(3):
        sites = []
        module = Host(None, names, known, evidence, sites.append)
        body = [stmt for stmt in tree.body if not isinstance(stmt, (ast.FunctionDef, ast.ClassDef, ast.Import))]
        module.run([*body, *run])
        for node in plain:
            _host(node, names, known, evidence, sites).run(node.body)
            for types in evidence.types(node.lineno):
                _host(node, names, known, evidence, [], types=types).run(node.body)
        if turn and not evidence.tensors:
            break
    seen: dict[tuple[int, int, str], LaunchSite] = {}
    for site in sites:
        seen.setdefault(site.place, site)
    return sorted(seen.values(), key=lambda site: site.call.lineno)


def _host(
    function: ast.FunctionDef,
    names: frozenset[str],
    known: Mapping[str, ast.FunctionDef],
    evidence: Evidence,
    sites: list[LaunchSite],
    assumed: Mapping[str, bool] = MappingProxyType({}),
    types: Mapping[str, str] = MappingProxyType({}),
) -> Host:
    """A function that is about to be read. ``types``: the element types of its parameters in the call in question."""
    host = Host(function, names, known, evidence, sites.append)
    host.assumed, host.types = assumed, types
    host.given, host.ranks = ranks(function, known)
    host.parameters()
    return host


def with_named_constants(function: ast.FunctionDef) -> None:
    """A parameter for each constant that a kernel of Triton 1 takes out of ``**meta``. Changes the tree.

    Not where it does something else with them, or has another variable of the name of one.
    """
    words = function.args.kwarg.arg if function.args.kwarg is not None else None
    if words is None:
        return
    inside = [node for stmt in function.body for node in ast.walk(stmt)]
    uses = sum(isinstance(node, ast.Name) and node.id == words for node in inside)
    items = {id(node): key for node in inside if (key := _key(node, words))}
    same = {id(stmt.targets[0]) for stmt in inside if isinstance(stmt, ast.Assign) and _named(stmt, words)}
    stores = (node for node in inside if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load))
    params = {arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    taken = params | {node.id for node in stores if id(node) not in same}
    names = list(dict.fromkeys(items.values()))
    if uses != len(items) or taken & set(names):
        return

    class Named(ast.NodeTransformer):
        def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
            self.generic_visit(node)
            return ast.copy_location(ast.Name(items[id(node)], ast.Load()), node) if id(node) in items else node

    function.body = [Named().visit(stmt) for stmt in function.body if not _named(stmt, words)]
    constant = ast.parse("tl.constexpr", mode="eval").body
    function.args.kwonlyargs += [ast.copy_location(ast.arg(name, constant), function) for name in names]
    function.args.kw_defaults += [None] * len(names)
    function.args.kwarg = None


def _key(node: ast.AST, words: str) -> str:
    match node:
        case ast.Subscript(value=ast.Name(id=of), slice=ast.Constant(value=str(key))) if of == words:
            return key
    return ""


def _named(stmt: ast.stmt, words: str) -> bool:
    """True for ``BLOCK = meta["BLOCK"]``."""
    match stmt:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return _key(value, words) == name
    return False
