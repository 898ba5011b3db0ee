"""``triton.autotune`` and ``triton.heuristics``: the values that they give to parameters."""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from tl2npu.triton.refused import Refused


@dataclass
class Tuning:
    """``values``: parameter -> the value of the first configuration; ``others``: texts of the other configurations;
    ``heuristics``: parameter -> what computes it from the arguments."""

    values: dict[str, int | float | bool | str | None] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    heuristics: dict[str, ast.Lambda] = field(default_factory=dict)
    line: int | None = None


def tuning(
    kernel: ast.FunctionDef,
    constants: Mapping[str, ast.expr],
    functions: Mapping[str, ast.FunctionDef],
    first: Mapping[str, ast.expr],
) -> Tuning:
    """What the decorators of a kernel decide. Raises ``Refused``.

    ``functions``: those of the file; ``first``: what the module sets names to before any condition changes that.
    """
    found = Tuning()
    params = {arg.arg for arg in (*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs)}
    for node in kernel.decorator_list:
        func = node.func if isinstance(node, ast.Call) else node
        name = ast.unparse(func)
        last = name.rpartition(".")[2]
        if last == "jit":
            continue
        if last == "autotune" and isinstance(node, ast.Call):
            _autotune(node, {**first, **constants}, functions, found)
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
    chosen = configs
    configs = _unfiltered(configs, constants)
    configs = _returned(configs, functions) or configs
    items = configs.elts if isinstance(configs, (ast.List, ast.Tuple)) else []
    calls = [item for item in items if isinstance(item, ast.Call)]
    if isinstance(configs, ast.ListComp) and isinstance(configs.elt, ast.Call):
        calls = [_first_turn(configs)]
    hooks = [word for call in (node, *calls[:1]) for word in call.keywords if word.arg in ("pre_hook", "post_hook")]
    if any(not isinstance(word.value, ast.Constant) and not _only_blocks(word.value, functions) for word in hooks):
        raise Refused("TL514", node.lineno, "a hook of `autotune` runs before or after the kernel")
    if not calls or (not calls[0].args and not any(word.arg == "kwargs" for word in calls[0].keywords)):
        raise Refused("TL514", node.lineno, "the configurations of `autotune` are not written out")
    first = calls[0].args[0] if calls[0].args else next(w.value for w in calls[0].keywords if w.arg == "kwargs")
    if isinstance(first, ast.Call) and ast.unparse(first.func) == "dict" and not first.args:
        first = ast.Dict([ast.Constant(word.arg) for word in first.keywords], [word.value for word in first.keywords])
    if not isinstance(first, ast.Dict):
        raise Refused("TL514", node.lineno, "the first configuration of `autotune` is no dictionary")
    for key, value in zip(first.keys, first.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(value, ast.Constant):
            raise Refused("TL514", node.lineno, "the first configuration of `autotune` is not written out")
        found.values[str(key.value)] = value.value  # type: ignore[assignment]
    found.others = [ast.unparse(call.args[0]) for call in calls[1:] if call.args]
    if chosen is not configs or isinstance(configs, ast.ListComp):
        found.others.append("what the file computes")
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


def _first_turn(comp: ast.ListComp) -> ast.Call:
    """The first element of a comprehension over written-out values."""
    values: dict[str, ast.expr] = {}
    for part in comp.generators:
        if isinstance(part.target, ast.Name) and isinstance(part.iter, (ast.List, ast.Tuple)) and part.iter.elts:
            values[part.target.id] = part.iter.elts[0]

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return values.get(node.id, node)

    found = Put().visit(ast.parse(ast.unparse(comp.elt), mode="eval").body)
    assert isinstance(found, ast.Call)
    return found


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
    """A function of a single return as a lambda."""
    last = function.body[-1]
    if len(function.body) == 1 and isinstance(last, ast.Return) and last.value is not None:
        return ast.Lambda(function.args, last.value)
    return ast.Constant(None)
