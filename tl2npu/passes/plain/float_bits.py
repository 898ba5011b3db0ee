"""TL112: powers of two that are made of the bits of a float, as functions that the NPU has.

``T.reinterpret((exponent + 127) << 23, "float32")`` with an exponent taken from ``T.reinterpret(x, "uint32")`` is
``exp2(ceil(log2(x)))`` or ``exp2(floor(log2(x)))``. How it is spelled does not matter: the expression is evaluated on
every exponent with many mantissas and on every mantissa with one exponent, and compared bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Store
from tl2npu.passes.job import Job
from tl2npu.passes.writing.statements import expression
from tl2npu.source.edits import Edits
from tl2npu.source.literals import text_of
from tl2npu.source.signs import COMPARISONS, COMPUTED, sign_of
from tl2npu.source.tree import calls_in, names_in

_RANDOM = (1234567, 3456789, 5555555, 7654321, 8000001, 2097152, 4190000, 6291456)
_MANTISSAS = (0, 1, 2, 3, (1 << 22) - 1, 1 << 22, (1 << 22) + 1, (1 << 23) - 2, (1 << 23) - 1, *_RANDOM)


class _Unclear(Exception):
    """Not arithmetic on the bits of one float."""


def to_functions(job: Job) -> None:
    """Write such powers of two as functions, and leave out the names that only led to them."""
    if not any("reinterpret" in code(call.func) for call in calls_in(job.located.node)):
        return
    lets = [stmt for stmt in job.kernel.walk() if isinstance(stmt, Let) and not stmt.via]
    often = Counter(stmt.name for stmt in lets)
    values = {stmt.name: stmt.value.node for stmt in lets if often[stmt.name] == 1}
    edits = Edits(job.file.index)
    replaced: list[cst.CSTNode] = []
    for call, value, name in _powers(job, values):
        edits.replace(call, expression(job, f"T.exp2(T.{name}(T.log2(T.abs({value}))))", call))
        job.change("TL112", call, f"`{code(call)}` -> `exp2({name}(log2({value})))`")
        replaced.append(call)
    for node in _without_use(job, lets, replaced):
        edits.remove(node)
    job.apply(edits)


def _powers(job: Job, values: Mapping[str, cst.BaseExpression]) -> Iterator[tuple[cst.Call, str, str]]:
    """Calls that make a power of two, with the float that they are made of and the rounding of its logarithm."""
    for stmt in job.kernel.walk():
        if not isinstance(stmt, (Let, Store)) or stmt.via:
            continue
        for call in calls_in(stmt.value.node):
            if _converted(job, call) != ("reinterpret", "float32"):
                continue
            reader = _Reader(job, values)
            try:
                found = _rounding(lambda call=call, reader=reader: reader.number(call))  # type: ignore[misc]
            except _Unclear:
                continue
            if found is not None and len(reader.floats) == 1:
                yield call, next(iter(reader.floats)), found


def _converted(job: Job, call: cst.Call) -> tuple[str, str]:
    """The operator and the type of ``T.reinterpret(x, dtype)``, ``T.cast(x, dtype)``, ``T.Cast(dtype, x)``."""
    name = job.file.names.operator(call.func)
    if name not in ("reinterpret", "cast", "Cast") or len(call.args) != 2:
        return "", ""
    dtype = call.args[0 if name == "Cast" else 1].value
    return name, str(text_of(dtype)) if isinstance(dtype, cst.SimpleString) else ""


@lru_cache
def _samples():  # type: ignore[no-untyped-def]  # NumPy is imported where a kernel needs it
    import numpy as np

    exponents = np.arange(1, 255, dtype=np.uint32)[:, None] << 23
    usual = (exponents | np.array(_MANTISSAS, np.uint32)).reshape(-1)
    whole = np.arange(1 << 23, dtype=np.uint32) | np.uint32(127 << 23)
    special = np.array([0, 255 << 23], np.uint32)
    return np.concatenate([usual, special, whole, usual | np.uint32(1 << 31)]).view(np.float32)


def _rounding(value: Callable[[], object]) -> str | None:
    """``ceil`` or ``floor``, if a function of the samples rounds their logarithm so and gives the power of two."""
    import numpy as np

    with np.errstate(all="ignore"):
        found = np.asarray(value(), np.float32)
        x = np.abs(_samples())
        fraction, exponent = np.frexp(x)
        for name, power in (("ceil", exponent - (fraction == 0.5)), ("floor", exponent - 1)):
            expected = np.where(x == 0, 0, np.where(np.isinf(x), x, np.ldexp(np.float32(1), power)))
            if found.shape == expected.shape and bool((found == expected.astype(np.float32)).all()):
                return name
    return None


class _Reader:
    """Evaluates an expression on the samples; ``floats`` are the texts of what its bits are taken of."""

    def __init__(self, job: Job, values: Mapping[str, cst.BaseExpression]) -> None:
        self.job, self.values = job, values
        self.floats: set[str] = set()

    def number(self, node: cst.BaseExpression):  # type: ignore[no-untyped-def]
        import numpy as np

        if isinstance(node, cst.Integer):
            return np.int64(int(node.value, 0))
        if isinstance(node, cst.Name) and node.value in self.values:
            return self.number(self.values[node.value])
        if isinstance(node, cst.BinaryOperation):
            left, right = self.number(node.left), self.number(node.right)
            if (sign := sign_of(node.operator)) in ("+", "-", "<<", ">>", "&", "|"):
                return COMPUTED[sign](left, right)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            left, right = self.number(node.left), self.number(node.comparisons[0].comparator)
            if (sign := sign_of(node.comparisons[0].operator)) in COMPARISONS:
                return COMPUTED[sign](left, right)
        if isinstance(node, cst.Call):
            return self._call(node)
        raise _Unclear

    def _call(self, node: cst.Call):  # type: ignore[no-untyped-def]
        import numpy as np

        name, dtype = _converted(self.job, node)
        if name in ("cast", "Cast") and dtype in ("int32", "uint32", "int64"):
            return self.number(node.args[1 if name == "Cast" else 0].value)
        if name == "reinterpret" and dtype == "float32":
            bits = np.asarray(self.number(node.args[0].value))
            return (bits & 0xFFFFFFFF).astype(np.uint32).view(np.float32)
        if name == "reinterpret" and dtype in ("uint32", "int32"):
            self.floats.add(code(node.args[0].value))
            return _samples().view(dtype).astype(np.int64)
        chosen = self.job.file.names.operator(node.func)
        if chosen in ("if_then_else", "Select") and len(node.args) == 3:
            return np.where(*(self.number(arg.value) for arg in node.args))
        raise _Unclear


def _without_use(job: Job, lets: list[Let], replaced: list[cst.CSTNode]) -> list[cst.CSTNode]:
    """The names that only served what was replaced, or each other."""
    gone: list[Let] = []
    covered = {id(node) for node in replaced}
    index = job.file.index
    grown = bool(replaced)
    while grown:
        grown = False
        for stmt in lets:
            uses = [n for n in names_in(job.located.node.body) if n.value == stmt.name]
            reads = [n for n in uses if not isinstance(index.parent(n), cst.AssignTarget)]
            if stmt in gone or not reads or len(uses) - len(reads) != 1:
                continue
            if all(any(id(above) in covered for above in index.ancestors(n)) for n in reads):
                gone.append(stmt)
                covered.add(id(stmt.node))
                grown = True
    return [stmt.node for stmt in gone]
