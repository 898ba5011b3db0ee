"""``triton.autotune`` and ``triton.heuristics``: the values that they give to parameters."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tl2npu.source.triton_imports import LAUNCH_CACHES
from tl2npu.triton.refused import Refused

_MOST = 64
"""Configurations of a comprehension that are told apart."""


Constant = int | float | bool | str | None


class _Unseen(Exception):
    """The values of the configurations are computed, or stand elsewhere."""


@dataclass
class Tuning:
    """``values``: parameter -> the value of the chosen configuration, which has this ``number`` of so ``many``;
    ``filtered``: the file chooses among them; ``given``: the values are the user's;
    ``heuristics``: parameter -> what computes it from the arguments."""

    values: dict[str, Constant] = field(default_factory=dict)
    number: int = 0
    many: int = 1
    filtered: bool = False
    given: bool = False
    heuristics: dict[str, ast.Lambda] = field(default_factory=dict)
    line: int | None = None


def tuning(
    kernel: ast.FunctionDef,
    constants: Mapping[str, ast.expr],
    functions: Mapping[str, ast.FunctionDef],
    first: Mapping[str, ast.expr],
    number: int = 0,
    *,
    path: Callable[[ast.expr], str],
    given: Mapping[str, Constant] = MappingProxyType({}),
) -> Tuning:
    """What the decorators of a kernel decide. Raises ``Refused``.

    ``functions``: those of the file; ``first``: what the module sets names to before any condition changes that;
    ``number``: of the configuration that is chosen, from 0; ``path``: what a dotted name means by the imports.
    ``given``: the user's values for constants, where the configurations of ``autotune`` are not seen.
    """
    found = Tuning(number=number)
    params = {arg.arg for arg in (*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs)}
    for node in kernel.decorator_list:
        func = node.func if isinstance(node, ast.Call) else node
        name = ast.unparse(func)
        meaning = path(func)
        last = meaning.rpartition(".")[2]
        if name in functions:
            raise Refused("TL543", node.lineno, f"the decorator `{name}` may change the kernel")
        if last == "jit" or (meaning in LAUNCH_CACHES and isinstance(node, ast.Call)):
            continue
        if last == "autotune" and isinstance(node, ast.Call):
            try:
                _autotune(node, {**first, **constants}, functions, found)
            except _Unseen as unseen:
                values = {name: value for name, value in given.items() if name in params}
                if not values:
                    raise Refused(
                        "TL514", node.lineno, f"{unseen}, and `--tuned` gives none of its constants"
                    ) from None
                found = replace(found, values=values, many=1, filtered=False, given=True, line=node.lineno)
        elif last == "heuristics" and isinstance(node, ast.Call):
            _heuristics(node, functions, params, found)
        else:
            raise Refused("TL543", node.lineno, f"the decorator `{name}` may change the kernel")
    return found


def _autotune(
    node: ast.Call, constants: Mapping[str, ast.expr], functions: Mapping[str, ast.FunctionDef], found: Tuning
) -> None:
    words = {word.arg: word.value for word in node.keywords}
    configs = node.args[0] if node.args else words.get("configs")
    given = configs
    configs = _unfiltered(configs, constants)
    found.filtered = configs is not given and not isinstance(given, ast.Name)
    configs = _returned(configs, functions) or configs
    items = configs.elts if isinstance(configs, (ast.List, ast.Tuple)) else []
    calls = [item for item in items if isinstance(item, ast.Call)]
    if isinstance(configs, ast.ListComp) and isinstance(configs.elt, ast.Call):
        calls = _turns(configs, constants)
    hooks = [word for call in (node, *calls[:1]) for word in call.keywords if word.arg in ("pre_hook", "post_hook")]
    if any(not isinstance(word.value, ast.Constant) and not _only_blocks(word.value, functions) for word in hooks):
        raise Refused("TL514", node.lineno, "a hook of `autotune` runs before or after the kernel")
    if not calls or (not calls[0].args and not any(word.arg == "kwargs" for word in calls[0].keywords)):
        raise _Unseen("the configurations of `autotune` are not written out")
    found.many = len(calls)
    one = calls[found.number]
    chosen = one.args[0] if one.args else next((w.value for w in one.keywords if w.arg == "kwargs"), None)
    if isinstance(chosen, ast.Call) and ast.unparse(chosen.func) == "dict" and not chosen.args:
        chosen = ast.Dict([ast.Constant(w.arg) for w in chosen.keywords], [w.value for w in chosen.keywords])
    which = "the first" if found.number == 0 else "a"
    if not isinstance(chosen, ast.Dict):
        raise _Unseen(f"{which} configuration of `autotune` is no dictionary")
    for key, value in zip(chosen.keys, chosen.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(value, ast.Constant):
            raise _Unseen(f"{which} configuration of `autotune` is not written out")
        found.values[str(key.value)] = value.value  # type: ignore[assignment]
    found.line = node.lineno


def _unfiltered(node: ast.expr | None, constants: Mapping[str, ast.expr]) -> ast.expr | None:
    """The configurations behind ``list(filter(keep, configs))`` and ``[c for c in configs if keep(c)]``."""
    for _ in range(8):
        match node:
            case ast.Name() if node.id in constants:
                node = constants[node.id]
            case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner]):
                node = inner
            case ast.Call(func=ast.Name(id="filter"), args=[_, inner]):
                node = inner
            case ast.ListComp(elt=ast.Name(), generators=[turns]) if ast.unparse(turns.target) == node.elt.id:  # type: ignore[attr-defined]
                node = turns.iter
            case _:
                break
    return node


def _only_blocks(hook: ast.expr, functions: Mapping[str, ast.FunctionDef]) -> bool:
    """True for a hook that does nothing but give tensor descriptors of the host their block."""
    function = functions.get(hook.id) if isinstance(hook, ast.Name) else None
    waiting = list(function.body) if function is not None else []
    while waiting:
        stmt = waiting.pop()
        part = stmt.test if isinstance(stmt, ast.If) else stmt
        calls = [node for node in ast.walk(part) if isinstance(node, ast.Call)]
        if any(ast.unparse(call.func) != "isinstance" for call in calls):
            return False
        match stmt:
            case ast.If():
                waiting += [*stmt.body, *stmt.orelse]
            case ast.Return(value=None) | ast.Assign(targets=[ast.Name()]):
                pass
            case ast.Assign(targets=[ast.Attribute(attr="block_shape")]):
                pass
            case _:
                return False
    return function is not None


def _returned(
    node: ast.expr | None, functions: Mapping[str, ast.FunctionDef], seen: tuple[str, ...] = ()
) -> ast.expr | None:
    """The first list of configurations that a function of the file returns, of those for several GPUs."""
    if isinstance(node, (ast.List, ast.Tuple, ast.ListComp)):
        return node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args or node.keywords:
        return None
    name = node.func.id
    if name not in functions or name in seen:
        return None
    returns = sorted((n for n in ast.walk(functions[name]) if isinstance(n, ast.Return)), key=lambda n: n.lineno)
    lists = (_returned(item.value, functions, (*seen, name)) for item in returns)
    return next((found for found in lists if found is not None), None)


def _written_out(node: ast.expr, constants: Mapping[str, ast.expr]) -> list[ast.expr]:
    """The elements of a list, of the first of two between which the file chooses; none where they are not seen."""
    for _ in range(8):
        match node:
            case ast.Name() if node.id in constants:
                node = constants[node.id]
            case ast.IfExp():
                node = node.body
    return list(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else []


def _turns(comp: ast.ListComp, constants: Mapping[str, ast.expr]) -> list[ast.Call]:
    """The elements of a comprehension over values that are written out; the first alone if it filters them."""
    lists = [(part.target, _written_out(part.iter, constants)) for part in comp.generators]
    names = [target.id for target, found in lists if found and isinstance(target, ast.Name)]
    values = [found for target, found in lists if found and isinstance(target, ast.Name)]
    turns = itertools.islice(itertools.product(*values), _MOST)
    if any(part.ifs for part in comp.generators):
        turns = itertools.islice(turns, 1)

    class Put(ast.NodeTransformer):
        def __init__(self, turn: tuple[ast.expr, ...]) -> None:
            self.turn = dict(zip(names, turn, strict=True))

        def visit_Name(self, node: ast.Name) -> ast.expr:
            return self.turn.get(node.id, node)

    found = [Put(turn).visit(ast.parse(ast.unparse(comp.elt), mode="eval").body) for turn in turns]
    return [call for call in found if isinstance(call, ast.Call)]


def _heuristics(
    node: ast.Call, functions: Mapping[str, ast.FunctionDef], params: Container[str], found: Tuning
) -> None:
    values = node.args[0] if node.args else next((word.value for word in node.keywords if word.arg == "values"), None)
    if not isinstance(values, ast.Dict):
        raise Refused("TL514", node.lineno, "the heuristics are not written out")
    for key, value in zip(values.keys, values.values, strict=True):
        if isinstance(key, ast.Constant) and key.value not in params:
            continue  # an option of the compiler
        if isinstance(value, ast.Name) and isinstance(functions.get(value.id), ast.FunctionDef):
            value = _as_lambda(functions[value.id])
        if not isinstance(key, ast.Constant) or not isinstance(value, ast.Lambda) or len(value.args.args) != 1:
            shown = ast.unparse(key) if key is not None else "**"
            raise Refused("TL514", node.lineno, f"the heuristic of {shown} is no function of the arguments")
        found.heuristics[str(key.value)] = value


def _as_lambda(function: ast.FunctionDef) -> ast.expr:
    """A function that computes one expression as a lambda."""
    value = one_expression(function)
    return ast.Constant(None) if value is None else ast.Lambda(function.args, value)


def one_expression(function: ast.FunctionDef) -> ast.expr | None:
    """What a function returns after assignments that each give a new name its only value; None for other functions."""
    taken = {arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    values: dict[str, ast.expr] = {}

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return values.get(node.id, node)

    for stmt in function.body:
        match stmt:
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) if name not in taken and name not in values:
                values[name] = Put().visit(ast.parse(ast.unparse(stmt.value), mode="eval").body)
            case ast.Return() if stmt.value is not None:
                return stmt.value if not values else Put().visit(ast.parse(ast.unparse(stmt.value), mode="eval").body)
            case _:
                return None
    return None
