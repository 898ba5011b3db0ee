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


def _tile(name: str, *params: Param, note: str = "") -> Operator:
    return operator(
        f"tile.{name}",
        Kind.TILE,
        *params,
        core=Core.VECTOR,
        elementwise=True,
        defined=f"{FILE}:{name}",
        note=note,
    )


def _binary(name: str, note: str = "") -> Operator:
    return _tile(name, write("dst"), read("src0"), read("src1", scalar=True), note=note)


def _binary_tiles(name: str, note: str = "") -> Operator:
    return _tile(name, write("dst"), read("src0"), read("src1"), note=note)


def _unary(name: str, source: str = "src0", note: str = "") -> Operator:
    return _tile(name, write("dst"), read(source), note=note)


_HELPER = "what the others are made of; taken for whole-size because the operator is a string"
_BITS = "src1 as a scalar names an operator that is not registered"

OPERATORS = (
    _binary("add"),
    _binary("sub"),
    _binary("mul"),
    _binary("div"),
    _binary("max"),
    _binary("min"),
    _binary("bitwise_and", _BITS),
    _binary("bitwise_or", _BITS),
    _binary_tiles("bitwise_xor", "no count: works on the allocated sizes"),
    _binary_tiles("pow", "no count: works on the allocated sizes"),
    _unary("exp"),
    _unary("ln"),
    _unary("abs"),
    _unary("reciprocal"),
    _unary("sqrt"),
    _unary("rsqrt"),
    _unary("relu"),
    _unary("bitwise_not"),
    _unary("sigmoid", "src"),
    _unary("silu", "src"),
    _unary("sin", "src"),
    _unary("cos", "src"),
    _tile("leaky_relu", write("dst"), read("src0"), scalar("scalar_value")),
    _tile(
        "axpy",
        accumulate("dst", seen="w"),
        read("src0"),
        scalar("scalar_value"),
        note="dst = scalar_value * src0 + dst",
    ),
    _tile("mul_add_dst", accumulate("dst"), read("src0"), read("src1"), note="dst = src0 * src1 + dst"),
    _tile("bitwise_lshift", write("dst"), read("src0"), scalar("scalarValue")),
    _tile("bitwise_rshift", write("dst"), read("src0"), scalar("scalarValue")),
    _tile("clamp_max", write("out"), read("buffer"), scalar("scalar_value"), count("count")),
    _tile("clamp_min", write("out"), read("buffer"), scalar("scalar_value"), count("count")),
    _tile("clamp", write("out"), read("buffer"), scalar("min_scalar"), scalar("max_scalar"), count("count")),
    _tile("round", write("out"), read("buffer"), count("count")),
    _tile("binary_op", write("dst"), read("src0"), read("src1", scalar=True), mode("op"), note=_HELPER),
    _tile("unary_op", write("dst"), read("src0"), mode("op"), note=_HELPER),
    _tile("scalar_op", write("dst"), read("src0"), scalar("scalar_value"), mode("op_tl"), note=_HELPER),
)
