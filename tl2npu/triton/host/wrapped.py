"""Kernels that are made without ``@``: ``k = triton.jit(k)``, ``k = triton.autotune(configs, key)(triton.jit(k))``.

They are read as the decorators that they are. A function that runs as a kernel by any other way is named, so that no
kernel is passed over in silence.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass

from tl2npu.source.triton_imports import triton_name

_JIT = ("triton.jit", "triton.runtime.jit", "triton.runtime.jit.jit")
_WRAPPERS = ("torch.library.wrap_triton", "torch._library.triton.wrap_triton", "torch._library.capture_triton")
_OF_KERNELS = frozenset(f"triton.language.{name}" for name in ("program_id", "load", "store", "num_programs"))


def meaning(node: ast.expr, aliases: Mapping[str, str]) -> str:
    """The path of a dotted name by the imports."""
    first, _, rest = ast.unparse(node).partition(".")
    return triton_name(f"{aliases.get(first, first)}.{rest}".rstrip("."))


def is_jit(node: ast.expr, aliases: Mapping[str, str]) -> bool:
    """True for ``triton.jit`` as a decorator, with options or without."""
    if isinstance(node, ast.Call):
        of = node.args[0] if _is_partial(node, aliases) else node.func
        return is_jit(of, aliases) and not isinstance(of, ast.Call)
    return meaning(node, aliases) in _JIT


def _is_partial(node: ast.Call, aliases: Mapping[str, str]) -> bool:
    return bool(node.args) and meaning(node.func, aliases).rpartition(".")[2] == "partial"


def of_module(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that a module runs itself, those in the arms of its ``if`` and ``try`` too."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, (ast.If, ast.Try)):
            handlers = [inner for handler in getattr(stmt, "handlers", ()) for inner in handler.body]
            yield from of_module([*stmt.body, *handlers, *stmt.orelse, *getattr(stmt, "finalbody", ())])


def without_wrappers(tree: ast.Module, aliases: Mapping[str, str]) -> None:
    """``torch.library.wrap_triton(kernel)[grid]`` as ``kernel[grid]``, which launches the same. Changes the tree."""
    for node in ast.walk(tree):
        of = node.value if isinstance(node, ast.Subscript) else None
        if isinstance(node, ast.Subscript) and isinstance(of, ast.Call) and meaning(of.func, aliases) in _WRAPPERS:
            node.value = of.args[0] if len(of.args) == 1 and not of.keywords else of


def own_names(values: Mapping[str, ast.expr], aliases: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names that the module gives to what it imports: ``pow = libdevice.pow``, ``wrap = partial(triton.jit, ...)``."""
    for name, node in values.items():
        of = node.args[0] if isinstance(node, ast.Call) and _is_partial(node, aliases) else node
        if isinstance(of, ast.Name) and of.id in aliases and is_jit(of, aliases):
            yield name, "triton.jit"
        elif isinstance(of, ast.Attribute) and ast.unparse(of).partition(".")[0] in aliases:
            yield name, meaning(of, aliases)


