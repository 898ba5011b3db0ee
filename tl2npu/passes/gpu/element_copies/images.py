"""TL190: ``T.im2col`` becomes a loop over the elements of its tile, each of which is an element of the image or 0.

The tile holds part ``(nhw_step, c_step)`` of a matrix with a row for each pixel of the result and a column for each
channel of each tap (``src/op/copy.cc`` of tile-ai/tilelang, ``Conv2DIm2ColOp``). It lies in one tap: the GPU compiler
rejects channels that are no multiple of the columns, so that may be asserted.
"""

from __future__ import annotations

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Memory, Op, Operand
from tl2npu.kernel.ranges.bounds import is_size
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.job import Job
from tl2npu.passes.names import constants
from tl2npu.passes.rounds import until_settled
from tl2npu.passes.writing.statements import Names, factor, parse
from tl2npu.source.edits import Edits

_NAMES = ("im2col", "c2d_im2col")
_AXES = 4
_SETTINGS = ("nhw_step", "c_step", "kernel", "stride", "dilation", "pad")


def unfold(job: Job) -> None:
    """Rewrite every ``T.im2col``; :class:`Blocked` for one that cannot be read."""

    def step() -> bool:
        found = next((s for s in job.kernel.walk() if isinstance(s, Op) and s.op.name in _NAMES), None)
        if found is not None:
            _rewrite(job, found)
        return found is not None

    until_settled(job, step)


def _rewrite(job: Job, stmt: Op) -> None:
    image, tile = stmt.args.get("img"), stmt.args.get("col")
    given = [stmt.args.get(name) for name in _SETTINGS]
    if not isinstance(image, Operand) or not isinstance(tile, Operand) or image.buffer.memory is not Memory.GM:
        raise Blocked("TL190", stmt.node, "`T.im2col` from an image that is not a tensor of the kernel")
    whole = tile.is_whole and len(tile.buffer.shape) == 2 and image.is_whole and len(image.buffer.shape) == _AXES
    if not whole or any(value is None or isinstance(value, Operand) for value in given):
        raise Blocked("TL190", stmt.node, "`T.im2col` of a part of an image, or to a part of a tile")
    step, part, taps, stride, dilation, pad = (factor(code(value.node)) for value in given if value is not None)
    _, height, width, channels = (factor(code(node)) for node in image.buffer.shape_nodes)
    rows, columns = (factor(code(node)) for node in tile.buffer.shape_nodes)
    names = Names(job)
    r, c, pixel, top, left, out_h, out_w = (
        names.fresh(*wanted)
        for wanted in (("r", "row"), ("c", "column"), ("pixel",), ("top",), ("left",), ("out_h",), ("out_w",))
    )

    def size(extent: str) -> str:
        return f"({extent} + 2 * {pad} - {dilation} * ({taps} - 1) - 1) // {stride} + 1"

    tap = f"{part} * {columns} // {channels}"
    inside = f"{top} >= 0 and {top} < {height} and {left} >= 0 and {left} < {width}"
    channel = f"{part} * {columns} % {channels} + {c}"
    element = f"{image.buffer.name}[{pixel} // ({out_h} * {out_w}), {top}, {left}, {channel}]"
    text = f"""
for {r}, {c} in T.Parallel({rows}, {columns}):
    {out_h} = {size(height)}
    {out_w} = {size(width)}
    {pixel} = {step} * {rows} + {r}
    {top} = {pixel} % ({out_h} * {out_w}) // {out_w} * {stride} + {tap} // {taps} * {dilation} - {pad}
    {left} = {pixel} % {out_w} * {stride} + {tap} % {taps} * {dilation} - {pad}
    {tile.buffer.name}[{r}, {c}] = T.if_then_else({inside}, {element}, 0)
"""
    rest = image.buffer.shape[-1] % tile.buffer.shape[-1]
    edits = Edits(job.file.index)
    edits.replace_many(stmt.node, parse(job, text, stmt.node))
    job.change("TL190", stmt.node, f"`T.im2col` loads a row of `{tile.buffer.name}` for each pixel")
    job.apply(edits)
    if not rest.is_zero:
        _assert(job, stmt, f"{channels} % {columns} == 0", rest)


def _assert(job: Job, stmt: Op, text: str, rest: Sym) -> None:
    fixed = all(is_size(name) for name in rest.variables()) and not job.late.is_late(rest)
    if rest.constant is not None or job.located.factory is None or not fixed:
        raise Blocked("TL190", stmt.node, f"cannot prove `{text}`: a tile must lie in one tap")
    constants.define(job, [f"assert {text}"])
