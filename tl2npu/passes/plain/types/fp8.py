"""TL100: with ``--fp8 float16`` a kernel has float16 in place of 8-bit floats, before anything else is done with it.

What is read stays exact (:mod:`tl2npu.dialects.fp8`). What the kernel rounds to fp8 is no longer rounded, and a cast no
longer saturates; a clamp that the kernel writes stays. What would change its meaning is refused by TL191: questions
about the type, bits of its values, limits of a type that is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from tl2npu.dialects.fp8 import LARGEST, held
from tl2npu.kernel.access import accesses
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Memory, Op
from tl2npu.passes.job import Job
from tl2npu.passes.plain.types.reach import arguments, bound_names, of_others, parts
from tl2npu.passes.plain.types.values import LIBRARY, TypeValues
from tl2npu.passes.plain.unsupported.types import types_named, types_of
from tl2npu.source.edits import Edits
from tl2npu.source.index import Index
from tl2npu.source.literals import text_of
from tl2npu.source.names import LANGUAGE, Names
from tl2npu.source.tree import calls_in, names_in, walk

_LIMITS = {LANGUAGE + "max_value": 1, LANGUAGE + "min_value": -1}
_BITS = frozenset({LANGUAGE + "reinterpret", LANGUAGE + "view"})


def as_float16(job: Job) -> Job:
    """The job with float16 for its 8-bit floats; the job itself if it has none or nobody asks for this.

    Raises :class:`Blocked` where the kernel would mean something else.
    """
    if job.options.fp8 != "float16":
        return job
    narrow = {buffer.name: kind for buffer, kind in _narrow(job)}
    written = list(_written(job, TypeValues(job)))
    if not narrow and not written:
        return job
    done = job.copied()
    _refuse_bits(done, narrow)
    edits = Edits(done.file.index)
    for node, new in written:
        edits.replace(node, new)
        done.change("TL100", node, f"`{code(node)}` -> `{code(new)}`")
    _tell(done, narrow)
    done.apply(edits)
    return done


def _narrow(job: Job) -> Iterator[tuple[Buffer, str]]:
    """The buffers that may have a type of 8 bits, with the type."""
    for buffer, types in types_of(job):
        kind = next((held(name) for name in types if held(name)), "")
        if kind:
            yield buffer, kind


def _tell(job: Job, narrow: dict[str, str]) -> None:
    """What callers have to do, and which results have more digits than before."""
    buffers = job.kernel.buffers
    written = {a.operand.buffer.name for stmt in job.kernel.walk() for a in accesses(stmt) if a.writes}
    tensors = [name for name in narrow if name in buffers and buffers[name].memory is Memory.GM]
    given, results = [n for n in tensors if n not in written], [n for n in tensors if n in written]
    if given:
        text = "pass fp8 tensors as `x.to(torch.float16)`, which keeps every value"
        job.note("TL100", buffers[given[0]].node, f"now float16: {_listed(given)}; {text}", "warning", done=True)
    if rounded := _rounded(job, narrow):
        kinds = " and ".join(sorted({narrow[name] for name in rounded}))
        names = list(dict.fromkeys((*rounded, *results)))
        text = f"values are no longer rounded to {kinds}, nor limited to its range by the conversion"
        job.note("TL100", buffers[rounded[0]].node, f"now float16: {_listed(names)}; {text}", "warning")
    elif results:
        text = "callers get float16 tensors with the same values"
        job.note("TL100", buffers[results[0]].node, f"now float16: {_listed(results)}; {text}", "warning", done=True)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _rounded(job: Job, narrow: dict[str, str]) -> list[str]:
    """The buffers of 8 bits to which the kernel gives other values than such ones."""
    found: dict[str, None] = {}
    for stmt in job.kernel.walk():
        if isinstance(stmt, Copy) and stmt.src.buffer.name in narrow:
            continue
        if isinstance(stmt, Op) and stmt.op.name == "clear":
            continue
        for access in accesses(stmt):
            if access.writes and access.operand.buffer.name in narrow:
                found.setdefault(access.operand.buffer.name)
    return list(found)


def _refuse_bits(job: Job, narrow: dict[str, str]) -> None:
    for call in calls_in(job.located.node):
        if job.file.names.resolve(call.func) not in _BITS:
            continue
        of_type = any(isinstance(node, cst.BaseExpression) and fp8_name(job.file.names, node) for node in walk(call))
        if of_type or any(name.value in narrow for name in names_in(call)):
            raise Blocked("TL191", call, f"`{code(call)}` reads the bits of fp8 values, which float16 does not have")


def _written(job: Job, values: TypeValues) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The expressions that name a type of 8 bits, each with what takes its place."""
    index, names = job.file.index, job.file.names
    top, own, others = job.file.index.top(job.located.node), parts(job), list(of_others(job))
    aside = {id(other) for other in others}
    inside = bound_names(top) if isinstance(top, cst.FunctionDef) else set()
    constants = _constants(job, values) - inside
    helpers = [node for part in own if part is not top and _alone(job, part, own) for node in walk(part, aside)]
    done: set[int] = set()
    of_host = [*helpers, *arguments(job, own, others)]
    outside = {id(node) for node in of_host}
    for node in (*walk(top, aside), *of_host):
        if not isinstance(node, cst.BaseExpression) or any(id(above) in done for above in index.ancestors(node)):
            continue
        new = _limit(job, node) or float16_for(index, names, node, constants)
        if new is None or (id(node) in outside and is_of_torch(names, node) and not _is_given(job, node)):
            continue
        compared = any(isinstance(above, cst.Comparison) for above in index.ancestors(node))
        if compared and not isinstance(index.statement(node), cst.Assert):
            text = f"the kernel asks whether a type is `{code(node)}`: with float16 the answer is another one"
            raise Blocked("TL191", node, text)
        done.add(id(node))
        yield node, new


