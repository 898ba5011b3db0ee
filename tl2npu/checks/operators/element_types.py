"""TL710, TL711: operators and conversions on element types that the vector core of A2 and A3 has no instruction for.

The tables and their sources are in :mod:`tl2npu.dialects.element_types`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.operators.types import types_of
from tl2npu.checks.operators.vector_form import ParallelStore, all_broadcast, parallel_stores
from tl2npu.checks.row_split.split import is_element
from tl2npu.checks.subject import PTO, Finding, Subject
from tl2npu.dialects import element_types
from tl2npu.kernel.bfloat_scalars import converted
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Alloc, Buffer, Copy, Memory, Op, Operand, Scalar
from tl2npu.source.tree import nodes_of

_CALLS = {"max": "max", "min": "min", "abs": "abs", "exp": "exp", "log": "log", "sqrt": "sqrt", "rsqrt": "rsqrt"}
_CALLS |= {"bitwise_and": "&", "bitwise_or": "|", "shift_left": "<<", "shift_right": ">>"}
_BYTES = frozenset({"int8", "uint8"})
_UNCONVERTED = {Memory.GM, Memory.L1, Memory.L0A, Memory.L0B}
_TRUTHS = ("True", "False")


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about operators, copies and the vector forms of ``T.Parallel``."""
    if subject.options.device not in element_types.DEVICES:
        return
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Alloc):
            yield from _tile(subject, stmt)
        elif isinstance(stmt, Copy):
            yield from _copy(subject, stmt)
        elif isinstance(stmt, Op) and stmt.op.name == "tile.cast":
            yield from _cast(subject, stmt)
        elif isinstance(stmt, Op):
            yield from _operator(subject, stmt)
    for store in parallel_stores(subject):
        yield from _store(subject, store)
    yield from _scalars(subject)


def _of_some_calls(subject: Subject, buffer: Buffer, node: cst.CSTNode, name: str, shown: str) -> Iterator[Finding]:
    """An operation that lacks bfloat16, on a tile whose type is open: said once for each name of a type."""
    types = types_of(subject, buffer)
    if (types and "bfloat16" not in types) or not element_types.takes(name, "float16", target=subject.target):
        return
    if element_types.takes(name, "bfloat16", target=subject.target):
        return
    told = subject.kept.setdefault(_of_some_calls, set())
    if isinstance(told, set) and buffer.dtype not in told and not _is_chosen(subject, buffer.dtype):
        told.add(buffer.dtype)
        text = f"`{shown}` supports only {_known(name)}, and a call can make `{buffer.name}` bfloat16"
        yield Finding("TL710", node, text, "warning")


def _is_chosen(subject: Subject, dtype: str) -> bool:
    """``"float32" if dtype in ["bfloat16", "float16"] else dtype``: who names bfloat16 has computed in another type."""
    for node in nodes_of(subject.file.index.module, cst.Assign):
        if isinstance(node.value, cst.IfExp) and code(node.targets[0].target) == dtype:
            test, arms = node.value.test, (node.value.body, node.value.orelse)
            if isinstance(test, cst.Comparison) and "bfloat16" in code(test):
                taken = arms[isinstance(test.comparisons[0].operator, (cst.NotIn, cst.NotEqual))]
                return isinstance(taken, (cst.SimpleString, cst.Attribute)) and "bfloat16" not in code(taken)
    return False


def _tile(subject: Subject, stmt: Alloc) -> Iterator[Finding]:
    """``GetTypeLen`` of ``src/target/codegen_ascend_pto.cc`` knows no elements of 64 bits."""
    if stmt.buffer.is_tile and "float64" in types_of(subject, stmt.buffer):
        yield Finding("TL710", stmt.node, f"`{stmt.buffer.name}` is float64, which the NPU cannot even copy")
    if subject.target == "pto" and stmt.buffer.memory is Memory.UB and stmt.buffer.dtype in ("int64", "uint64"):
        text = f"`{stmt.buffer.name}` is {stmt.buffer.dtype}, of which target pto has no tiles"
        yield Finding("TL710", stmt.node, text)


def _operator(subject: Subject, stmt: Op) -> Iterator[Finding]:
    name = stmt.op.name
    if name in element_types.ALIKE:
        mask = element_types.ALIKE[name]
        starts = name == "tile.atomic_add"
        operands = [o for given, o in stmt.operands if given != mask and (starts or not is_element(o))]
        tiles = [o.buffer for o in operands if o.buffer.memory is Memory.UB or starts]
        for tile in tiles[1:]:
            one, other = types_of(subject, tiles[0]), types_of(subject, tile)
            if one and other and not one & other:
                text = (
                    f"`{tiles[0].name}` is {min(one)} and `{tile.name}` {min(other)}: `T.{name}` has one type for all"
                )
                yield Finding("TL710", stmt.node, text)
                return
        element = next((o for _, o in stmt.operands if is_element(o)), None) if tiles else None
        if element is not None and name in element_types.ELEMENT_ALIKE:
            one, other = types_of(subject, tiles[0]), types_of(subject, element.buffer)
            if one and other and not one & other:
                text = f"`{tiles[0].name}` is {min(one)} and `{code(element.node)}` {min(other)}"
                yield Finding("TL710", stmt.node, f"{text}: `T.{name}` has one type for all")
                return
    found = element_types.OPERATORS.get(name)
    operand = stmt.args.get(found[0]) if found is not None else None
    if not isinstance(operand, Operand) or operand.buffer.memory is not Memory.UB:
        return
    types, mode = types_of(subject, operand.buffer), _text(subject, stmt, "mode")
    if types and not any(element_types.takes(name, dtype, mode, subject.target) for dtype in types):
        text = f"`{operand.buffer.name}` is {min(types)}, but `T.{name}` supports only {_known(name)}"
        yield Finding("TL710", stmt.node, text)
    else:
        yield from _of_some_calls(subject, operand.buffer, stmt.node, name, f"T.{name}")
    value = stmt.args.get("value")
    if name == "tile.fill" and not types and isinstance(value, Scalar) and code(value.node) in _TRUTHS:
        text = f"`{operand.buffer.name}` is filled with {code(value.node)}: `T.{name}` does not support bool"
        yield Finding("TL710", stmt.node, text)


