"""TL122: ``pass_configs`` of the GPU compiler.

Most of its keys are no members of the NPU's enumeration, so that the file could not even be imported; the others mean
nothing there.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.dialects.pass_configs import ASCEND_KEYS
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.compilations import Compilation
from tl2npu.kernel.factories.configs import key_of
from tl2npu.kernel.factories.positions import compilations
from tl2npu.passes.host.signature import refuse_shared_arguments
from tl2npu.passes.job import Job
from tl2npu.source.edits import Edits
from tl2npu.source.tree import names_in, nodes_of

_MEANT = frozenset(ASCEND_KEYS) | {
    "TL_CONFIG_INDEX_BITWIDTH",
    "TL_DYNAMIC_ALIGNMENT",
    "TIR_ADD_LOWER_PASS",
    "TIR_DISABLE_CSE",
    "TIR_DISABLE_STORAGE_REWRITE",
    "TIR_DISABLE_VECTORIZE",
    "TIR_ENABLE_DEBUG",
    "TIR_ENABLE_EQUIV_TERMS_IN_CSE",
    "TIR_NOALIAS",
    "TIR_SIMPLIFY",
}
"""Keys of the NPU's compiler that are about something that an NPU has."""


def drop_gpu_keys(job: Job, place: int, meant: frozenset[str] = _MEANT) -> None:
    """Remove all keys but those ``meant`` from the ``pass_configs`` of one compilation; an empty argument goes."""
    found = compilations(job.located)[place]
    node = found.kwargs.get("pass_configs")
    if node is None or (isinstance(node, cst.Name) and node.value == "None"):
        return
    literal, definition = _literal(job, node, meant)
    kept = [element for element in literal.elements if _is_kept(job, element, meant)]
    if literal.elements and len(kept) == len(literal.elements):
        return
    edits = Edits(job.file.index)
    refuse_shared_arguments(job, found)
    if not kept:
        _drop_argument(job, edits, found, node, definition)
    elif definition is not None and _is_shared(job, node):
        text = ", ".join(code(element.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for element in kept)
        edits.replace(node, cst.parse_expression(f"{{{text}}}"))
    else:
        for element in literal.elements:
            if all(element is not item for item in kept):
                edits.remove(element)
    gone = [element for element in literal.elements if all(element is not item for item in kept)]
    job.change("TL122", node, "removed from pass_configs: " + ", ".join(_short(element) for element in gone))
    job.apply(edits)


def _short(element: cst.BaseDictElement) -> str:
    key = element.key if isinstance(element, cst.DictElement) else element.value
    return code(key).strip("\"'").rsplit(".", 1)[-1]


def _is_kept(job: Job, element: cst.BaseDictElement, meant: frozenset[str]) -> bool:
    if not isinstance(element, cst.DictElement):
        raise Blocked("TL123", element, "cannot read all keys of pass_configs")
    if key_of(job.file, element.key) in meant:
        return True
    if isinstance(element.key, cst.SimpleString):
        return False
    resolved = job.file.names.resolve(element.key) or ""
    if ".PassConfigKey." in f".{resolved}":
        return False
    raise Blocked("TL123", element, f"cannot read the pass_configs key `{code(element.key)}`")


def _literal(job: Job, node: cst.BaseExpression, meant: frozenset[str]) -> tuple[cst.Dict, cst.CSTNode | None]:
    """The dict that is passed, and the statement of the module that holds it (None: it stands in the call)."""
    if (given := _dict_or_nothing(node)) is not None:
        return given, None
    if isinstance(node, cst.Name):
        given_at: list[cst.Assign | cst.AnnAssign] = [*nodes_of(job.module, cst.Assign)]
        given_at += nodes_of(job.module, cst.AnnAssign)
        stores = [s for s in given_at if _assigns(s, node.value)]
        value = stores[0].value if len(stores) == 1 else None
        held = _dict_or_nothing(value) if value is not None else None
        if held is not None and not _is_changed(job, node.value, meant):
            return held, stores[0]
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and not node.args:
        for statement in job.module.body:
            if isinstance(statement, cst.FunctionDef) and statement.name.value == node.func.value:
                returned = _returned(statement)
                if returned is not None:
                    return returned, statement
    raise Blocked("TL123", node, f"cannot read `pass_configs={code(node)}`")


def _dict_or_nothing(node: cst.BaseExpression) -> cst.Dict | None:
    """The dict in ``{...}``, ``{...} if c else {}`` and ``{...} if c else None``; None for anything else."""
    if isinstance(node, cst.IfExp):
        arms = [arm for arm in (node.body, node.orelse) if code(arm) not in ("None", "{}", "dict()")]
        return _dict_or_nothing(arms[0]) if len(arms) == 1 else None
    return node if isinstance(node, cst.Dict) else None


def _assigns(statement: cst.Assign | cst.AnnAssign, name: str) -> bool:
    targets = [statement.target] if isinstance(statement, cst.AnnAssign) else [t.target for t in statement.targets]
    return [code(target) for target in targets] == [name]


def _is_changed(job: Job, name: str, meant: frozenset[str]) -> bool:
    """The dict is more than an argument: it is looked into, or something is put into it but keys that mean nothing."""
    index = job.file.index
    for found in names_in(job.module):
        parent = index.parent(found)
        is_bound = isinstance(parent, cst.AnnAssign) and parent.target is found
        if found.value != name or is_bound or isinstance(parent, (cst.Arg, cst.AssignTarget)):
            continue
        if not isinstance(parent, cst.Subscript) or not isinstance(index.parent(parent), cst.AssignTarget):
            return True
        key = parent.slice[0].slice
        if not isinstance(key, cst.Index) or _is_kept(job, cst.DictElement(key.value, cst.Name("None")), meant):
            return True
    return False


def _returned(function: cst.FunctionDef) -> cst.Dict | None:
    body = list(function.body.body)
    if len(body) == 1 and isinstance(body[0], cst.SimpleStatementLine) and isinstance(body[0].body[0], cst.Return):
        value = body[0].body[0].value
        return value if isinstance(value, cst.Dict) else None
    return None


def _is_shared(job: Job, node: cst.BaseExpression) -> bool:
    name = next(iter(names_in(node))).value
    uses = sum(1 for found in names_in(job.module) if found.value == name)
    return uses > 2 or bool(job.elsewhere[name])


def _drop_argument(
    job: Job, edits: Edits, found: Compilation, node: cst.BaseExpression, definition: cst.CSTNode | None
) -> None:
    holder = job.file.index.parent(node)
    assert isinstance(holder, (cst.Arg, cst.DictElement))
    edits.remove(holder)
    if definition is not None and not _is_shared(job, node):
        edits.remove(definition)
