"""``T.tile`` operators that compute every element by itself: arithmetic, functions, shifts, clamps.

Sizes: the element count is the product of the extents of the destination (binary, unary) or of the source (scalar
forms, compare); operands must have equal sizes. Operators with a ``count`` parameter process just so many elements.
A whole-index buffer element as ``src1`` (``s[h]``) is read as a scalar by its *first* index only, so ``s[h, 0]`` of a
2-D buffer reads the wrong element (facts 2, g2_scalar).
"""

from __future__ import annotations

from tl2npu.dialects.ascend.build import accumulate, count, mode, operator, read, scalar, write
from tl2npu.dialects.catalogue import Core, Kind, Operator, Param

FILE = "tilelang/language/ascend_tile.py"


def _tile(name: str, *params: Param, means: str = "", note: str = "") -> Operator:
    return operator(
        f"tile.{name}",
        Kind.TILE,
        *params,
        core=Core.VECTOR,
        elementwise=True,
        defined=f"{FILE}:{name}",
        note=note,
        meaning=means,
    )


def _binary(name: str, means: str, note: str = "") -> Operator:
    return _tile(name, write("dst"), read("src0"), read("src1", scalar=True), means=means, note=note)


def _binary_tiles(name: str, means: str, note: str = "") -> Operator:
    return _tile(name, write("dst"), read("src0"), read("src1"), means=means, note=note)


def _unary(name: str, means: str, source: str = "src0") -> Operator:
    return _tile(name, write("dst"), read(source), means=means)


_HELPER = "what the others are made of; taken for whole-size because the operator is a string"
_BITS = "src1 as a scalar names an operator that is not registered"
_ALL = "no count: works on the allocated sizes"

OPERATORS = (
    _binary("add", "src0 + src1"),
    _binary("sub", "src0 - src1"),
    _binary("mul", "src0 * src1"),
    _binary("div", "src0 / src1"),
    _binary("max", "max(src0, src1)"),
    _binary("min", "min(src0, src1)"),
    _binary("bitwise_and", "src0 & src1", _BITS),
    _binary("bitwise_or", "src0 | src1", _BITS),
    _binary_tiles("bitwise_xor", "src0 ^ src1", _ALL),
    _binary_tiles("pow", "pow(src0, src1)", _ALL),
    _unary("exp", "exp(src0)"),
    _unary("ln", "log(src0)"),
    _unary("abs", "abs(src0)"),
    _unary("reciprocal", "1.0 / src0"),
    _unary("sqrt", "sqrt(src0)"),
    _unary("rsqrt", "rsqrt(src0)"),
    _unary("relu", "max(src0, 0.0)"),
    _unary("bitwise_not", "~src0"),
    _unary("sigmoid", "sigmoid(src)", "src"),
    _unary("silu", "src * sigmoid(src)", "src"),
    _unary("sin", "sin(src)", "src"),
    _unary("cos", "cos(src)", "src"),
    _tile(
        "leaky_relu",
        write("dst"),
        read("src0"),
        scalar("scalar_value"),
        means="select(src0 >= 0, src0, src0 * scalar_value)",
    ),
    _tile("axpy", accumulate("dst", seen="w"), read("src0"), scalar("scalar_value"), means="dst + src0 * scalar_value"),
    _tile("mul_add_dst", accumulate("dst"), read("src0"), read("src1"), means="dst + src0 * src1"),
    _tile("bitwise_lshift", write("dst"), read("src0"), scalar("scalarValue"), means="src0 << scalarValue"),
    _tile("bitwise_rshift", write("dst"), read("src0"), scalar("scalarValue"), means="src0 >> scalarValue"),
    _tile(
        "clamp_max",
        write("out"),
        read("buffer"),
        scalar("scalar_value"),
        count("count"),
        means="min(buffer, scalar_value)",
    ),
    _tile(
        "clamp_min",
        write("out"),
        read("buffer"),
        scalar("scalar_value"),
        count("count"),
        means="max(buffer, scalar_value)",
    ),
    _tile(
        "clamp",
        write("out"),
        read("buffer"),
        scalar("min_scalar"),
        scalar("max_scalar"),
        count("count"),
        means="min(max(buffer, min_scalar), max_scalar)",
    ),
    _tile("round", write("out"), read("buffer"), count("count"), means="round(buffer)"),
    _tile("binary_op", write("dst"), read("src0"), read("src1", scalar=True), mode("op"), note=_HELPER),
    _tile("unary_op", write("dst"), read("src0"), mode("op"), note=_HELPER),
    _tile("scalar_op", write("dst"), read("src0"), scalar("scalar_value"), mode("op_tl"), note=_HELPER),
)