def names_by_version(tree: ast.Module, aliases: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names that arms of an ``if`` or ``try`` of the module give to one function of Triton, wherever it has it."""
    found: dict[str, list[str]] = {}
    for stmt in tree.body:
        if isinstance(stmt, (ast.If, ast.Try)):
            for node in ast.walk(stmt):
                target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
                if isinstance(node, ast.Assign) and isinstance(target, ast.Name):
                    path = meaning(node.value, aliases) if isinstance(node.value, ast.Attribute) else ""
                    found.setdefault(target.id, []).append(path)
    stored = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    for name, paths in found.items():
        of_triton = all(path.startswith("triton.") for path in paths)
        if of_triton and stored[name] == len(paths) and len({path.rpartition(".")[2] for path in paths}) == 1:
            yield name, paths[0]


@dataclass(frozen=True)
class Wrapping:
    """A function that a statement of the module makes a kernel, and the name that the kernel gets."""

    function: ast.FunctionDef
    name: str
    stmt: ast.Assign
    layers: tuple[ast.expr, ...]


def as_decorators(tree: ast.Module, aliases: Mapping[str, str]) -> dict[str, tuple[ast.Assign, ...]]:
    """Put what is wrapped around functions into their decorators; by the function, the statements that did it.

    Changes the tree, from which these statements go; the function's own name takes the place of that of the kernel.
    Only for functions of the module that nothing else uses by a name that is not the kernel's.
    """
    top = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    times = Counter(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    functions = {node.name: node for node in top if times[node.name] == 1}
    used = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    stored = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    made: dict[str, tuple[ast.Assign, ...]] = {}
    names: dict[str, str] = {}
    ways: dict[str, list[Wrapping]] = {}
    for stmt in tree.body:
        if (item := _wrapping(stmt, functions, aliases, ways)) is not None:
            ways.setdefault(item.name, []).append(item)
    for kernel, items in ways.items():
        name, first = items[0].function.name, items[0].stmt
        own = kernel == name or (used[name] == 1 and kernel not in functions)
        if own and stored[kernel] == len(items) and first.lineno > items[0].function.lineno:
            for item in items:
                item.function.decorator_list[:0] = item.layers
                tree.body.remove(item.stmt)
            made[name], names[kernel] = tuple(item.stmt for item in items), name
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return made


def _wrapping(
    stmt: ast.stmt,
    functions: Mapping[str, ast.FunctionDef],
    aliases: Mapping[str, str],
    before: Mapping[str, list[Wrapping]],
) -> Wrapping | None:
    """``k = one(two(three)(k))``, where one of the layers, one of those ``before``, or a decorator of ``k``, is
    ``triton.jit``."""
    target = stmt.targets[0] if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 else None
    if not isinstance(stmt, ast.Assign) or not isinstance(target, ast.Name):
        return None
    layers: list[ast.expr] = []
    inner = stmt.value
    while isinstance(inner, ast.Call) and inner.args and not isinstance(inner.args[0], ast.Starred):
        options = ast.Call(inner.func, inner.args[1:], inner.keywords)
        more = len(inner.args) > 1 or inner.keywords
        layers.append(ast.copy_location(options, inner) if more else inner.func)
        inner = inner.args[0]
    again = before.get(inner.id, ()) if isinstance(inner, ast.Name) and inner.id == target.id else ()
    function = again[0].function if again else functions.get(inner.id) if isinstance(inner, ast.Name) else None
    if function is None:
        return None
    known = (*layers, *(layer for item in again for layer in item.layers), *function.decorator_list)
    if not any(is_jit(node, aliases) for node in known):
        return None
    return Wrapping(function, target.id, stmt, tuple(layers)) if layers else None


def plain_decorators(tree: ast.Module, aliases: Mapping[str, str]) -> None:
    """``triton.jit`` itself in the place of other names for it, and of ``eval`` what it reads. Changes the tree."""
    jit = ast.parse("triton.jit", mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [_evaluated(item) for item in node.decorator_list]
            node.decorator_list = [
                item if _is_plain(item) or not is_jit(item, aliases) else ast.copy_location(deepcopy(jit), item)
                for item in node.decorator_list
            ]


def _evaluated(node: ast.expr) -> ast.expr:
    """``@eval("triton.heuristics(...)")`` as the decorator itself."""
    text = node.args[0] if isinstance(node, ast.Call) and ast.unparse(node.func) == "eval" and node.args else None
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return node
    found = ast.parse(text.value.strip(), mode="eval").body
    for part in ast.walk(found):
        ast.copy_location(part, node)
    return found


def _is_plain(node: ast.expr) -> bool:
    func = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(func).rpartition(".")[2] == "jit"


def unused_names(text: str, aliases: Mapping[str, str]) -> Iterator[ast.stmt]:
    """Statements of a module that only give things of Triton names that nothing reads any more."""
    tree = ast.parse(text)
    used = [
        {node.id for node in ast.walk(stmt) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        for stmt in tree.body
    ]
    for place, stmt in enumerate(tree.body):
        names = None if isinstance(stmt, (ast.Import, ast.ImportFrom)) else _named(stmt, aliases)
        if names and not any(names & others for number, others in enumerate(used) if number != place):
            yield stmt


def unused_helpers(text: str, decorators: Iterable[ast.expr]) -> list[ast.FunctionDef]:
    """Functions of a module that only decorators of kernels called, and one another, which are gone."""
    functions = [stmt for stmt in ast.parse(text).body if isinstance(stmt, ast.FunctionDef)]
    named = {stmt.name: stmt for stmt in functions}
    needed = {node.id for part in decorators for node in ast.walk(part) if isinstance(node, ast.Name)}
    waiting = list(needed & named.keys())
    while waiting:
        inner = {node.id for node in ast.walk(named[waiting.pop()]) if isinstance(node, ast.Name)} & named.keys()
        waiting += inner - needed
        needed |= inner
    unused = {name: stmt for name, stmt in named.items() if name in needed and not stmt.decorator_list}
    while True:
        rest = [stmt for stmt in ast.parse(text).body if getattr(stmt, "name", "") not in unused]
        used = {node.id for stmt in rest for node in ast.walk(stmt) if isinstance(node, ast.Name)}
        texts = (n.value for stmt in rest for n in ast.walk(stmt) if isinstance(n, ast.Constant))
        used |= {text for text in texts if isinstance(text, str)}  # `__all__`
        if not used & unused.keys():
            return list(unused.values())
        unused = {name: stmt for name, stmt in unused.items() if name not in used}


def _named(stmt: ast.stmt, aliases: Mapping[str, str]) -> set[str] | None:
    """The names that a statement gives things of Triton, if it does nothing else."""
    if isinstance(stmt, (ast.Import, ast.ImportFrom)):
        modules = [stmt.module or ""] if isinstance(stmt, ast.ImportFrom) else [alias.name for alias in stmt.names]
        ours = all(module.partition(".")[0] == "triton" for module in modules)
        return {alias.asname or alias.name.partition(".")[0] for alias in stmt.names} if ours else None
    if isinstance(stmt, ast.Assign):
        target = stmt.targets[0] if len(stmt.targets) == 1 else None
        of_triton = isinstance(stmt.value, ast.Attribute) and meaning(stmt.value, aliases).startswith("triton.")
        known = isinstance(target, ast.Name) and (of_triton or is_jit(stmt.value, aliases))
        return {target.id} if isinstance(target, ast.Name) and known else None
    if not isinstance(stmt, (ast.If, ast.Try)):
        return None
    handlers = [inner for handler in stmt.handlers for inner in handler.body] if isinstance(stmt, ast.Try) else []
    found = [_named(inner, aliases) for inner in (*stmt.body, *handlers, *stmt.orelse)]
    return None if None in found else {name for names in found for name in names or ()}


def unread(tree: ast.Module, aliases: Mapping[str, str]) -> Iterator[ast.FunctionDef]:
    """Functions with a kernel's operators that nothing which is read makes a kernel."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    jitted = (node for node in functions if any(is_jit(item, aliases) for item in node.decorator_list))
    known = {id(inner) for node in jitted for inner in ast.walk(node)}
    for node in functions:
        if id(node) in known:
            continue
        inside = [n for stmt in node.body for n in _own(stmt)]
        if any(isinstance(n, ast.Call) and meaning(n.func, aliases) in _OF_KERNELS for n in inside):
            yield node


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those in it, without functions in it."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _own(child)