def _alone(job: Job, part: cst.CSTNode, own: list[cst.CSTNode]) -> bool:
    """A function of the module that nothing but this kernel uses. Constants stay, and what they say is written out."""
    if not isinstance(part, cst.FunctionDef) or job.elsewhere[part.name.value]:
        return False
    mine = {id(item) for item in own if isinstance(item, cst.FunctionDef)}
    uses = [n for n in names_in(job.module) if n.value == part.name.value and n is not part.name]
    return all(any(id(above) in mine for above in job.file.index.ancestors(use)) for use in uses)


def _is_given(job: Job, node: cst.BaseExpression) -> bool:
    """Whether a caller passes a type to the factory itself."""
    arg = job.file.index.parent(node)
    call = job.file.index.parent(arg) if isinstance(arg, cst.Arg) else None
    factory = job.located.factory
    return isinstance(call, cst.Call) and factory is not None and code(call.func) == factory.node.name.value


def _constants(job: Job, values: TypeValues) -> set[str]:
    """Names of the module that only stand for types of 8 bits."""
    lines = [line for line in job.module.body if isinstance(line, cst.SimpleStatementLine)]
    names = {name for line in lines for name in bound_names(line)}
    known = {name: values.within(cst.Name(name), None) for name in names}
    return {name for name, found in known.items() if found and all(held(kind) for kind in found)}


def _limit(job: Job, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``448.0`` for ``T.max_value(T.float8_e4m3fn)``: limits are those of the type that the author had in mind."""
    if not isinstance(node, cst.Call) or len(node.args) != 1:
        return None
    name = job.file.names.resolve(node.func) or ""
    if name not in (*_LIMITS, LANGUAGE + "infinity", "torch.finfo"):
        return None
    given = node.args[0].value
    kinds = {kind if kind is None else held(kind) for kind in types_named(job, given)} or {None}
    if kinds <= {""} or (kinds <= {"", None} and not re.search("float8|fp8", job.original.code)):
        return None
    kind = (kinds.pop() if len(kinds) == 1 else "") or ""
    if name == "torch.finfo" and kind and isinstance(given, cst.Attribute):
        return node
    sign = _LIMITS.get(name)
    if sign is None or kind not in LARGEST:
        raise Blocked("TL191", node, f"`{code(node)}` is another number for float16")
    number: cst.BaseExpression = cst.Float(str(LARGEST[kind]))
    return number if sign > 0 else cst.UnaryOperation(cst.Minus(), number)


def float16_for(
    index: Index, names: Names, node: cst.BaseExpression, constants: set[str] | frozenset[str] = frozenset()
) -> cst.BaseExpression | None:
    """float16, spelled as the node spells a type of 8 bits; None for what is no such type or only names one.

    ``constants``: variables that stand for such types.
    """
    parent = index.parent(node)
    if isinstance(node, cst.SimpleString):
        key = isinstance(parent, (cst.Index, cst.Expr)) or (isinstance(parent, cst.DictElement) and parent.key is node)
        return None if key or not fp8_name(names, node) else cst.SimpleString('"float16"')
    if isinstance(node, cst.Call):
        made = LIBRARY.get(names.resolve(node.func) or "")
        if made is None:
            return None
        torch = is_of_torch(names, node)
    elif isinstance(node, (cst.Name, cst.Attribute)):
        if isinstance(parent, (cst.ImportAlias, cst.ImportFrom, cst.AsName, cst.AssignTarget)):
            return None
        if (isinstance(parent, cst.Attribute) and node is parent.attr) or parent is None:
            return None
        named = isinstance(parent, cst.Param) and node is parent.name
        if named or (isinstance(parent, cst.Arg) and node is parent.keyword):
            return None
        if not fp8_name(names, node) and not (isinstance(node, cst.Name) and node.value in constants):
            return None
        torch = is_of_torch(names, node)
    else:
        return None
    spelled = names.spell("torch.float16" if torch else LANGUAGE + "float16", at=node)
    if isinstance(node, cst.Attribute) and not isinstance(node.value, cst.Call):
        return node.with_changes(attr=cst.Name("float16"))
    return cst.SimpleString('"float16"') if spelled is None else cst.parse_expression(spelled)


def is_of_torch(names: Names, node: cst.BaseExpression) -> bool:
    """Whether a type is one of torch: host code makes tensors of it."""
    if isinstance(node, cst.Call):
        return (names.resolve(node.func) or "").endswith(".determine_torch_fp8_type")
    return (names.resolve(node) or "").startswith("torch.")


def fp8_name(names: Names, node: cst.BaseExpression) -> str:
    """The type of 8 bits that an expression names outright: a string, ``T.float8_e4m3fn``, ``torch.float8_e5m2``."""
    if isinstance(node, cst.SimpleString):
        return held(str(text_of(node)))
    if not isinstance(node, (cst.Name, cst.Attribute)):
        return ""
    resolved = names.resolve(node) or ""
    name = resolved.rpartition(".")[2]
    outright = isinstance(node, cst.Attribute) or node.value == name
    return held(name) if outright and resolved in (LANGUAGE + name, "torch." + name) else ""
