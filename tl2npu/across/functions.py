"""Functions of other modules: which of them a kernel may be made of, and their text in the names of another file."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import libcst as cst

from tl2npu.across.symbols import Class, Constant, Definition, External, Function, Member, Submodule, Symbols, link_of
from tl2npu.kernel.expressions import code
from tl2npu.source.bound import canonical, is_tilelang, stands_for
from tl2npu.source.forwarding import callee_of

LANGUAGE = "tilelang.language"
Kind = Literal["macro", "maker", "helper", "importer"]
"""A ``T.macro``; a function that only makes macros and returns them; a plain one that makes code for the device; one
that imports the language and returns it."""

_FOLLOWED = 8  # functions that call each other; host code may call half of a repository
_REMEMBERED = frozenset({"functools.cache", "functools.lru_cache"})


class Ungraftable(Exception):
    """A function whose text means nothing in another file; ``str()`` says why."""


def kind_of(function: Function, symbols: Symbols) -> Kind | None:
    """What a function is to a kernel that calls it; None for host code and for factories of kernels."""
    decorators = [_external(function, node, symbols) for node in function.node.decorator_list]
    if decorators == [f"{LANGUAGE}.macro"]:
        return "macro"
    if any(item not in _REMEMBERED for item in decorators):
        return None
    inner = [
        node for node in ast.walk(function.node) if isinstance(node, ast.FunctionDef) and node is not function.node
    ]
    if inner:
        return "maker" if made_by(function, symbols) is not None else None
    if decorators:
        return None
    return "helper" if _is_device_code(function, symbols) else "importer" if _imports_language(function) else None


def forwarded_to(function: Function, symbols: Symbols) -> str | None:
    """What of TileLang a function hands all that it is given to, by its dotted name; None for any other function."""
    node = cst.parse_statement(ast.unparse(function.node))
    found = callee_of(node) if isinstance(node, cst.FunctionDef) else None
    if found is None:
        return None
    callee, always = found
    meant = symbols.valued(function.module, ast.parse(code(callee), mode="eval").body)
    dotted = canonical(meant.dotted) if isinstance(meant, External) else ""
    return dotted if stands_for(dotted, always) else None


def _imports_language(function: Function) -> bool:
    """It has an import of TileLang and takes no arguments; what it returns is told where it is called."""
    imported = [
        name
        for node in ast.walk(function.node)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    ]
    returns = any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function.node))
    return returns and not _parameters(function.node) and any(map(is_tilelang, imported))


def made_by(function: Function, symbols: Symbols) -> list[ast.FunctionDef] | None:
    """The macros that a function defines and returns, in the order in which it returns them; None if it does more."""
    macros: dict[str, ast.FunctionDef] = {}
    *body, last = function.node.body
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            decorators = [_external(function, node, symbols) for node in statement.decorator_list]
            if decorators != [f"{LANGUAGE}.macro"] or statement.name in macros:
                return None
            macros[statement.name] = statement
        elif not (_assigned(statement) or _is_docstring(statement)):
            return None
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    returned = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    names = [item.id if isinstance(item, ast.Name) else "" for item in returned]
    return [macros[name] for name in names] if all(name in macros for name in names) else None


def _external(function: Function, node: ast.expr, symbols: Symbols) -> str | None:
    target = node.func if isinstance(node, ast.Call) else node
    found = symbols.valued(function.module, target) if isinstance(target, (ast.Name, ast.Attribute)) else None
    return found.dotted if isinstance(found, External) else None


def _is_device_code(function: Function, symbols: Symbols) -> bool:
    """It calls operators of the language, not only their arithmetic on sizes, or macros and functions that do."""
    seen = [function]
    for caller in seen:  # grows meanwhile
        for node in ast.walk(ast.Module(caller.node.body, [])):
            if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
                continue
            found = symbols.valued(caller.module, node.func)
            if isinstance(found, External) and found.dotted.startswith(f"{LANGUAGE}."):
                return True
            if not isinstance(found, Function) or any(found.node is known.node for known in seen):
                continue
            if [_external(found, mark, symbols) for mark in found.node.decorator_list] == [f"{LANGUAGE}.macro"]:
                return True
            nested = any(
                isinstance(inner, ast.FunctionDef) for inner in ast.walk(found.node) if inner is not found.node
            )
            if not found.node.decorator_list and not nested and len(seen) < _FOLLOWED:
                seen.append(found)
    return False


def _assigned(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """``name = value``."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return (target.id, statement.value) if isinstance(target, ast.Name) else None
    return None


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


