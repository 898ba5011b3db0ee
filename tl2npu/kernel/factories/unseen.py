"""What looks like a kernel and is not read as one: nothing leads from its names to TileLang."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects import ascend, gpu, npuir
from tl2npu.kernel.expressions import code
from tl2npu.source.bound import is_tilelang, params_of
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import HOLDS_LINES, calls_in, children, last_name, nodes_of

LAUNCHES = frozenset({"Kernel", "ClusterKernel", "CUDASourceCodeKernel"})
_PRIM_FUNC = "prim_func"
_IN_TIR = frozenset({"grid", "serial", "parallel", "unroll", "vectorized", "Buffer", "Tensor", "if_then_else"})
_OPERATORS = (frozenset(ascend.OPERATORS) | frozenset(gpu.OPERATORS) | frozenset(npuir.OPERATORS)) - _IN_TIR - LAUNCHES
_KERNEL_TEXT = re.compile(r"^[ \t]*@[\w.]*\bprim_func\b.*?\bKernel\(", re.MULTILINE | re.DOTALL)
_RUNS_TEXT = frozenset({"exec", "eval", "compile"})

_STRINGS: tuple[type[cst.SimpleString | cst.FormattedString], ...] = (cst.SimpleString, cst.FormattedString)

Place = cst.FunctionDef | cst.With | cst.BaseString


@dataclass(frozen=True, eq=False)
class Unseen:
    """One such place. ``sure``: it is a kernel if it is anything; else a text that may never be executed."""

    node: Place
    name: str
    code: str
    message: str
    sure: bool = True


def unseen(index: Index, names: Names, seen: Container[int]) -> list[Unseen]:
    """Every function or launch that looks like a kernel and is not read, in text order.

    ``seen``: ids of the functions that are read. Plain TIR of TVM, and what other libraries compile, is no kernel: it
    launches nothing by ``with X.Kernel(...)``.
    """
    found = [*_in_blocks(index, names, seen, index.module, ()), *_in_texts(index)]
    return sorted(found, key=lambda item: index.position(item.node).line)


def _in_blocks(
    index: Index, names: Names, seen: Container[int], node: cst.CSTNode, around: tuple[str, ...]
) -> Iterator[Unseen]:
    """The functions below a node, those in a kernel left out, and launches outside of functions."""
    for child in children(node):
        if type(child) is cst.FunctionDef:
            if id(child) in seen or index.foreign(child) is not None:
                continue
            name = ".".join((*around, child.name.value))
            root = _root_of_kernel(child, names)
            if root is not None:
                yield Unseen(child, name, "TL923", _why(child, root, names, index))
            else:
                yield from _in_blocks(index, names, seen, child.body, (*around, child.name.value))
        elif type(child) is cst.ClassDef:
            yield from _in_blocks(index, names, seen, child.body, (*around, child.name.value))
        elif HOLDS_LINES[type(child)]:
            launch = _launch(child) if type(child) is cst.With and not around else None
            if launch is not None and (
                _untraced(launch.func, names) is None or _uses_tiles(child, _before(launch.func))
            ):
                message = f"`with {code(launch.func)}(...)` is not in a function, so it is not read as a kernel"
                assert isinstance(child, cst.With)
                yield Unseen(child, code(launch.func), "TL923", message)
            else:
                yield from _in_blocks(index, names, seen, child, around)


def _root_of_kernel(function: cst.FunctionDef, names: Names) -> cst.BaseExpression | None:
    """What the language is called in a function that looks like a kernel; None for any other function."""
    marks = [d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in function.decorators]
    prim_func = next((mark for mark in marks if last_name(mark) == _PRIM_FUNC), None)
    launch = next(_launches(function.body), None)
    if launch is not None:
        root = _untraced(launch.func, names)
        marked = prim_func is not None or any(
            last_name(mark) in ("macro", "jit", "lazy_jit", "autotune") for mark in marks
        )
        return root if root is not None and (marked or _uses_tiles(function.body, root)) else None
    root = _untraced(prim_func, names) if prim_func is not None else None
    if prim_func is None or root is None:
        return None
    told = names.resolve(prim_func)
    if told is None:  # it may be TIR of TVM as well: what it imports tells
        return root if _uses_tiles(function.body, root) or _mentions_tilelang(names) else None
    return root if not told.startswith("tvm.") and _uses_tiles(function.body, root) else None


def _mentions_tilelang(names: Names) -> bool:
    return any(is_tilelang(dotted.lstrip(".")) or ".tilelang" in dotted for dotted in names.imported)


def _launches(node: cst.CSTNode) -> Iterator[cst.Call]:
    """The launches below a node, those in nested functions left out."""
    for child in children(node):
        launch = _launch(child)
        if launch is not None:
            yield launch
        if HOLDS_LINES[type(child)] and not isinstance(child, (cst.FunctionDef, cst.ClassDef)):
            yield from _launches(child)


def _launch(node: cst.CSTNode) -> cst.Call | None:
    """The ``X.Kernel(...)`` of a ``with``."""
    for item in node.items if type(node) is cst.With else ():
        if isinstance(item.item, cst.Call) and last_name(item.item.func) in LAUNCHES:
            return item.item
    return None


def _untraced(node: cst.BaseExpression, names: Names) -> cst.BaseExpression | None:
    """What stands before the last name of ``X.Kernel``, or that name; None if it is known to be TileLang's."""
    return None if is_tilelang(names.resolve(node) or "") else _before(node)


