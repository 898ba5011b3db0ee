"""TL795, TL897: names that the Ascend compiler parses and then drops or refuses, and arguments that it refuses.

Evidence: facts 4 (g4_gemm, g4_clear, g4_exp2, g4_atomic, g8_callext, g8_cumsum, g4_slice) and 3
(g3_expdiff, g3_exp2, gy_tilecol, gy_tilerow).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import dropwhile

import libcst as cst

from tl2npu.checks.operators.types import types_named
from tl2npu.checks.row_split.split import is_half
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.dialects.ascend import DROPPED, advice, lookup
from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.element_types import is_float
from tl2npu.kernel.expressions import code
from tl2npu.kernel.float_scalars import FloatScalars
from tl2npu.kernel.model import Branch, Let, Loop, Op, Scalar, Store
from tl2npu.kernel.symbolic import const
from tl2npu.source.names import LANGUAGE
from tl2npu.source.tree import calls_in, mentioned

_STRIDED = "_experiment"
_OF_FLOATS = frozenset({"abs", "fabs", "isinf"})
_FUNCTIONS = frozenset(
    "acos asin atan cos cosh erf exp exp10 log log10 log1p log2 rsqrt sigmoid sin sinh sqrt tan tanh".split()
)


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every call in the launch."""
    launch = subject.kernel.launched
    inlined = [stmt.node for placed in subject.statements for stmt in [placed.stmt] if stmt.via]
    for node in [launch.node.body, *inlined]:
        for call in calls_in(node):
            name = _dropped(subject, call)
            if name:
                text = f"the Ascend compiler ignores or rejects T.{name}"
                yield Finding("TL897", call, text, help=advice(name))
    floats = FloatScalars(subject.kernel, subject.located.evaluator, partial(_is_float, subject))
    for placed in subject.statements:
        if isinstance(placed.stmt, Loop):
            yield from _check_loop(subject, placed.stmt)
        yield from _check_scalars(subject, placed, floats)
        if isinstance(placed.stmt, Op) and placed.stmt.op.kind in (Kind.TILE, Kind.FILL, Kind.REDUCE, Kind.GEMM):
            yield from _check_ranges(subject, placed.stmt)


def _check_loop(subject: Subject, loop: Loop) -> Iterator[Finding]:
    """``transform/unroll_loop.cc``: "Cannot unroll non-constant loop"; sizes of a factory are constants by then."""
    if loop.kind == "vectorized":
        yield Finding("TL897", loop.call or loop.node, _vectorized(loop))
    elif loop.kind == "unroll" and any(subject.is_runtime(item.extent) for item in loop.ranges):
        text = f"`{code(loop.call or loop.node)}` unrolls a loop whose length is known at run time only"
        yield Finding("TL795", loop.call or loop.node, text)


def _vectorized(loop: Loop) -> str:
    """``transform/loop_vectorize.cc:187`` asserts a start of 0; ``codegen_c.cc`` then knows no vectors."""
    if loop.ranges and not loop.ranges[0].start.is_zero:
        return f"T.vectorized over `{loop.ranges[0].name}` must begin at 0, and Ascend has no code for it"
    return "the Ascend compiler has no code for T.vectorized: use T.Parallel"


def _check_scalars(subject: Subject, placed: Placed, floats: FloatScalars) -> Iterator[Finding]:
    """The scalar unit knows no functions, and nobody works out those of numbers: "Unresolved call Op(tir.exp)".

    ``T.abs`` of an integer is a choice of two numbers, that of a number is one.
    """
    for scalar in _scalars(placed):
        for call in calls_in(scalar.node):
            name = subject.file.names.operator(call.func)
            of_floats = any(mentioned(arg.value) and floats.holds(arg.value) for arg in call.args)
            if name in _FUNCTIONS or (name in _OF_FLOATS and of_floats):
                yield Finding("TL897", call, f"the Ascend compiler does not support T.{name} of single values")


def _scalars(placed: Placed) -> Iterator[Scalar]:
    """What the scalar unit computes; a store in ``T.Parallel`` may become a vector instruction (TL733)."""
    stmt = placed.stmt
    if isinstance(stmt, (Let, Store)):
        if not any(loop.kind == "parallel" for loop in placed.loops):
            yield stmt.value
    elif isinstance(stmt, Branch):
        yield stmt.cond
    elif isinstance(stmt, Op) and stmt.op.kind in (Kind.TILE, Kind.FILL):
        yield from (arg for arg in stmt.args.values() if isinstance(arg, Scalar))


def _is_float(subject: Subject, dtype: str) -> bool:
    types = types_named(subject, dtype)
    return bool(types) and all(map(is_float, types))


def _check_ranges(subject: Subject, stmt: Op) -> Iterator[Finding]:
    if stmt.op.name.endswith(_STRIDED):
        return  # they take the stride of the rows, and so any window
    for _, operand in stmt.operands:
        if subject.is_split and is_half(operand):
            continue  # the rows of one vector core: judged with the split
        sizes = [*zip(operand.dims or (), operand.buffer.shape, strict=False)]
        gaps = dropwhile(lambda one: one[0].is_point, sizes)  # a column is no row: the elements behind its first one
        if any(dim.is_point and size != const(1) for dim, size in gaps):
            text = f"T.{stmt.op.name} takes the elements that lie behind the first one of `{code(operand.node)}`"
            yield Finding("TL897", stmt.node, text)
            return
        ranges = [(dim, size) for dim, size in sizes if not dim.is_point]
        rows = 0 if subject.is_split and len(ranges) > 1 else 1  # with two cores each would take its own first rows
        if any(not dim.lo.is_zero or dim.extent != size for dim, size in ranges[rows:]):
            text = f"T.{stmt.op.name} supports whole rows or a part of one row, not `{code(operand.node)}`"
            yield Finding("TL897", stmt.node, text)
            return


def _dropped(subject: Subject, call: cst.Call) -> str:
    name = subject.file.names.operator(call.func)
    op = lookup(LANGUAGE + name) if name else None
    illegal = op is not None and not op.modes and op.kind not in (Kind.TYPE, Kind.DECORATOR)
    return name if illegal or name in DROPPED else ""