# text ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The file that a text is written for.

    ``spell``: the text for a dotted name of an imported module, None if the file has none. ``keeps``: true if a name
    means there what it is defined as here. ``binds``: true if it means anything. ``helper``: the name that another
    function gets, which is grafted as well.
    """

    spell: Callable[[str], str | None]
    keeps: Callable[[str, Definition], bool]
    binds: Callable[[str], bool]
    helper: Callable[[Function], str]


def text_of(
    function: Function, node: ast.FunctionDef, symbols: Symbols, there: Surroundings, given: Mapping[str, str]
) -> tuple[str, frozenset[str]]:
    """The text of ``node`` (``function`` itself, or one inside it), dedented, in the names of another file.

    ``given``: texts for the variables of a maker. Also: the parameters whose annotations mean nothing there. Raises
    :class:`Ungraftable`.
    """
    text = _segment(function, node)
    tree = ast.parse(text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    free, local = _names(text)
    bare = {
        param.arg
        for param in _parameters(tree)
        if param.annotation is not None and not _means_something(param.annotation, function, symbols, there)
    }
    dropped = {
        id(inner)
        for outer in [tree.returns, *(param.annotation for param in _parameters(tree) if param.arg in bare)]
        if outer is not None
        for inner in ast.walk(outer)
    }
    new: list[tuple[ast.expr, str]] = []
    for found, root in _uses(tree, free, dropped):
        replaced = given.get(root.id)
        done = _translated(found, root, function, symbols, there) if replaced is None else (root, replaced)
        if done is not None:
            new.append(done)
        if root.id in local and (replaced is not None or done is not None):
            raise Ungraftable(f"`{root.id}` means two things in it")
    for _, spelled in new:
        for inner in ast.walk(ast.parse(spelled, mode="eval")):
            if isinstance(inner, ast.Name) and inner.id in local:
                raise Ungraftable(f"`{inner.id}` is a variable of it")
    return _with(text, new), frozenset(bare)


def value_text(
    function: Function, value: ast.expr, symbols: Symbols, there: Surroundings, given: Mapping[str, str]
) -> str:
    """The text of an expression of a function in the names of another file, as an operand."""
    text = ast.unparse(value)
    tree = ast.parse(text, mode="eval").body
    new: list[tuple[ast.expr, str]] = []
    every = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    if any(isinstance(node, (ast.Lambda, ast.comprehension, ast.NamedExpr)) for node in ast.walk(tree)):
        raise Ungraftable("it makes names of its own")
    for found, root in _uses(tree, every, set()):
        replaced = given.get(root.id)
        done = _translated(found, root, function, symbols, there) if replaced is None else (root, replaced)
        new += [done] if done is not None else []
    return operand(_with(text, new))


def operand(text: str) -> str:
    """An expression in parentheses, unless it needs none."""
    node = ast.parse(text, mode="eval").body
    closed = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.Tuple, ast.List)
    bare = isinstance(node, closed) and not (isinstance(node, ast.Tuple) and not text.startswith("("))
    return text if bare else f"({text})"


def _parameters(node: ast.FunctionDef) -> list[ast.arg]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [*every, *(arg for arg in (node.args.vararg, node.args.kwarg) if arg is not None)]


def _segment(function: Function, node: ast.FunctionDef) -> str:
    """The lines of a function with its decorators, moved to the left margin."""
    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
    lines = function.module.lines[first - 1 : node.end_lineno]
    width = node.col_offset
    for inner in ast.walk(node):
        if not isinstance(inner, (ast.JoinedStr, ast.Constant)) or not width:
            continue
        if inner.lineno != inner.end_lineno and not _is_docstring_of(node, inner):
            raise Ungraftable("it holds a string of several lines")
    margin = {line[:width] for line in lines if line.strip()}
    if len(margin) > 1 or any(item.strip() for item in margin):
        raise Ungraftable("its indentation cannot be told")
    text = "".join(line[width:] if line.strip() else line.lstrip(" \t") for line in lines)
    return text if text.endswith(("\n", "\r")) else text + "\n"


def _is_docstring_of(node: ast.FunctionDef, inner: ast.AST) -> bool:
    first = node.body[0]
    return isinstance(first, ast.Expr) and first.value is inner


def _names(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a function takes from around it, and those that it or a function inside it binds."""
    free: set[str] = set()
    local: set[str] = set()
    tables = list(symtable.symtable(text, "<macro>", "exec").get_children())
    top = symtable.symtable(text, "<macro>", "exec")
    free |= {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    while tables:
        table = tables.pop()
        for symbol in table.get_symbols():
            if symbol.is_declared_global() or symbol.is_nonlocal():
                raise Ungraftable(f"it changes `{symbol.get_name()}` of its module")
            (free if symbol.is_global() else local).add(symbol.get_name())
        tables += table.get_children()
    return frozenset(free), frozenset(local)


def _uses(tree: ast.AST, free: frozenset[str], dropped: set[int]) -> Iterator[tuple[ast.expr, ast.Name]]:
    """Every use of a free name with the attributes and fixed items behind it, outermost first, and the name itself."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if id(node) in dropped:
            continue
        root = node
        while isinstance(root, (ast.Attribute, ast.Subscript)) and link_of(root) is not None:
            root = root.value
        if isinstance(root, ast.Name) and isinstance(node, ast.expr):
            if root.id in free and isinstance(root.ctx, ast.Load):
                yield node, root
            continue
        stack += ast.iter_child_nodes(node)


def _means_something(annotation: ast.expr, function: Function, symbols: Symbols, there: Surroundings) -> bool:
    try:
        for inner in ast.walk(annotation):
            if isinstance(inner, ast.Name):
                _translated(inner, inner, function, symbols, there)
    except Ungraftable:
        return False
    return True


def _translated(
    use: ast.expr, root: ast.Name, function: Function, symbols: Symbols, there: Surroundings
) -> tuple[ast.expr, str] | None:
    """What to write for a use of a name: the part of it that is replaced, and the text; None: as it stands."""
    name = root.id
    found = symbols.defined(function.module.path, name)
    kept = found is not None and there.keeps(name, found)
    if kept and not (isinstance(found, Constant) and isinstance(found.value, (tuple, list, dict))):
        return None
    if found is None:
        if name not in function.module.bindings and hasattr(builtins, name) and not there.binds(name):
            return None
        raise Ungraftable(f"it uses `{name}`, which cannot be told from here")
    part: ast.expr = root
    while isinstance(found, (Submodule, Class, Constant, Member)):
        above = next(
            (n for n in ast.walk(use) if isinstance(n, (ast.Attribute, ast.Subscript)) and n.value is part), None
        )
        link = link_of(above) if above is not None else None
        below = symbols.part(found, link) if link is not None else None
        if above is None or below is None:
            break
        part, found = above, below
    if kept and (part is root or isinstance(found, (Class, Member))):
        return None
    if isinstance(found, Constant) and not isinstance(found.value, dict):
        text = repr(found.value)
        return part, f"({text})" if text.startswith("-") or part is not use else text
    if isinstance(found, Function):
        return part, there.helper(found)
    if not isinstance(found, External):
        raise Ungraftable(f"it uses `{name}`, which cannot be told from here")
    spelled = there.spell(found.dotted)
    if spelled is None:
        raise Ungraftable(f"it uses `{name}`, which this file does not import")
    return None if spelled == name else (part, spelled)


def _with(text: str, new: list[tuple[ast.expr, str]]) -> str:
    """The text with other texts in the place of some expressions."""
    lines = text.splitlines(keepends=True)
    for node, spelled in sorted(new, key=lambda item: (item[0].lineno, item[0].col_offset), reverse=True):
        if node.lineno != node.end_lineno or node.end_col_offset is None:
            raise Ungraftable("a name in it is broken over two lines")
        line = lines[node.lineno - 1].encode()
        old = line[node.col_offset : node.end_col_offset].decode(errors="replace")
        if not _reads(old, node):  # inside of f-strings older Pythons do not tell where a name stands
            raise Ungraftable(f"`{ast.unparse(node)}` stands in a string")
        lines[node.lineno - 1] = (line[: node.col_offset] + spelled.encode() + line[node.end_col_offset :]).decode()
    return "".join(lines)


def _reads(text: str, node: ast.expr) -> bool:
    """True if the text is that of an expression."""
    try:
        return ast.unparse(ast.parse(text, mode="eval")) == ast.unparse(node)
    except (SyntaxError, ValueError):
        return False
