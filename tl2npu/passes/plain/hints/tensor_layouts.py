"""TL129: the layout of a global tensor goes where every kernel of the file that uses it loses it.

The backward pass of attention permutes the gradient of Q in global memory so that a GPU can add to it in wide pieces; a
second kernel undoes the permutation. Without it in both kernels the tensor holds the same values in plain order.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.source.index import Index
from tl2npu.source.tree import last_name, nodes_of


def groups(index: Index) -> dict[str, tuple[int, ...]]:
    """Layout function -> lines of the kernels that give its layout to one of their parameters, if there are several."""
    found: dict[str, set[int]] = {}
    for call in _annotations(index):
        kernel = index.enclosing(call, cst.FunctionDef)
        if not isinstance(kernel, cst.FunctionDef):
            continue
        parameters = {param.name.value for param in (*kernel.params.posonly_params, *kernel.params.params)}
        for key, value in _entries(call):
            name = layout_function(value)
            if isinstance(key, cst.Name) and key.value in parameters:
                found.setdefault(name or "", set()).add(index.position(kernel).line)
    unnamed = found.pop("", set())
    return {name: tuple(sorted(lines)) for name, lines in found.items() if len(lines) > 1 and not lines & unnamed}


def is_shared(index: Index, line: int) -> bool:
    """True if the kernel at a line gives a tensor a layout that another kernel of the file gives, too.

    A kernel with a layout of a tensor that has no name of its own is in no group.
    """
    return any(line in lines for lines in groups(index).values())


def layout_function(node: cst.BaseExpression) -> str | None:
    """The name of the function that makes a layout, for ``make_layout(tensor)``."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and len(node.args) == 1:
        return node.func.value
    return None


def torn(index: Index, migrated: set[int], refused: set[int]) -> dict[int, str]:
    """Lines of migrated kernels whose partner was refused -> the layout function: they must stay as they are, too."""
    found: dict[int, str] = {}
    for name, lines in groups(index).items():
        if refused & set(lines):
            found |= {line: name for line in lines if line in migrated}
    return found


def _annotations(index: Index) -> Iterator[cst.Call]:
    for node in index.statements:
        call = node.value if type(node) is cst.Expr else None
        if isinstance(call, cst.Call) and last_name(call.func) == "annotate_layout":
            yield call


def _entries(call: cst.Call) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    for node in nodes_of(call, cst.DictElement):
        yield node.key, node.value


def without_unused(original: Index, module: cst.Module) -> cst.Module:
    """The module without those layout functions that nothing uses any more."""
    for name in groups(original):
        uses = [node for node in nodes_of(module, cst.Name) if node.value == name]
        if len(uses) == 1:
            body = [line for line in module.body if not (isinstance(line, cst.FunctionDef) and line.name is uses[0])]
            module = module.with_changes(body=body)
    return module
