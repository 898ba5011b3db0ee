"""Which memory ``alloc_shared`` and ``alloc_fragment`` buffers of an Ascend kernel are in.

What an author means: a fragment is L0C, or L0A/L0B as an operand of ``T.mma``; a shared buffer is L1 if the cube reads
it, else UB. (The compiler has a narrower rule, ascend_infer_buffer_scope.cc; see ``deviations.check_inference``.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Load
from tl2npu.simulator.ir.stmt import Alloc, Op, Stmt
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.uses import buffers

CUBE = {"l1", "l0a", "l0b", "l0c"}


def buffer_of(value: Any) -> Buffer | None:
    """The buffer that an operand names."""
    return value.buffer if isinstance(value, (Region, Load)) else None


def operands(stmt: Op) -> Iterator[tuple[str, Buffer]]:
    """Parameter name and buffer of the operands of an operator."""
    for name, value in stmt.args.items():
        for item in value if isinstance(value, tuple) else (value,):
            buffer = buffer_of(item)
            if buffer is not None:
                yield name, buffer.root


def infer(body: list[Stmt]) -> set[int]:
    """Replace ``shared`` and ``fragment`` by L1, UB, L0A, L0B, L0C in all buffers of a launch.

    The numbers of the buffers that were allocated as ``shared`` (also by an earlier call for the same launch).
    """
    allocated = [s.buffer for s in statements(body) if isinstance(s, Alloc)]
    cube_read: set[int] = set()
    for stmt in statements(body):
        if not isinstance(stmt, Op):
            continue
        named = dict(operands(stmt))
        if stmt.name in ("gemm_v0", "gemm", "mma", "gemm_v1"):
            for name, buffer in named.items():
                if name in ("A", "B"):
                    cube_read.add(buffer.number)
                    if buffer.memory == "fragment":
                        buffer.memory = "l0a" if name == "A" else "l0b"
    for stmt in statements(body):
        if isinstance(stmt, Op) and stmt.name == "copy":
            named = dict(operands(stmt))
            source, target = named.get("src"), named.get("dst")
            if target is not None and source is not None and target.memory in ("l0a", "l0b"):
                cube_read.add(source.number)
    for buffer in allocated:
        if buffer.memory == "fragment":
            buffer.memory = "l0c"
        elif buffer.memory == "shared":
            buffer.shared = True
            buffer.memory = "l1" if buffer.number in cube_read else "ub"
        elif buffer.memory == "local":
            buffer.memory = "ub"
    for stmt in statements(body):
        for buffer in buffers(stmt):
            if buffer.alias is not None:
                buffer.memory = buffer.root.memory
    return {buffer.number for buffer in allocated if buffer.shared}
