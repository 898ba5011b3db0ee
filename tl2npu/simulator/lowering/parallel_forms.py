"""What a ``T.Parallel`` on UB becomes (compiler-facts section 3, ascend_lower_parallel_to_vector.cc).

``vector``: whole-tile instructions. ``rows``: a loop over the rows, each a vector instruction with a scalar (an operand
that moves with the row only). ``scalar``: a loop over the elements.
"""

from __future__ import annotations

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Binary, Call, Cast, Const, Expr, Load, Unary, Value, Var
from tl2npu.simulator.ir.parts import free, walk
from tl2npu.simulator.ir.stmt import Parallel, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements

VECTOR = "vector"
ROWS = "rows"
SCALAR = "scalar"

_OPS = {"+", "-", "*", "/", "&", "|", "<<", ">>"}
_BITS = {"&", "|", "<<", ">>"}
_CALLS = {"exp", "log", "sqrt", "rsqrt", "abs", "max", "min"}
_SHORT = {"int8", "uint8", "int16", "uint16"}


def form(stmt: Parallel) -> str:
    """The form of a nest: scalar if one of its statements is, rows if one has a row operand."""
    found = VECTOR
    for inner in stmt.body:
        kind = _store_form(inner, stmt) if isinstance(inner, Store) else SCALAR
        if kind == SCALAR:
            return SCALAR
        if kind == ROWS:
            found = ROWS
    return found


def any_vectorised(body: list[Stmt]) -> bool:
    """Whether a ``T.Parallel`` of a program becomes vector instructions: then the layouts of L1 are forgotten (2.9)."""
    return any(isinstance(s, Parallel) and form(s) != SCALAR for s in statements(body))


def _store_form(stmt: Store, nest: Parallel) -> str:
    if stmt.buffer.memory not in ("ub", "global") and not isinstance(stmt.value, Load):
        return SCALAR
    if not _vector(stmt.value, nest, top=True):
        return SCALAR
    if stmt.buffer.memory == "ub" and nest.vars[-1] not in free(stmt.indices[-1]):
        return SCALAR  # r[i, 0] = ... over i (DetectVectorPlan)
    if len(nest.vars) == 2:
        row, column = nest.vars
        parts = [stmt.value] if isinstance(stmt.value, Load) else walk(stmt.value)  # a copy takes all at once
        loads = [part for part in parts if isinstance(part, Load)]
        tiles = any(load.buffer.ndim == 2 for load in loads)
        for load in loads:
            used = {v for i in load.indices for v in free(i)}
            whole = row in used and column in used
            # beside a tile nothing is broadcast: a loop over the rows (CheckExpressionSupports2DVectorization)
            if (tiles and not whole) or (row in used and not whole and load is not stmt.value):
                return ROWS
    return VECTOR


def _vector(value: Value, nest: Parallel, top: bool = False) -> bool:
    if isinstance(value, (int, float, Const)):
        return not top  # a constant store is a scalar loop (g3_fillc)
    if isinstance(value, Load):
        return True  # whatever its indices are
    if isinstance(value, Cast):
        return top and isinstance(value.value, Load) and _vector(value.value, nest)
    if isinstance(value, Unary):
        return value.op == "-" and _vector(value.value, nest)
    if isinstance(value, Call):
        if value.name not in _CALLS:
            return False
        if value.name == "exp" and not isinstance(value.args[0], Load):
            return False
        if _is_wider(value.dtype, *value.args):
            return False
        return all(_vector(a, nest) for a in value.args)
    if isinstance(value, Binary):
        if value.op not in _OPS or not isinstance(value.left, Expr) or isinstance(value.left, Const):
            return False  # a scalar on the left is a scalar loop (g3_sleft)
        if value.op not in _BITS and _is_wider(value.dtype, value.left, value.right):
            return False
        whole = dtypes.is_float(value.dtype) or value.op != "/"  # sums of integers are vector instructions (i32add)
        return whole and _vector(value.left, nest) and _vector(value.right, nest)
    return isinstance(value, Var) and all(value is not v for v in nest.vars)


def _is_wider(dtype: str, *args: Value) -> bool:
    """A number of Python beside short integers is an int32: they are computed as such, one by one, and cast."""
    return dtype in _SHORT and any(isinstance(arg, (int, Var)) for arg in args)


def by_element(target: Buffer, source: Buffer) -> bool:
    """Tiles with rows of different length are copied by the scalar unit."""
    two = target.memory == source.memory == "ub" and min(target.ndim, source.ndim) > 1
    return two and not same(target.shape[-1], source.shape[-1])


def same(left: Value, right: Value) -> bool:
    """Whether two extents are one expression or one number."""
    return left is right or (not isinstance(left, Expr) and not isinstance(right, Expr) and left == right)
