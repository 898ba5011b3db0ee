"""TL122: dictionaries of ``pass_configs`` that nothing uses, with keys that AscendNPU IR does not have.

``tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC`` fails with the import there, whether a kernel is compiled with it or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import libcst as cst

from tl2npu.dialects.pass_configs import NPUIR_MEMBERS
from tl2npu.passes.names.assignments import bound
from tl2npu.results import KernelResult
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.literals import text_of
from tl2npu.source.names import Names
from tl2npu.source.tree import names_in, nodes_of

_KEYS = ("tilelang.PassConfigKey.", "tilelang.transform.PassConfigKey.")


def of_file(
    module: cst.Module, kernels: Sequence[KernelResult], may_take: Callable[[str], bool]
) -> tuple[cst.Module, list[tuple[cst.CSTNode, str]]]:
    """The module without them, if a kernel became one for AscendNPU IR; the statements that went, with what to say.

    ``may_take``: whether another file may import a name of this one; then the dictionary stays.
    """
    if not any(kernel.rewritten and kernel.target == "npuir" for kernel in kernels):
        return module, []
    index = Index.of(module)
    names = Names(index)
    edits = Edits(index)
    uses = Counter(name.value for name in names_in(module))
    uses.update(str(text_of(node)) for node in nodes_of(module, cst.SimpleString))  # `__all__`, `globals()["name"]`
    gone: list[tuple[cst.CSTNode, str]] = []
    for node in index.statements:
        if index.enclosing(node, cst.FunctionDef, cst.ClassDef) is not None:
            continue
        for name, value in bound(node):
            if uses[name] == 1 and len(list(bound(node))) == 1 and _is_foreign(value, names) and not may_take(name):
                edits.remove(node)
                gone.append((node, f"removed the unused `{name}`: AscendNPU IR does not have its keys"))
    return (edits.apply(module), gone) if gone else (module, [])


def _is_foreign(value: cst.BaseExpression, names: Names) -> bool:
    """A dictionary literal of keys of ``tilelang.PassConfigKey``, at least one of which the branch does not have."""
    if not isinstance(value, cst.Dict) or not value.elements:
        return False
    members = []
    for element in value.elements:
        if not isinstance(element, cst.DictElement) or nodes_of(element, cst.Call):
            return False
        resolved = names.resolve(element.key) or ""
        members += [resolved.removeprefix(prefix) for prefix in _KEYS if resolved.startswith(prefix)]
    return len(members) == len(value.elements) and any(member not in NPUIR_MEMBERS for member in members)
