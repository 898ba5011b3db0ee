"""TL158: copies between global memory and UB that convert go through a tile of the tensor's type.

Both ends of such a copy have one type on an NPU (``copy_gm_to_ub`` and ``copy_ub_to_gm`` are templates over one type);
copies between two tiles of UB convert.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Memory, Operand
from tl2npu.passes.gpu.plan import Plan
from tl2npu.passes.gpu.statements import Names, parse
from tl2npu.passes.job import Job

_ALIASES = {"float": "float32", "half": "float16", "int": "int32"}
_SHORT = {"float16": "half", "bfloat16": "bf16", "float32": "f32"}
_WIDE = frozenset({"float32", "bfloat16"})
_BYTES = frozenset({"int8", "uint8"})


def stage(job: Job) -> None:
    """Put a tile of the tensor's type into every converting copy."""
    work = _Stages(job, Plan(job), Names(job), {})
    for stmt in job.kernel.walk():
        if isinstance(stmt, Copy) and differ(stmt.src.buffer, stmt.dst.buffer):
            memories = stmt.src.buffer.memory, stmt.dst.buffer.memory
            if memories == (Memory.GM, Memory.UB):
                work.load(stmt)
            elif memories == (Memory.UB, Memory.GM):
                work.store(stmt)
    work.plan.apply()


def differ(one: Buffer, other: Buffer) -> bool:
    """True unless the two types are known, or spelled, to be the same."""
    return _ALIASES.get(one.dtype, one.dtype) != _ALIASES.get(other.dtype, other.dtype)


@dataclass(eq=False)
class _Stages:
    job: Job
    plan: Plan
    names: Names
    tiles: dict[tuple[Buffer, str], str]

    def load(self, stmt: Copy) -> None:
        """``T.copy(A[...], x)``: first as it is stored, then converted."""
        chain = self._chain(stmt, stmt.dst, stmt.src.buffer)
        lines = [_text(stmt, dst=chain[0]), *(f"T.copy({a}, {b})" for a, b in itertools.pairwise(chain))]
        self._write(stmt, [*lines, f"T.copy({chain[-1]}, {stmt.dst.buffer.name})"])

    def store(self, stmt: Copy) -> None:
        """``T.copy(x, C[...])``: first converted, then stored."""
        chain = [stmt.src.buffer.name, *reversed(self._chain(stmt, stmt.src, stmt.dst.buffer))]
        lines = [f"T.copy({a}, {b})" for a, b in itertools.pairwise(chain)]
        self._write(stmt, [*lines, _text(stmt, src=chain[-1])])

    def _write(self, stmt: Copy, lines: list[str]) -> None:
        self.plan.replace(stmt.node, parse(self.job, "\n".join(lines), stmt.node))
        self.job.change("TL158", stmt.node, "a copy with global memory does not convert: a tile of its type between")

    def _chain(self, stmt: Copy, tile: Operand, tensor: Buffer) -> list[str]:
        """The tiles from the tensor to the tile, without the tile itself."""
        buffer = tile.buffer
        if not tile.is_whole:
            raise Blocked(
                "TL157", stmt.node, f"`{code(tile.node)}` is a part of a tile of another type than its tensor"
            )
        found = [self._tile(buffer, tensor.dtype, dtype_text(tensor))]
        ends = {_ALIASES.get(buffer.dtype, buffer.dtype), _ALIASES.get(tensor.dtype, tensor.dtype)}
        if ends & _WIDE and ends & _BYTES:
            found.append(self._tile(buffer, "float16", '"float16"'))  # bytes are converted from and to halves only
        return found

    def _tile(self, buffer: Buffer, dtype: str, text: str) -> str:
        key = buffer, _ALIASES.get(dtype, dtype)
        if key not in self.tiles:
            name = self.names.fresh(f"{buffer.name}_{_SHORT.get(key[1], 'cast')}")
            self.tiles[key] = name
            assert isinstance(buffer.node, cst.Call)
            assert buffer.statement is not None
            shape = next(
                code(arg.value) for arg in buffer.node.args if arg.keyword is None or arg.keyword.value == "shape"
            )
            line = f"{name} = T.alloc_shared({shape}, {text})"
            self.plan.after(buffer.statement, parse(self.job, line, buffer.statement))
        return self.tiles[key]


def dtype_text(tensor: Buffer) -> str:
    """How the source spells the type of a tensor parameter."""
    annotation = tensor.node.annotation if isinstance(tensor.node, cst.Param) else None
    call = annotation.annotation if annotation is not None else None
    if isinstance(call, cst.Call):
        for number, arg in enumerate(call.args):
            if arg.keyword.value == "dtype" if arg.keyword is not None else number == 1:
                return code(arg.value)
    return f'"{tensor.dtype}"'


def _text(stmt: Copy, *, src: str | None = None, dst: str | None = None) -> str:
    """The copy with another end; its other arguments stay."""
    args = []
    for number, arg in enumerate(stmt.call.args):
        keyword = arg.keyword.value if arg.keyword is not None else ""
        name = keyword or ("src", "dst")[number] if number < 2 or keyword else ""
        text = {"src": src, "dst": dst}.get(name) or code(arg.value)
        args.append(f"{keyword}={text}" if keyword else text)
    return f"T.copy({', '.join(args)})"