def _store(subject: Subject, found: ParallelStore) -> Iterator[Finding]:
    target = found.store.target.buffer
    types = types_of(subject, target)
    if found.form == "scalar" or target.memory is not Memory.UB:
        return
    lacks = {"int64", "uint64", "float64"} | ({"bfloat16"} if subject.target != PTO else set())
    for load in found.value.loads if all_broadcast(found) else ():
        if (given := types_of(subject, load.buffer)) and given <= lacks:
            text = f"`{load.buffer.name}` is {min(given)}: the compiler cannot spread a vector of this type"
            yield Finding("TL710", found.store.node, text)
            return
    for part in found.value.walk():
        signs = part.kind == "binary" or part.name == "~"
        sign = part.name if signs else _CALLS.get(part.name, "") if part.kind == "call" else ""
        name = element_types.SIGNS.get(sign, "")
        if not name or (types and all(element_types.takes(name, dtype) for dtype in types)):
            continue
        if not types or any(element_types.takes(name, dtype) for dtype in types):
            yield from _of_some_calls(subject, target, found.store.node, name, sign)
            return
        text = f"`{target.name}` is {min(types)}, but `{sign}` supports only {_known(name)}"
        yield Finding("TL710", found.store.node, text)
        return


def _scalars(subject: Subject) -> Iterator[Finding]:
    """bfloat16 elements outside of vector instructions."""
    vectors = {id(found.store) for found in parallel_stores(subject) if found.form != "scalar"}
    kernel, evaluator = subject.kernel, subject.located.evaluator
    for use in converted(kernel, evaluator, lambda buffer: types_of(subject, buffer) == {"bfloat16"}):
        if id(use.stmt) not in vectors and use.operand.buffer.memory in (Memory.GM, Memory.UB):
            text = f"`{code(use.node)}` is a bfloat16, and the NPU converts no bfloat16 scalars"
            yield Finding("TL711", use.stmt.node, text)


def _known(name: str) -> str:
    return ", ".join(sorted(element_types.OPERATORS[name][1]))


def _copy(subject: Subject, stmt: Copy) -> Iterator[Finding]:
    sides = (stmt.src.buffer, stmt.dst.buffer)
    one, other = (types_of(subject, buffer) for buffer in sides)
    memories = {buffer.memory for buffer in sides}
    if Memory.L1 in memories and memories <= _UNCONVERTED:
        if one and other and not one & other:
            text = f"`{sides[0].name}` is {min(one)} and `{sides[1].name}` is {min(other)}: "
            how = "only on-chip copies convert" if Memory.GM in memories else "a copy to L0 does not convert"
            yield Finding("TL711", stmt.node, text + how)
        return
    if not one or not other or sides[0].dtype == sides[1].dtype:
        return
    if memories == {Memory.GM, Memory.UB}:
        if not one & other and not any("bool" in {a, b} and {a, b} & _BYTES for a in one for b in other):
            text = f"`{sides[0].name}` is {min(one)} and `{sides[1].name}` is {min(other)}: only on-chip copies convert"
            yield Finding("TL711", stmt.node, text)
    elif memories == {Memory.UB} and not any(element_types.copies(a, b) for a in one for b in other):
        source, target = min(one), min(other)
        modes = element_types.CASTS.get((source, target))
        asked = element_types.copy_mode(source, target)
        why = f"it needs {asked}, the instruction supports {_either(modes)}" if modes else "no instruction does that"
        yield Finding("TL711", stmt.node, f"`T.copy` would convert {source} to {target}: {why}")


def _cast(subject: Subject, stmt: Op) -> Iterator[Finding]:
    src, dst = stmt.args.get("src"), stmt.args.get("dst")
    if not isinstance(src, Operand) or not isinstance(dst, Operand):
        return
    pairs = [(a, b) for a in types_of(subject, src.buffer) for b in types_of(subject, dst.buffer)]
    mode = _text(subject, stmt, "mode")
    if not pairs or any(pair in element_types.CASTS and mode in {"", *element_types.CASTS[pair]} for pair in pairs):
        return
    source, target = min(pairs)
    modes = element_types.CASTS.get((source, target))
    text = f"no instruction converts {source} to {target}"
    if modes is not None:
        text = f"{source} to {target} with {mode}: the instruction supports {_either(modes)}"
    yield Finding("TL711", stmt.node, text)


def _either(modes: frozenset[str]) -> str:
    return " or ".join(sorted(modes))


def _text(subject: Subject, stmt: Op, name: str) -> str:
    arg = stmt.args.get(name)
    if not isinstance(arg, Scalar):
        return ""
    value = subject.located.evaluator.static(arg.node, stmt.env)
    return value if isinstance(value, str) else ""
