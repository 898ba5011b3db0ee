"""The configurations that an autotuner tries, as far as the text gives them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.concrete import Known
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.source.constants import UNKNOWN
from tl2npu.source.functions import Env, Reader, Scope, TooLong
from tl2npu.source.tree import argument, mentioned

AUTOTUNE = ("tilelang.autotune", "tilelang.autotuner.autotune")
"""Decorators that tune what a factory makes."""
_LIMIT = 256
_STEPS = 100_000
_LISTING = (cst.Assign, cst.Arg, cst.DictElement)


@dataclass(frozen=True, eq=False)
class Config:
    """One configuration: the dict, or what makes them all, and the parameters that it sets."""

    node: cst.CSTNode
    values: Known


@dataclass(frozen=True, eq=False)
class Tuning:
    """The configurations of a factory that can be read; ``unread``: where there are, or may be, others."""

    configs: tuple[Config, ...] = ()
    unread: cst.BaseExpression | None = None


def tuning_of(file: FileKernels, factory: cst.FunctionDef) -> Tuning:
    """What ``@autotune(configs=...)`` gives: literals, comprehensions, and the functions and loops that make them."""
    params = {p.name.value for p in (*factory.params.params, *factory.params.kwonly_params)}
    for decorator in factory.decorators:
        call = decorator.decorator
        if not isinstance(call, cst.Call) or not (file.names.resolve(call.func) in AUTOTUNE or _is_own(file, call)):
            continue
        given = argument(call, "configs", 0)
        if given is not None:
            found, whole = _evaluated(_before(file, factory, given), code(given))
            tables = [{name: value for name, value in table.items() if name in params} for table in found]
            nodes = _places(file, given, len(found))
            whole = whole and not any(value is UNKNOWN for table in tables for value in table.values())
            made = [Config(node, table) for node, table in zip(nodes, tables, strict=True) if table]
            return Tuning(tuple(made[:_LIMIT]), None if whole else given)
    return Tuning()


def _is_own(file: FileKernels, call: cst.Call) -> bool:
    """True for a decorator of the file itself that takes ``configs``."""
    name = call.func.value if isinstance(call.func, cst.Name) else ""
    return any("configs" in {p.name.value for p in own.params.params} for own in file.names.functions.get(name, ()))


def _before(file: FileKernels, factory: cst.FunctionDef, given: cst.BaseExpression) -> str:
    """The statements of the module in front of a factory that an expression in its decorator depends on."""
    body = file.index.module.body
    above = {factory, *file.index.ancestors(factory)}
    front = list(body[: next((place for place, node in enumerate(body) if node in above), len(body))])
    needed, kept = set(mentioned(given)), list[cst.CSTNode]()
    while True:
        more = [node for node in front if node not in kept and needed & _touched(node)]
        if not more:
            return "".join(file.index.module.code_for_node(node) for node in front if node in kept)
        kept += more
        needed.update(*(mentioned(node) for node in more))


def _touched(node: cst.CSTNode) -> set[str]:
    """The names that a statement binds, or may change: those of a function's body are its own."""
    if isinstance(node, cst.FunctionDef):
        return {node.name.value}
    return set(assigned_names(node)) | (set() if isinstance(node, cst.ClassDef) else mentioned(node))


@lru_cache(maxsize=64)
def _evaluated(program: str, given: str) -> tuple[Sequence[dict[str, object]], bool]:
    """The tables that an expression behind a program gives, and whether that is all of them."""
    try:
        tree, node = ast.parse(program), ast.parse(given, mode="eval").body
    except SyntaxError:
        return (), False
    scope = Scope({}, {item.name: item for item in tree.body if isinstance(item, ast.FunctionDef)})
    reader = _Reader(scope, most=_STEPS)
    if isinstance(node, ast.Lambda) or (isinstance(node, ast.Name) and node.id in scope.functions):
        node = ast.Call(node, [], [])  # the tuner calls it
    try:
        reader.run(tree.body, reader.module, scope)
        found = reader.eval(node, {}, scope)
    except (TooLong, RecursionError):
        return (), False
    items = found if isinstance(found, (list, tuple)) else [UNKNOWN]
    tables = [item for item in items if isinstance(item, dict)]
    return tables, len(tables) == len(items) and not (reader.doubtful or reader.guessed)


class _Reader(Reader):
    """Knows what the statements of the module have bound."""

    def __init__(self, scope: Scope, most: int) -> None:
        super().__init__(scope, most=most)
        self.module: Env = {}

    def name(self, name: str, env: Env, scope: Scope) -> object:
        return env[name] if name in env else self.module.get(name, UNKNOWN)


def _places(file: FileKernels, given: cst.BaseExpression, count: int) -> list[cst.CSTNode]:
    """Where each of some configurations stands: an element of a list, or what makes them all."""
    place: cst.CSTNode = given
    target = given.func if isinstance(given, cst.Call) else given
    named = target.value if isinstance(target, cst.Name) else None
    for statement in file.index.module.body if named else ():
        if isinstance(statement, cst.FunctionDef) and statement.name.value == named:
            place = statement
        elif isinstance(statement, cst.SimpleStatementLine):
            lists = (listed for small in statement.body for name, listed in named_lists(small) if name == named)
            place = next(lists, place)
    if isinstance(place, (cst.List, cst.Tuple)) and len(place.elements) == count:
        return [element.value for element in place.elements]
    return [place] * count


def named_lists(node: cst.CSTNode) -> Iterator[tuple[str, cst.List | cst.Tuple]]:
    """``block = [64, 128]``, ``dict(block=[64, 128])``, ``{"block": [64, 128]}``."""
    value = node.value if isinstance(node, _LISTING) else None
    if not isinstance(value, (cst.List, cst.Tuple)):
        return
    if isinstance(node, cst.Assign):
        yield from ((t.target.value, value) for t in node.targets if isinstance(t.target, cst.Name))
    elif isinstance(node, cst.Arg) and node.keyword is not None:
        yield node.keyword.value, value
    elif isinstance(node, cst.DictElement) and isinstance(node.key, cst.SimpleString):
        yield str(node.key.evaluated_value), value
