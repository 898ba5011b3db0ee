"""Copies: what AscendNPU IR copies in another way than Ascend C, or not at all."""

from __future__ import annotations

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.element_types import is_known, plain
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Copy, Memory, Operand
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.npuir.from_ascend.writer import Writer


def lines(writer: Writer, stmt: Copy) -> list[str] | None:
    """The new statements; None for a copy that stays as it is."""
    for name, option in stmt.options.items():
        if not (isinstance(option.node, cst.Name) and option.node.value in ("False", "None")):
            raise Blocked("TL428", stmt.node, f"`T.copy` of AscendNPU IR does not support `{name}`")
    src, dst = stmt.src, stmt.dst
    outside = Memory.GM in (src.buffer.memory, dst.buffer.memory)
    if src.buffer.memory is dst.buffer.memory is Memory.GM:
        raise Blocked("TL428", stmt.node, "AscendNPU IR cannot copy from global memory to global memory")
    if writer.rows is None and _start(src) and _start(dst):
        raise Blocked("TL430", stmt.node, "neither side of the copy gives the size")
    if outside:
        _need_same_amount(stmt, src, dst)
        return _without_options(writer, stmt)
    whole = writer.is_whole(src) and writer.is_whole(dst)
    if whole and src.buffer.shape == dst.buffer.shape:
        types = plain(src.buffer.dtype), plain(dst.buffer.dtype)
        if types[0] != types[1] and all(map(is_known, types)):  # a copy casts, too, if it must; T.vcast always would
            return [f'T.vcast({writer.tile(src)}, {writer.tile(dst)}, round_mode="rint")']
        if writer.rows is None:
            return _without_options(writer, stmt)
        return [f"T.copy({writer.tile(src)}, {writer.tile(dst)})"]
    _need_same_amount(stmt, src, dst)
    return _without_options(writer, stmt)


def _without_options(writer: Writer, stmt: Copy) -> list[str] | None:
    return [f"T.copy({writer.tile(stmt.src)}, {writer.tile(stmt.dst)})"] if stmt.options else None


def _start(operand: Operand) -> bool:
    return bool(operand.dims) and operand.is_indexed


def _need_same_amount(stmt: Copy, src: Operand, dst: Operand) -> None:
    """Both sides have the same extents, apart from axes of 1."""
    for start, other in ((src, dst), (dst, src)):
        if _start(start) and start.dims is not None:
            if len(moved_extents(other)) > len(start.dims):
                text = f"`{code(start.node)}` and `{code(other.node)}` have different ranks"
                raise Blocked("TL430", stmt.node, text)
            return
    given, wanted = moved_extents(src), moved_extents(dst)
    if given != wanted:
        text = f"cannot prove that `{code(src.node)}` and `{code(dst.node)}` have the same size"
        raise Blocked("TL430", stmt.node, text)


def moved_extents(operand: Operand) -> list[Sym]:
    """The extents of a buffer or a part of it without axes of 1; nothing of an element."""
    if operand.dims is None:
        extents: list[Sym | None] = list(operand.buffer.shape)
    else:
        extents = [dim.extent for dim in operand.dims]
    return [extent for extent in extents if extent is not None and extent.constant != 1]
