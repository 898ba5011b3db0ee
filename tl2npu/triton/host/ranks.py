"""What the host code shows of the ranks of tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tl2npu.triton.host.strides import spread, whole
from tl2npu.triton.host.torch_names import LIKE, SAME, SAME_MORE

Shows = Callable[[str, ast.AST], bool]
"""Whether a use of a name tells something about the value in question."""


@dataclass(frozen=True)
class Ranks:
    """By name: ``sure`` where the shape is unpacked, ``guessed`` by the axes that are asked for."""

    sure: Mapping[str, int]
    guessed: Mapping[str, int]

    def guessing(self, others: Mapping[str, int]) -> Ranks:
        """With other guesses; 0 for none."""
        guessed = {name: others.get(name, rank) for name, rank in self.guessed.items()}
        return Ranks(self.sure, {name: rank for name, rank in guessed.items() if rank})


def ranks(function: ast.FunctionDef, kernels: Mapping[str, ast.FunctionDef]) -> tuple[Ranks, Ranks]:
    """What the uses of names show: of parameters as they are passed, and of what names hold later.

    Behind ``x = x.view(-1, n)`` the axes of ``x`` say nothing of what was passed.
    """
    changed = dict(_changed(function))

    def is_early(name: str, node: ast.AST) -> bool:
        return name not in changed or _end(node) <= changed[name]

    def is_late(name: str, node: ast.AST) -> bool:
        return name not in changed or _end(node) > changed[name]

    return _shown(function, kernels, is_early), _shown(function, kernels, is_late)


def _changed(function: ast.FunctionDef) -> Iterator[tuple[str, tuple[int, int]]]:
    """Parameters that get another value, which may have another rank, and where the first such statement ends.

    In ``if x is None:`` no tensor was passed, so what is behind it speaks of a passed one as well.
    """
    args = function.args
    params = {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    made = {(id(stmt), name) for node in ast.walk(function) for stmt, name in _where_none(node)}
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target, value in (pair for given in node.targets for pair in _pairs(given, node.value)):
                names = {item.id for item in ast.walk(target) if isinstance(item, ast.Name)} & params
                kept = {name for name in names if (id(node), name) in made or _has_same_rank(value, name)}
                found += [(_end(node), name) for name in names - kept]
    for end, name in sorted(found, reverse=True):
        yield name, end


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """``a, b = x, y``: each target with its value."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _where_none(node: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of ``if x is None:``, with the name."""
    match node:
        case ast.If(test=ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)])):
            yield from ((stmt, name) for stmt in node.body)


def _has_same_rank(value: ast.expr, name: str) -> bool:
    """``x.contiguous()``, ``x if x.is_contiguous() else x.contiguous()``, ``torch.empty_like(x)``."""
    if isinstance(value, ast.IfExp):
        return _has_same_rank(value.body, name) and _has_same_rank(value.orelse, name)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr in LIKE:
            return bool(value.args) and _has_same_rank(value.args[0], name)
        return value.func.attr in SAME | SAME_MORE and _has_same_rank(value.func.value, name)
    return isinstance(value, ast.Name) and value.id == name


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0


def _shown(function: ast.FunctionDef, kernels: Mapping[str, ast.FunctionDef], shows: Shows) -> Ranks:
    """Ranks by the uses that count.

    The stride of the first axis alone shows nothing: it is asked for the rows of a matrix. Where a launch passes
    ``*x.stride()``, the kernel has as many parameters for it.
    """
    found: dict[str, int] = {}
    least: dict[str, int] = {}
    for node in ast.walk(function):
        targets = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(targets, ast.Tuple):
            if any(isinstance(target, ast.Starred) for target in targets.elts):
                continue  # `*rows, n = x.shape`
            owner, count, value = node.value, len(targets.elts), node.value
            if isinstance(value, (ast.Tuple, ast.List)):  # `*x.shape, n`
                starred = [item.value for item in value.elts if isinstance(item, ast.Starred)]
                owner, count = starred[0] if len(starred) == 1 else owner, count - len(value.elts) + 1
            if isinstance(owner, ast.Call) and not owner.args and ast.unparse(owner.func).endswith(".size"):
                owner = owner.func
            elif not isinstance(owner, ast.Attribute) or owner.attr != "shape":
                continue
            if isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name) and shows(owner.value.id, owner):
                found.setdefault(owner.value.id, count)
            continue
        number: ast.expr | None = None
        holder: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            number, holder = node.slice, node.value.value
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("stride", "size")
        ):
            number, holder = node.args[0] if node.args else None, node.func.value
        place = number.value if isinstance(number, ast.Constant) else None
        if not isinstance(holder, ast.Name) or not isinstance(place, int) or not shows(holder.id, holder):
            continue
        if place or not ast.unparse(node).startswith(f"{holder.id}.stride("):
            least[holder.id] = max(least.get(holder.id, 0), place + 1)
    dicts = dict[str, dict[str, ast.expr]]()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Dict):
            items = zip(node.value.keys, node.value.values, strict=True)
            given = {str(key.value): value for key, value in items if isinstance(key, ast.Constant)}
            dicts.setdefault(node.targets[0].id, {}).update(given)
    for node in ast.walk(function):
        launched = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(launched, ast.Subscript) and isinstance(launched.value, ast.Name):
            kernel = kernels.get(launched.value.id)
            if kernel is None:
                continue
            for name, rank in whole(node, kernel, dicts):
                least[name] = max(least.get(name, 0), rank * shows(name, launched))
            keys = {name: set(values) for name, values in dicts.items()}
            more = spread(node, kernel, found, least, keys)
            least |= {name: rank for name, rank in more.items() if shows(name, launched)}
    return Ranks(found, {name: rank for name, rank in least.items() if name not in found})
