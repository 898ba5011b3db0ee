"""Which tiles need no memory of their own.

A tile that is only ever filled by whole copies from a tensor that the launch does not write, and otherwise only read,
may as well be the part of the tensor. If such tiles are operands of matrix products only, the tensor may be converted
to the type that products are computed in, once, instead of tile by tile. Neither changes a value; an observer would
not see the copies, so both happen only where there is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Region
from tl2npu.simulator.ir.expr import Load
from tl2npu.simulator.ir.stmt import Alloc, Op, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.uses import buffers
from tl2npu.simulator.operators.registry import meaning

_PRODUCTS = {"gemm", "gemm_v0", "gemm_v1", "gemm_v2", "mma", "wgmma_gemm", "npuir.gemm"}


def operands(stmt: Op, gpu: bool) -> Iterator[tuple[str, Any, bool]]:
    """Name, region or element, and whether it may be written, of the operands of an operator."""
    forms = [m for m in (meaning(stmt.name, gpu), meaning(f"{stmt.name}@lanes", gpu)) if m is not None]
    read = {name for form in forms for name in form.reads}
    written = {name for form in forms for name in form.writes}
    for name, value in stmt.args.items():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, (Region, Load)):
                yield name, item, name in written or name not in read


def writes(body: list[Stmt], gpu: bool) -> Counter[int]:
    """How many statements may write a buffer, by number; a view counts for what it is a view of."""
    found: Counter[int] = Counter()
    for stmt in statements(body):
        if isinstance(stmt, Store):
            found[stmt.buffer.root.number] += 1
        elif isinstance(stmt, Op):
            for _, item, written in operands(stmt, gpu):
                if written:
                    found[item.buffer.root.number] += 1
    return found


def tiles(body: list[Stmt], gpu: bool, copied: Counter[int]) -> frozenset[int]:
    """The tiles of a core's program that may be borrowed. ``copied``: how many of the writes are such copies."""
    made = {s.buffer.number for s in statements(body) if isinstance(s, Alloc) and s.buffer.memory != "global"}
    written = writes(body, gpu)
    found = {n for n in made if copied[n] and copied[n] == written[n]}
    for stmt in statements(body):
        for buffer in buffers(stmt):
            if buffer.alias is not None:
                found.discard(buffer.root.number)
        if isinstance(stmt, Op):
            for _, item, _ in operands(stmt, gpu):
                if isinstance(item, Load):  # an address: the operator sees the memory from there on
                    found.discard(item.buffer.number)
    return frozenset(found)


def factors(bodies: list[list[Stmt]], gpu: bool, borrowed: frozenset[int]) -> set[int]:
    """The tensors that are read only by copies into borrowed tiles of which every use is a factor of a product."""
    other: set[int] = set()
    sources: dict[int, set[int]] = {}
    for stmt in (s for body in bodies for s in statements(body)):
        if not isinstance(stmt, Op):
            other |= {b.root.number for b in buffers(stmt)}
            continue
        named = {name: item.buffer for name, item, _ in operands(stmt, gpu)}
        target = named.get("dst")
        if target is not None and target.number in borrowed and stmt.name.endswith("copy"):
            source = named["src"]
            if dtypes.is_float(source.dtype) and dtypes.bits(source.dtype) < 32 and source.alias is None:
                sources.setdefault(source.number, set()).add(target.number)
            continue
        factor = {"A", "B"} if stmt.name in _PRODUCTS else set()
        inside = {b.root.number for b in buffers(stmt)}
        other |= inside - {b.number for name, b in named.items() if name in factor}
        other |= {b.root.number for name, b in named.items() if name not in factor}
    return {n for n, into in sources.items() if n not in other and not into & other}
