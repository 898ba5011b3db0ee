"""Operators inside expressions: what ``T.ceildiv``, ``T.exp``, ``T.Select`` and their like take.

``T.Parallel`` has vector instructions for exp, log, sqrt, rsqrt and abs of a plain load, and for the operators of the
arithmetic nodes (``src/transform/ascend_lower_parallel_to_vector.cc:38-42, 70-114``); elsewhere the compiler leaves a
mathematical function unresolved (facts 3: g3_expdiff, g3_exp2, g3_log2, g3_tanh, g3_sigm).
"""

from __future__ import annotations

from tl2npu.dialects.ascend.build import BOTH_MODES, NO_MODE, operator, plain
from tl2npu.dialects.catalogue import Core, Kind, Operator

_MATH = "tilelang/language/tir/op.py"
_NODE = "tvm:tir/expr.py"
_BUILDER = "tvm:script/ir_builder/tir/ir.py"

_VECTOR = "in T.Parallel only alone on a plain load: t = expression; y = function(t)"
_UNRESOLVED = "rejected by the Ascend compiler: an unresolved call"
_UNMEASURED = "no vector instruction in T.Parallel; never tried, taken for unresolved as its measured neighbours are"
_CONDITION = "in T.Parallel the generated source does not compile: use an if statement, or compare and select"


def _scalar(name: str, signature: str, file: str, modes: frozenset[str] = BOTH_MODES, note: str = "") -> Operator:
    return operator(
        name, Kind.SCALAR, *plain(signature), core=Core.NONE, modes=modes, defined=f"{file}:{name}", note=note
    )


def _group(table: str, file: str, modes: frozenset[str] = BOTH_MODES, note: str = "") -> tuple[Operator, ...]:
    """One operator per line, ``name: signature``; several names may share a line."""
    rows = (line.split(":") for line in table.strip().splitlines())
    return tuple(_scalar(name, row[1], file, modes, note) for row in rows for name in row[0].split())


OPERATORS = (
    *_group(
        """
        exp log sqrt rsqrt: x
        abs fabs: x span=None
        """,
        _MATH,
        note=_VECTOR,
    ),
    *_group("exp2 log2 tanh sigmoid: x", _MATH, NO_MODE, _UNRESOLVED),
    *_group(
        """
        exp10 erf log10 log1p tan cos cosh acos acosh sin sinh asin asinh atan atanh: x
        atan2 nextafter hypot copysign ldexp: x1 x2
        floor ceil trunc round nearbyint: x span=None
        pow: x y span=None
        fmod: x y
        clz popcount: x
        """,
        _MATH,
        NO_MODE,
        _UNMEASURED,
    ),
    *_group(
        """
        bitwise_and bitwise_or bitwise_xor shift_left shift_right: x y span=None
        bitwise_not: x span=None
        truncdiv truncmod floordiv floormod: a b span=None
        ceildiv: lhs rhs span=None
        infinity min_value max_value: dtype span=None
        likely: cond span=None
        isnan isinf isfinite isnullptr: x span=None
        reinterpret: dtype value span=None
        """,
        _MATH,
    ),
    _scalar("if_then_else", "cond t f span=None", _MATH, note=_CONDITION),
    *_group("min max: a b", _BUILDER, note="in T.Parallel with a constant other than 0.0 use tile.max or tile.min"),
    _scalar("Select", "condition true_value false_value span=None", _NODE, note=_CONDITION),
    _scalar("cast", "x dtype span=None", "tvm:topi/math.py"),
    *_group(
        """
        Cast: dtype value span=None
        Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or: a b span=None
        Not: a span=None
        IntImm FloatImm: dtype value span=None
        StringImm: value span=None
        Var SizeVar: name dtype span=None
        BufferLoad: buffer indices span=None
        """,
        _NODE,
    ),
    _scalar("symbolic", "name dtype='int32'", "tilelang/language/__init__.py", note="an extent known at the call only"),
    *_group(
        """
        boolean bool: expr=None is_size_var=False
        handle: dtype=None storage_scope='global' * is_size_var=False
        void: expr=None * is_size_var=False
        Range: begin end
        """,
        _BUILDER,
    ),
    _scalar("ptr", "dtype=None storage_scope='global' * is_size_var=False", "tilelang/language/proxy.py"),
)
