"""What the catalogues say of element-wise operators, against the simulator's operators and against NumPy.

NumPy is the judge: it computes the meaning in float64, or in integers that wrap around, and the simulator has to come
to the same element, for every element type that the instruction has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.simulator.operators.conftest import call
from tl2npu.dialects import ascend, npuir
from tl2npu.dialects.catalogue import Operator, Param, Role
from tl2npu.dialects.element_types import OPERATORS as TYPES
from tl2npu.tile.expr import Call, Const, Expr, Load, loads
from tl2npu.tile.meaning import counterparts, form, formula, meaning

__all__ = ["call"]

_NUMPY: Mapping[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "abs": np.abs,
    "ge": np.greater_equal,
    "select": np.where,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "round": np.rint,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
    "bitnot": np.invert,
    "shl": np.left_shift,
    "shr": np.right_shift,
}
_POSITIVE = {"log", "log2", "sqrt", "rsqrt", "pow"}
_LARGE = {"exp", "exp2", "pow", "sigmoid"}
_FLOATS = {"float16": np.float16, "float32": np.float32, "bfloat16": ml_dtypes.bfloat16}
_BITS = {"bitand", "bitor", "bitxor", "bitnot", "shl", "shr"}


def _operators() -> list[tuple[str, Operator]]:
    rows = [("tile", op) for op in ascend.OPERATORS.values() if op.meaning]
    short = [op for op in npuir.OPERATORS.values() if op.meaning and npuir.SHORT[op.name] == op.name]
    return [*rows, *(("npuir", op) for op in short)]


def _types(dialect: str, op: Operator) -> list[str]:
    value = meaning(op)
    assert value is not None
    if dialect == "tile":
        return sorted(TYPES[op.name][1])
    if _parts(value) & _BITS:
        return ["int16", "int32"]
    whole = ["int32"] if _parts(value) <= {"add", "sub", "mul", "max", "min"} and "1.0" not in op.meaning else []
    return [*_FLOATS, *([] if "0.0" in op.meaning else whole)]


def _parts(value: Expr) -> set[str]:
    if not isinstance(value, Call):
        return set()
    return {value.op}.union(*map(_parts, value.args))


CASES = [
    pytest.param(dialect, op, dtype, id=f"{op.name}-{dtype}")
    for dialect, op in _operators()
    if not op.deviation
    for dtype in _types(dialect, op)
]


def _drawn(param: Param, dtype: str, parts: set[str], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if param.name == "Cond":
        return rng.random((8, 16)) < 0.5
    if param.role is Role.SCALAR:
        return 3 if dtype not in _FLOATS else 0.75
    if dtype not in _FLOATS:
        kind = np.dtype(dtype)
        if parts & {"shl", "shr"} and param.name == "B":
            return rng.integers(0, 8, (8, 16)).astype(kind)
        if "pow" in parts:
            return rng.integers(0, 5, (8, 16)).astype(kind)
        limits = np.iinfo(kind)
        values = rng.integers(limits.min, limits.max, (8, 16), endpoint=True)
        values[0, :4] = [0, 1, limits.min, limits.max]
        return values.astype(kind)
    values = rng.normal(size=(8, 16)) * (2.0 if parts & _LARGE else 30.0)
    values[0, :6] = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5]
    return (np.abs(values) + (parts != {"sqrt"}) * 0.01 if parts & _POSITIVE else values).astype(_FLOATS[dtype])


def _value(expr: Expr, given: Mapping[str, Any]) -> Any:
    match expr:
        case Load(name):
            item = given[name]
            wide = np.asarray(item)
            return wide.astype(np.float64) if wide.dtype.kind not in "iub" else item
        case Const(number):
            return number
        case Call(op, args):
            with np.errstate(all="ignore"):
                return _NUMPY[op](*(_value(arg, given) for arg in args))
    raise AssertionError(expr)


@pytest.mark.parametrize(("dialect", "op", "dtype"), CASES)
def test_the_simulator_computes_the_meaning(call: Any, dialect: str, op: Operator, dtype: str) -> None:
    value = meaning(op)
    assert value is not None
    parts, used = _parts(value), {load.buffer for load in loads(value)}
    given = {p.name: _drawn(p, dtype, parts, n) for n, p in enumerate(op.params) if p.name in used}
    kind = _FLOATS.get(dtype) or np.dtype(dtype).type
    written = next(p for p in op.params if p.role in (Role.WRITE, Role.ACCUMULATE))
    expected = np.asarray(_value(value, given)).astype(kind)
    old = given.get(written.name)
    target = np.full((8, 16), 77, kind) if old is None else old.copy()
    more = {"Tmp": np.zeros((8, 16), kind)} if op.param("Tmp") else {}
    more |= {"count": 128} if op.param("count") else {}
    with np.errstate(all="ignore"):
        call(f"{dialect}.{op.name.removeprefix('tile.')}", **{**given, written.name: target}, **more)
    if dtype not in _FLOATS:
        np.testing.assert_array_equal(target, expected)
        return
    size = max(float(np.abs(np.asarray(item, np.float64)).max()) for item in given.values())
    step = float(ml_dtypes.finfo(kind).eps)
    # functions of a sum, and exp2 by way of exp, may lose a few units in the last place
    near = step * (size if parts & {"add", "sub"} else 1e-6)
    np.testing.assert_allclose(target.astype(np.float64), expected.astype(np.float64), rtol=8 * step, atol=near)


def test_a_wrong_meaning_is_found(call: Any) -> None:
    """The test above can fail: subtraction the other way round is told from subtraction."""
    x, y, target = np.full((8, 16), 3.0, np.float32), np.full((8, 16), 1.0, np.float32), np.zeros((8, 16), np.float32)
    call("tile.sub", dst=target, src0=x, src1=y)
    value = form(ascend.OPERATORS["tile.sub"])
    assert value is not None
    assert (target == _value(value, {"0": x, "1": y})).all()
    assert (target != _value(value, {"0": y, "1": x})).all()


def test_every_element_wise_operator_has_a_meaning_or_a_reason() -> None:
    helpers = {"tile.binary_op", "tile.unary_op", "tile.scalar_op"}  # the operator is a string
    moves = {"copy", "tile.atomic_add", "tile.fill", "tile.clear", "tile.cast", "tile.compare", "tile.select"}
    moves |= {"vcast", "vbitcast", "vcmp"}  # by a mode, or of bits
    rows = [op for op in (*ascend.OPERATORS.values(), *npuir.OPERATORS.values()) if op.elementwise and op.modes]
    without = {op.name for op in rows if not op.meaning and not op.name.startswith("npuir_")}
    blocks = {name for name in without if "experiment" in name or "blk" in name}
    assert without - helpers - moves - blocks == set()


def test_counterparts() -> None:
    """By what is computed, not by name: ``clamp_min`` is a maximum, and no function is its own series."""
    found = counterparts(ascend.OPERATORS.values(), npuir.OPERATORS.values())
    assert found["tile.ln"] == "vln"
    assert found["tile.clamp_min"] == "vmax"
    assert found["tile.bitwise_rshift"] == "vshr"
    assert not {"tile.sin", "tile.cos", "tile.silu", "tile.axpy"} & found.keys()
    back = counterparts(npuir.OPERATORS.values(), ascend.OPERATORS.values())
    assert back["vrec"] == "tile.reciprocal"


def test_formulas() -> None:
    scaled = "T.if_then_else({src0} >= 0, {src0}, {src0} * {scalar_value})"
    assert formula(ascend.OPERATORS["tile.leaky_relu"]) == scaled
    assert formula(npuir.OPERATORS["vclamp"]) == "T.min(T.max({src}, {min_val}), {max_val})"
    assert formula(npuir.OPERATORS["vnot"]) == "~{A}"
    assert formula(npuir.OPERATORS["vselect"]) == "T.if_then_else({Cond}, {A}, {B})"
    assert formula(npuir.OPERATORS["vcast"]) == ""
