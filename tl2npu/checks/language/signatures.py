"""TL730, TL790: calls that do not fit the signature of what they call: Python stops there when the kernel is built.

The signatures are those of the catalogue (:mod:`tl2npu.dialects`), held against the sources of the compiler by a test.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.language.argument_values import compilation_value, wrong_value
from tl2npu.checks.language.gpu_names import own_names
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects import ascend
from tl2npu.dialects.catalogue import Operator
from tl2npu.dialects.compilation import arguments
from tl2npu.kernel.style import called

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
