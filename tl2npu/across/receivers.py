"""What is asked of a kernel that is passed around: a function of its name has no methods but those it is given."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tl2npu.across.symbols import Function, Symbols
from tl2npu.source.text import SourceError, decode_source, read_bytes

_MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, eq=False)
class Asked:
    """``who`` asks the kernel for an attribute: a function or a file.

    ``above``: the call of it, or what is asked of it in turn; None for any other use.
    """

    who: str
    attribute: str
    above: ast.Call | ast.Attribute | None


def asked_by(path: str, text: str, name: str) -> Iterator[Asked]:
    """What the functions ask of a kernel that a file hands it to.

    Functions that cannot be found ask nothing: they may well do no more than call it.
    """
    file, tree, symbols = Path(path).absolute(), ast.parse(text), Symbols()
    symbols.reads(file, text, tree)
    for maker in _makers(tree, name):
        yield from _asked_of_made(file.name, tree, maker)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            for place in _places(call, name):
                function = _function(symbols, file, tree, call.func)
                param = _param(function.node, place) if function is not None else None
                if function is not None and param is not None:
                    yield from _asked(function.node.name, function.node, {param})


def asked_in(path: Path, names: Collection[str]) -> Iterator[Asked]:
    """The same for another file, that knows the kernel by these names, and what it asks itself."""
    try:
        data = read_bytes(path, _MAX_BYTES)
        text = decode_source(data, len(data)).text
        tree = ast.parse(text)
    except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from _asked(path.name, tree, names)
    for name in names:
        yield from asked_by(str(path), text, name)


def _makers(tree: ast.Module, name: str) -> set[str]:
    """The functions that return the kernel."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(part, ast.Return) and part.value and ast.unparse(part.value) == name for part in node.body)
    }


def _asked_of_made(who: str, tree: ast.Module, maker: str) -> Iterator[Asked]:
    """What is asked of ``maker(...)``, by itself or under a name."""
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == maker]
    kernels = {ast.unparse(call) for call in made}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(node.value is call for call in made):
            kernels |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    yield from _asked(who, tree, kernels)


def _places(call: ast.Call, name: str) -> Iterator[int | str]:
    """Which arguments of a call are the kernel."""
    for place, value in enumerate(call.args):
        if isinstance(value, ast.Starred):
            break
        if ast.unparse(value) == name:
            yield place
    yield from (given.arg for given in call.keywords if given.arg is not None and ast.unparse(given.value) == name)


def _function(symbols: Symbols, file: Path, tree: ast.Module, callee: ast.expr) -> Function | None:
    found = None
    if isinstance(callee, ast.Name):
        found = symbols.defined(file, callee.id)
    elif isinstance(callee, ast.Attribute):
        found = symbols.attributed(file, tree, callee)
    return found if isinstance(found, Function) else None


def _param(node: ast.FunctionDef, place: int | str) -> str | None:
    """The parameter that takes an argument."""
    if isinstance(place, str):
        return place
    params = [*node.args.posonlyargs, *node.args.args]
    return params[place].arg if place < len(params) else None


def _asked(who: str, tree: ast.AST, names: Collection[str]) -> Iterator[Asked]:
    above = {id(part): node for node in ast.walk(tree) for part in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not node.attr.startswith("__") and ast.unparse(node.value) in names:
            user = above[id(node)]
            used = isinstance(user, ast.Attribute) or (isinstance(user, ast.Call) and user.func is node)
            yield Asked(who, node.attr, cast("ast.Call | ast.Attribute", user) if used else None)
