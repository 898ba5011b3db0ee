"""TL730, TL790: calls that do not fit the signature of what they call: Python stops there when the kernel is built.

The signatures are those of the catalogue (:mod:`tl2npu.dialects`), held against the sources of the compiler by a test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from tl2npu.checks.language.gpu_names import own_names
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects import ascend
from tl2npu.dialects.ascend.values import DIVIDED, JIT, NUMBER, TENSORS, VALUES
from tl2npu.dialects.catalogue import Kind, Operator, Role
from tl2npu.dialects.compilation import arguments
from tl2npu.kernel.expressions import code
from tl2npu.kernel.style import called

# TL790: values that an operator does not take: a mode that does not exist, a tile as a switch.
#
# The table is :mod:`tl2npu.dialects.ascend.values`. A tile as a number is its first element, which is legal.

_TAKES_TILES = (Kind.TILE, Kind.FILL, Kind.REDUCE, Kind.ATOMIC, Kind.GEMM, Kind.MMA)
_NO_TILES = (Role.FLAG, Role.MODE)
_CASTS = ("cast", "Cast")


def wrong_value(subject: Subject, op: Operator, call: cst.Call) -> str:
    """What is wrong with the values of a call that fits its signature; empty if nothing is known to be."""
    if any(arg.star for arg in call.args):
        return ""
    bound = op.bind([(arg.keyword.value if arg.keyword is not None else None, arg.value) for arg in call.args])
    given = {name: node for name, node in bound.items() if isinstance(node, cst.BaseExpression)}
    for name, node in given.items():
        allowed, param = VALUES.get((op.name, name)), op.param(name)
        tile = _tile(subject, node)
        if tile and op.kind in _TAKES_TILES and param is not None and param.role in _NO_TILES:
            wanted = allowed.shown if allowed is not None else "a number"
            return f"T.{op.name} takes {wanted} for `{name}`, not the tile `{code(node)}`"
        if op.name in _CASTS and name != "dtype" and isinstance(node, cst.SimpleString):
            return f"T.{op.name} takes a number for `{name}`, not `{code(node)}`"
        value = _value(subject, node) if allowed is not None else None
        if allowed is not None and value is not None and not allowed.takes(value):
            if text := allowed.wrong(value):
                return text
            return f"T.{op.name} takes {allowed.shown} for `{name}`, not `{code(node)}`"
    return _mode_of_select(subject, given) if op.name == "tile.select" else _multiple(subject, op, given)


def compilation_value(subject: Subject, keyword: str, node: cst.BaseExpression) -> str:
    """What is wrong with an argument of ``tilelang.jit``."""
    allowed, value = JIT.get(keyword), _value(subject, node)
    if allowed is None or not isinstance(value, str) or allowed.takes(value.partition(" ")[0]):
        return ""
    return f"tilelang.jit takes {allowed.shown} for `{keyword}`, not `{code(node)}`"


def _mode_of_select(subject: Subject, given: Mapping[str, cst.BaseExpression]) -> str:
    mode, second = _value(subject, given["selMode"]), given["src1"]
    if mode is None:
        return ""
    number = isinstance(_value(subject, second), (int, float))
    if number and mode in TENSORS:
        return f"T.tile.select takes a tile for `src1` in mode {mode}, not the number `{code(second)}`"
    element = isinstance(second, cst.Subscript) and not _tile(subject, second)
    if mode == NUMBER and _tile(subject, second.value if element and isinstance(second, cst.Subscript) else second):
        what = "element" if element else "tile"
        return f"T.tile.select takes a number for `src1` in mode {mode}, not the {what} `{code(second)}`"
    return ""


def _multiple(subject: Subject, op: Operator, given: Mapping[str, cst.BaseExpression]) -> str:
    for name, divisor in DIVIDED.get(op.name, ()):
        pair = [subject.file.evaluator.sym(given[one], subject.located.env) for one in (name, divisor)]
        for size, block in subject.together(*pair):
            if size is not None and block and size % block:
                return f"T.{op.name} takes sizes that the blocks divide: {size} is not a multiple of {block}"
    return ""


def _tile(subject: Subject, node: cst.BaseExpression) -> bool:
    """Whether an expression is a whole buffer or a slice of one."""
    slices = isinstance(node, cst.Subscript) and any(isinstance(item.slice, cst.Slice) for item in node.slice)
    name = node.value if slices and isinstance(node, cst.Subscript) else node
    found = subject.kernel.buffers.get(name.value) if isinstance(name, cst.Name) else None
    return found is not None and (found.is_tile or found.index >= 0)


def _value(subject: Subject, node: cst.BaseExpression) -> object | None:
    """A string, a number or a bool that is certain; None for what is not known, and for None."""
    env = subject.located.env
    if isinstance(node, (cst.Tuple, cst.List)):
        return tuple(_value(subject, item.value) for item in node.elements)
    if isinstance(node, cst.Dict):
        items = [item for item in node.elements if isinstance(item, cst.DictElement)]
        return {_value(subject, item.key): _value(subject, item.value) for item in items}
    value = subject.located.evaluator.static(node, env)
    if value is not None or isinstance(node, cst.SimpleString):
        return value
    return subject.located.evaluator.sym(node, env).constant


_RANGE = "range"
"""The parser of a prim_func takes ``range`` for ``T.serial``: tilelang/language/parser/parser.py."""


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each such call in the kernel, in the factory around it and in the macros that it calls."""
    located, seen = subject.located, set[int]()
    own = located.factory.node if located.factory is not None else located.node
    inside = set(map(id, subject.file.index.ancestors(located.node)))
    for root in (own, *called(located.node, subject.file.names)):
        if id(root) in inside and root is not own:
            continue
        for name in own_names(subject, root):
            call = subject.file.index.parent(name)
            if type(call) is cst.Call and call.func is name and id(call) not in seen:
                seen.add(id(call))
                yield from _check(subject, call)
    for found in located.compilations:
        allowed = arguments(found.compiler, "ascend")
        for keyword, value in found.kwargs.items():
            if allowed and keyword not in allowed:
                where = "tilelang.jit" if found.compiler == "jit" else "tilelang.compile"
                yield Finding("TL730", value, f"{where} does not support the argument `{keyword}` on the NPU")
            elif text := compilation_value(subject, keyword, value):
                yield Finding("TL790", value, text)


def mismatch(op: Operator, call: cst.Call, missing: str = "") -> str:
    """What Python would say of a call; empty if it fits. ``missing``: a parameter that this version does not have."""
    if any(arg.star for arg in call.args):
        return ""
    try:
        bound = op.bind([(arg.keyword.value if arg.keyword is not None else None, arg.value) for arg in call.args])
    except TypeError as error:
        return f"T.{error}"
    return f"T.{op.name}() got the argument '{missing}', which this version lacks" if missing in bound else ""


def _check(subject: Subject, call: cst.Call) -> Iterator[Finding]:
    compiler = subject.compiler
    op = ascend.lookup(subject.file.names.resolve(call.func) or "")
    if _is_range(call):
        node, index = subject.located.node, subject.file.index
        op = ascend.OPERATORS["serial"] if node in index.ancestors(call) else None
    if op is not None:
        message = mismatch(op, call, compiler.lacks(op.name))
        if message:
            said = "`range` is T.serial in a kernel: " if op.name == "serial" and _is_range(call) else ""
            yield Finding("TL730", call, said + message)
        elif text := wrong_value(subject, op, call):
            yield Finding("TL790", call, text)


def _is_range(call: cst.Call) -> bool:
    return type(call.func) is cst.Name and call.func.value == _RANGE
