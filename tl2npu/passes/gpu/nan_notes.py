"""TL742: a maximum or a minimum of what can be NaN: a GPU gives the other operand, a vector core perhaps NaN.

Sources: CUDA's ``fmaxf`` gives the operand that is no NaN. The pages of AscendC on Max, Mins and ReduceMax, and the
headers of PTO-ISA for A2 and A3, do not say what ``vmax`` does. Inputs may hold NaN as well: verify draws them.
"""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Let, Store
from tl2npu.passes.job import Job
from tl2npu.source.tree import calls_in, nodes_of

_MAXIMA = frozenset({"max", "min", "clamp"})
_PARTIAL = frozenset("log log2 log10 log1p sqrt rsqrt pow acos asin acosh atanh fmod".split())
"""Functions that give NaN outside of their domain."""
_TESTS = frozenset({"isnan", "isfinite"})
_NEVER_NEGATIVE = frozenset({"abs", "fabs", "exp", "exp2", "max"})


def tell(job: Job) -> None:
    """One note for each maximum whose operand is evidently NaN for some values, or that a test of NaN stands beside."""
    names = job.file.names
    tested = any(names.operator(call.func) in _TESTS for call in calls_in(job.located.node.body))
    for stmt in job.kernel.walk():
        if isinstance(stmt, (Let, Store)) and isinstance(stmt.value.node, cst.BaseExpression):
            for call in calls_in(stmt.value.node):
                if names.operator(call.func) not in _MAXIMA:
                    continue
                source = next(filter(None, (_source(job, arg.value) for arg in call.args)), "")
                if source or tested:
                    why = f"`{source}` can be NaN" if source else "the kernel tests for NaN"
                    text = f"{why}: a GPU leaves it out of `{_shown(call)}`, the NPU's documents do not say"
                    job.note("TL742", stmt.node, text)


def _source(job: Job, node: cst.BaseExpression) -> str:
    """The function in an operand that gives NaN for some arguments; a quotient only if both sides can be 0."""
    for call in calls_in(node):
        if job.file.names.operator(call.func) in _PARTIAL and call.args:
            inner = call.args[0].value
            whole = isinstance(inner, cst.Call) and job.file.names.operator(inner.func) in _NEVER_NEGATIVE
            square = isinstance(inner, cst.BinaryOperation) and code(inner.left) == code(inner.right)
            if not whole and not square:
                return _shown(call)
    for quotient in nodes_of(node, cst.BinaryOperation):
        if isinstance(quotient.operator, cst.Divide) and code(quotient.left) == code(quotient.right):
            return _shown(quotient)
    return ""


def _shown(node: cst.BaseExpression) -> str:
    text = code(node)
    return text if len(text) <= 40 else f"{text[:37]}..."
