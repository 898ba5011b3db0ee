"""TL451: environment variables that only the compiler of AscendNPU IR reads, in a file without such a kernel."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.passes.host.imports import without_unused
from tl2npu.results import KernelResult
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.names import Names

VARIABLES = frozenset({"TILELANG_ASCEND_MODE", "TILELANG_ASCEND_WORKSPACE_SIZE"})

Said = list[tuple[cst.CSTNode, str]]


def of_file(original: cst.Module, module: cst.Module, kernels: Sequence[KernelResult]) -> tuple[cst.Module, Said]:
    """The module without the variables, if every kernel for AscendNPU IR was migrated; what went."""
    own = [kernel for kernel in kernels if kernel.source == "npuir"]
    if not own or not all(kernel.rewritten for kernel in own):
        return module, []
    index = Index.of(module)
    names = Names(index)
    edits = Edits(index)
    gone: Said = []
    for statement in index.statements:
        name = _variable(statement, names)
        if name:
            edits.remove(statement)
            gone.append((statement, f"removed `{name}`, which only AscendNPU IR reads"))
    if not gone:
        return module, []
    bare, imports = without_unused(original, index.after(edits.apply(module)), ("os",))
    return bare, [*gone, *((node, f"removed the unused `{name}`") for node, name in imports)]


def _variable(statement: cst.CSTNode, names: Names) -> str:
    """The variable that ``os.environ["..."] = value``, or ``os.environ.setdefault(...)``, sets."""
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        if isinstance(target, cst.Subscript) and len(target.slice) == 1 and _is_environment(target.value, names):
            inner = target.slice[0].slice
            return _known(inner.value) if isinstance(inner, cst.Index) else ""
    if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
        call = statement.value
        func = call.func
        plain = isinstance(func, cst.Attribute) and func.attr.value in ("setdefault", "pop")
        if plain and isinstance(func, cst.Attribute) and call.args and _is_environment(func.value, names):
            return _known(call.args[0].value)
        if names.resolve(func) in ("os.putenv", "os.unsetenv") and call.args:
            return _known(call.args[0].value)
    return ""


def _is_environment(node: cst.BaseExpression, names: Names) -> bool:
    return names.resolve(node) == "os.environ" or code(node) == "os.environ"


def _known(node: cst.BaseExpression) -> str:
    text = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return text if isinstance(text, str) and text in VARIABLES else ""
