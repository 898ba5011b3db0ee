"""TL712: float16 divisions that the compiler makes products with a reciprocal that is rounded to float16.

Evidence: ``src/target/codegen_ascend.cc:DivsOpCodegen`` (``half(1.0f / (float)d.GetValue(i))``, then ``Muls``) and
``ascend_lower_parallel_to_vector.cc:GenerateBufferScalarVectorCall``.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tl2npu.checks.operators.vector_form import ParallelStore, parallel_stores
from tl2npu.checks.row_split.split import is_element
from tl2npu.checks.subject import Finding, Subject
from tl2npu.dialects.element_types import known
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Memory, Op, Operand

_HALF = "float16"


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about ``a[i, j] / d[i]`` and ``T.tile.div(a, a, d[i])``."""
    for placed in subject.statements:
        stmt = placed.stmt
        if isinstance(stmt, Op) and stmt.op.name == "tile.div":
            divisor, target = stmt.args.get("src1"), stmt.args.get("dst")
            if not isinstance(divisor, Operand) or not isinstance(target, Operand):
                continue
            if known(target.buffer.dtype) == _HALF and is_element(divisor):
                yield _finding(stmt.node, divisor)
    for store in parallel_stores(subject):
        yield from _store(store)


def _store(found: ParallelStore) -> Iterator[Finding]:
    if found.form == "scalar" or known(found.store.target.buffer.dtype) != _HALF:
        return
    if all(load.dims is not None and len(load.dims) == 1 for load in found.value.loads) and found.outer is not None:
        return  # vectors alone are spread over tiles, which are divided
    for part in found.value.walk():
        divisor = part.args[1].operand if part.kind == "binary" and part.name == "/" else None
        if divisor is None or divisor.buffer.memory is Memory.VAR:
            continue
        if not any(dim.lo.depends_on(str(found.inner.var)) for dim in divisor.dims or ()):
            yield _finding(found.store.node, divisor)
            return


def _finding(node: cst.CSTNode, divisor: Operand) -> Finding:
    text = (
        f"the compiler multiplies by `1 / {code(divisor.node)}` in float16, which is infinite for divisors below 1.5e-5"
    )
    return Finding("TL712", node, text)