def _before(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.value if isinstance(node, cst.Attribute) else node


def _uses_tiles(node: cst.CSTNode, root: cst.BaseExpression) -> bool:
    """True if operators of TileLang are called by the same name: ``X.copy(...)``, or bare ones beside a bare name."""
    if isinstance(root, cst.Name) and root.value in (*LAUNCHES, _PRIM_FUNC):
        return any(isinstance(call.func, cst.Name) and call.func.value in _OPERATORS for call in calls_in(node))
    before = code(root) + "."
    return any(code(call.func).removeprefix(before) in _OPERATORS for call in calls_in(node) if last_name(call.func))


def _why(function: cst.FunctionDef, root: cst.BaseExpression, names: Names, index: Index) -> str:
    """Why the language of a function is not known."""
    shown = code(root).split("\n")[0]
    first = root
    while isinstance(first, cst.Attribute):
        first = first.value
    told = names.resolve(root)
    parts = told.lstrip(".").split(".") if told is not None else []
    if "tilelang" in parts:
        reason = f"`{shown}` is `{told}`, this repository's own copy of TileLang"
    elif told is not None:
        reason = f"`{shown}` comes from `{told}`, which does not import TileLang"
    elif isinstance(first, cst.Name) and (owner := _parameter_of(first.value, function, index)) is not None:
        reason = f"`{shown}` is a parameter of `{owner}`"
    else:
        reason = f"cannot tell whether `{shown}` is TileLang"
    return f"`{function.name.value}` looks like a kernel, but {reason}"


def _parameter_of(name: str, function: cst.FunctionDef, index: Index) -> str | None:
    for above in index.ancestors(function):
        if isinstance(above, cst.FunctionDef) and any(param.name.value == name for param in params_of(above.params)):
            return above.name.value
    return None


def _in_texts(index: Index) -> Iterator[Unseen]:
    """Strings with a kernel in them; one that the file executes is surely a kernel."""
    texts: list[cst.SimpleString | cst.FormattedString] = [
        node
        for node in nodes_of(index.module, *_STRINGS)
        if index.foreign(node) is None and _KERNEL_TEXT.search(_text(node))
    ]
    if not texts:
        return
    executed = any(isinstance(c.func, cst.Name) and c.func.value in _RUNS_TEXT for c in calls_in(index.module))
    for node in texts:
        if not isinstance(index.parent(node), cst.Expr):  # a docstring
            yield Unseen(
                node,
                "a string",
                "TL924",
                "this string contains a kernel; kernels in strings are not migrated",
                executed,
            )


def _text(node: cst.SimpleString | cst.FormattedString) -> str:
    if isinstance(node, cst.SimpleString):
        return node.value.replace("\\n", "\n")
    return "".join(part.value for part in node.parts if isinstance(part, cst.FormattedStringText))
