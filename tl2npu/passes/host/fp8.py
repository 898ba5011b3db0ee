"""TL100 in host code: kernels of the file take float16 now, where they took 8-bit floats.

A tensor that is converted to fp8 is converted on to float16, which keeps its values: ``x.to(torch.float8_e4m3fn)``
becomes ``x.to(torch.float8_e4m3fn).to(torch.float16)``. New tensors and types of TileLang become float16. Of all other
places that name a type of torch nobody knows what they are for: they stay, and are told.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.dialects.fp8 import held
from tl2npu.kernel.expressions import code
from tl2npu.passes.plain.types.fp8 import float16_for, is_of_torch
from tl2npu.passes.plain.types.values import LIBRARY
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import Names
from tl2npu.source.tree import names_in

_CONVERTS = frozenset({"to", "type"})
_ANYWAY = frozenset({"to", "float", "half", "double", "bfloat16"})
_MAKES = frozenset(
    f"{new}{name}{like}"
    for name in ("empty", "zeros", "ones", "full")
    for new, like in (("", ""), ("new_", ""), ("", "_like"))
)
Said = list[tuple[cst.CSTNode, str]]


def name_types(index: Index, names: Names, nodes: Sequence[cst.CSTNode], edits: Edits) -> Said:
    """``determine_torch_fp8_type()``, which the NPU's TileLang lacks, becomes the type that it gives."""
    changed: Said = []
    for node in nodes:
        if type(node) is not cst.Call or names.resolve(node.func) not in LIBRARY or not is_of_torch(names, node):
            continue
        text = code(node)
        kind = "float8_e5m2" if "e5m2" in text else "float8_e4m3fn" if not node.args or "e4m3" in text else ""
        torch = names.spell("torch", at=node)
        if kind and torch:
            edits.replace(node, cst.parse_expression(f"{torch}.{kind}"))
            changed.append((node, f"`{text}` -> `{torch}.{kind}`"))
    return changed


def to_float16(index: Index, names: Names, nodes: Sequence[cst.CSTNode], edits: Edits) -> tuple[Said, Said]:
    """Edit host code; what was changed, and what a person has to look at."""
    changed: Said = []
    left: Said = []
    done: set[int] = set()

    def replace(node: cst.BaseExpression, new: cst.BaseExpression) -> None:
        edits.replace(node, new)
        done.add(id(node))
        changed.append((node, f"`{' '.join(code(node).split())}` -> `{' '.join(code(new).split())}`"))

    for node in nodes:
        if not isinstance(node, cst.BaseExpression) or any(id(above) in done for above in index.ancestors(node)):
            continue
        if isinstance(node, cst.Call) and _name(node) in _CONVERTS and _gives_fp8(names, node):
            member = index.parent(node)
            above = index.parent(member) if isinstance(member, cst.Attribute) else None
            if isinstance(above, cst.Call) and _name(above) in _ANYWAY:
                done.add(id(node))
            elif (torch := names.spell("torch.float16", at=node)) is not None:
                replace(node, cst.Call(cst.Attribute(node, cst.Name("to")), [cst.Arg(cst.parse_expression(torch))]))
            continue
        new = float16_for(index, names, node)
        if new is None or _is_limit(index, names, node):
            continue
        place = index.statement(node) or node
        assertion = isinstance(place, cst.Assert)
        if any(isinstance(above, cst.Comparison) for above in index.ancestors(node)) and not assertion:
            left.append((place, f"`{code(node)}` is compared here; the kernels of this file take float16 now"))
        elif assertion or not is_of_torch(names, node) or _is_made(index, node):
            replace(node, new)
            if not is_of_torch(names, node):
                left.append((place, f"`{code(node)}` is float16 now: tensors made of it are not rounded to fp8"))
        elif not _only_converts(index, node):
            left.append((place, f"`{code(node)}` stays here; the kernels of this file take float16 now"))
    return changed, left


def _name(call: cst.BaseExpression) -> str:
    return call.func.attr.value if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) else ""


def _gives_fp8(names: Names, call: cst.Call) -> bool:
    types = [names.resolve(arg.value) or "" for arg in call.args]
    return any(name.startswith("torch.") and held(name) for name in types)


def _only_converts(index: Index, node: cst.BaseExpression) -> bool:
    """The type is kept in a variable from which nothing but conversions takes it: these are followed."""
    assign = index.parent(node)
    if not isinstance(assign, cst.Assign) or not isinstance(target := assign.targets[0].target, cst.Name):
        return False
    scope = index.enclosing(node, cst.FunctionDef) or index.module
    uses = [use for use in names_in(scope) if use.value == target.value and use is not target]
    calls = [index.parent(arg) if isinstance(arg := index.parent(use), cst.Arg) else None for use in uses]
    return len(assign.targets) == 1 and all(isinstance(call, cst.Call) and _name(call) in _CONVERTS for call in calls)


def _is_limit(index: Index, names: Names, node: cst.BaseExpression) -> bool:
    arg = index.parent(node)
    call = index.parent(arg) if isinstance(arg, cst.Arg) else None
    return isinstance(call, cst.Call) and names.resolve(call.func) == "torch.finfo"


def _is_made(index: Index, node: cst.BaseExpression) -> bool:
    """The type of a new tensor: ``torch.empty(shape, dtype=torch.float8_e4m3fn)``."""
    arg = index.parent(node)
    return isinstance(arg, cst.Arg) and isinstance(call := index.parent(arg), cst.Call) and _name(call) in _MAKES
