"""Methods of a function under ``tilelang.jit``: an object for a GPU, for an NPU a function that gives the kernel."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.compilations import decorating
from tl2npu.passes.names.definitions import visible_uses
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import nodes_of

_OF_KERNEL = {"compile": "", "get_kernel_source": "get_kernel_source", "get_tir": "prim_func"}
"""Methods that take the arguments of the factory, and what gives the same of the kernel that it makes."""

_OTHERS = frozenset({"func", "par_compile", "func_source", "parse_cache_key", "is_lazy_mode", "initialize_jit_mode"})


def follow(index: Index, names: Names, edits: Edits) -> Iterator[tuple[cst.CSTNode, str]]:
    """Edits that take ``f.compile(...)`` to ``f(...)`` and the like; nodes that change, with what is said of them."""
    done: set[int] = set()
    for method, tuned in _methods(index, names):
        above = index.parent(method)
        new: cst.BaseExpression | None = None
        if isinstance(above, cst.Call) and above.func is method and method.attr.value in _OF_KERNEL:
            new = _of_made(above.with_changes(func=method.value), _OF_KERNEL[method.attr.value])
        elif method.attr.value == "func" and _is_named(above) and not tuned:
            above, new = method, method.value
        if above is not None and new is not None and not any(id(node) in done for node in index.ancestors(above)):
            done.add(id(above))
            edits.replace(above, new)
            yield (
                method,
                f"`{code(method)}`: on Ascend, `tilelang.jit` returns a function that compiles the kernel itself",
            )


def left(index: Index, names: Names) -> Iterator[tuple[cst.Attribute, str]]:
    """The methods that a function does not have, with what is said of them."""
    for method, _ in _methods(index, names):
        yield (method, f"`{code(method)}`: on Ascend, `tilelang.jit` returns a function without `{method.attr.value}`")


def _methods(index: Index, names: Names) -> Iterator[tuple[cst.Attribute, bool]]:
    """Every ``f.method`` of a function under jit; true for one that a tuner calls."""
    for function in nodes_of(index.module, cst.FunctionDef):
        scope = index.enclosing(function, cst.FunctionDef, cst.ClassDef) or index.module
        if isinstance(scope, cst.ClassDef) or not any(True for _ in decorating(function, names, index.module)):
            continue
        for use in visible_uses(scope, function.name.value):
            above = index.parent(use)
            taken = above.attr.value if isinstance(above, cst.Attribute) and above.value is use else ""
            if isinstance(above, cst.Attribute) and (taken in _OF_KERNEL or taken in _OTHERS):
                yield above, len(function.decorators) > 1


def _of_made(made: cst.Call, attribute: str) -> cst.BaseExpression:
    """``f(...)``, ``f(...).prim_func`` or ``f(...).get_kernel_source()``; parentheses stay around the whole."""
    if not attribute:
        return made
    taken: cst.BaseExpression = cst.Attribute(made.with_changes(lpar=(), rpar=()), cst.Name(attribute))
    taken = cst.Call(taken) if attribute.startswith("get_") else taken
    return taken.with_changes(lpar=made.lpar, rpar=made.rpar)


def _is_named(node: cst.CSTNode | None) -> bool:
    """``f.func.__name__``: a function has that itself."""
    return isinstance(node, cst.Attribute) and node.attr.value == "__name__"
