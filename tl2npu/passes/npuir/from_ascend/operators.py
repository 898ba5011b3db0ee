"""TL421, TL422, TL426: operators of Ascend C in the words of AscendNPU IR."""

from __future__ import annotations

from tl2npu.dialects.catalogue import Kind, Role
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Op, Operand, Scalar
from tl2npu.kernel.numbers import is_zero
from tl2npu.kernel.symbolic import product
from tl2npu.passes.npuir.from_ascend.counterparts import FILLS, IN_LOOPS, REDUCTIONS, ROUNDING, SAME
from tl2npu.passes.npuir.from_ascend.writer import Writer
from tl2npu.tile.meaning import formula


def lines(writer: Writer, stmt: Op) -> list[str] | None:
    """The new statements; None for an operator that stays as it is."""
    name = stmt.op.name
    if name == "gemm_v0":
        return _gemm(writer, stmt)
    if name in FILLS:
        return _fill(writer, stmt)
    if name in REDUCTIONS:
        return _reduction(writer, stmt)
    if "count" in stmt.args and name in SAME:
        return _clamp(writer, stmt)
    if name in SAME:
        return _by_element(writer, stmt)
    if name == "tile.cast":
        return _cast(writer, stmt)
    if name == "tile.broadcast":
        return _broadcast(writer, stmt)
    if name == "tile.atomic_add":
        return _atomic_add(writer, stmt)
    if name == "tile.transpose":
        dst, src = _tiles(stmt, "dst", "src")
        _need_whole(writer, stmt, dst, src)
        return [f"T.transpose({writer.tile(src)}, {writer.tile(dst)}, [1, 0])"]
    if name in IN_LOOPS:
        return _loop(writer, stmt)
    if name == "tile.silu":
        return _silu(writer, stmt)
    if stmt.op.kind is Kind.TILE:
        raise Blocked("TL428", stmt.node, f"AscendNPU IR has no `T.{name}`")
    return None


def _tiles(stmt: Op, *names: str) -> tuple[Operand, ...]:
    found = tuple(stmt.args.get(name) for name in names)
    for arg in found:
        if not isinstance(arg, Operand):
            raise Blocked("TL430", stmt.node, f"an operand of `T.{stmt.op.name}` is not supported")
    return found  # type: ignore[return-value]


def _need_whole(writer: Writer, stmt: Op, *operands: Operand) -> None:
    for operand in operands:
        if not writer.is_whole(operand):
            text = f"AscendNPU IR would use all of `{operand.buffer.name}` here, not `{code(operand.node)}`"
            raise Blocked("TL430", stmt.node, text)


def _need_equal(writer: Writer, stmt: Op, dst: Operand, *sources: Operand) -> None:
    """Extents agree axis by axis; a source may have 1 where it is spread by a loop over rows."""
    wanted = writer.extents(dst)
    for source in sources:
        given = writer.extents(source)
        same = len(given) == len(wanted) and all(
            a == b or (writer.rows is not None and a.constant == 1) for a, b in zip(given, wanted, strict=True)
        )
        if not same:
            text = f"cannot prove that `{code(source.node)}` and `{code(dst.node)}` have the same shape"
            raise Blocked("TL430", stmt.node, text)


def _gemm(writer: Writer, stmt: Op) -> list[str]:
    a, b, c = _tiles(stmt, "A", "B", "C")
    _need_whole(writer, stmt, c)
    text = f"T.gemm({writer.given(stmt, a)}, {writer.given(stmt, b)}, {writer.tile(c)}"
    for old, new in (("init", "initC"), ("transpose_A", "a_transpose"), ("transpose_B", "b_transpose")):
        value = stmt.args.get(old)
        if value is not None and code(value.node).strip("()") != "False":
            text += f", {new}={code(value.node)}"
    return [text + ")"]


def _fill(writer: Writer, stmt: Op) -> list[str]:
    (dst,) = _tiles(stmt, "buffer")
    _need_whole(writer, stmt, dst)
    value = stmt.args.get("value")
    if value is None or is_zero(value.node):
        return [f"T.clear({writer.tile(dst)})"]
    if writer.rows is not None and isinstance(value, Operand):
        return [f"T.vbrc({writer.tile(value)}, {writer.tile(dst)})"]
    before: list[str] = []
    text = writer.number(before, value, f"{dst.buffer.name}_value", plain=False)
    return [*before, f"T.vbrc({text}, {writer.tile(dst)})"]


def _by_element(writer: Writer, stmt: Op) -> list[str]:
    name = stmt.op.name
    (dst,) = _tiles(stmt, "dst")
    target = writer.given(stmt, dst)
    args = [stmt.args[param.name] for param in stmt.op.params if param.name in stmt.args and param.name != "dst"]
    first = args[0]
    if not isinstance(first, Operand):
        raise Blocked("TL430", stmt.node, f"the first operand of `T.{name}` is not a tile")
    new = SAME[name]
    if len(args) == 1:
        _need_equal(writer, stmt, dst, first)
        return [f"T.{new}({writer.given(stmt, first)}, {target})"]
    second = args[1]
    before: list[str] = []
    if isinstance(second, Operand) and not _is_element(writer, second):
        _need_equal(writer, stmt, dst, first, second)
        return [f"T.{new}({writer.given(stmt, first)}, {writer.given(stmt, second)}, {target})"]
    _need_equal(writer, stmt, dst, first)
    plain = writer.is_whole(dst) and new != "vshr"
    number = writer.number(before, second, f"{dst.buffer.name}_factor" if new == "vmul" else "value", plain=plain)
    tail = ", round=False" if new == "vshr" else ""
    return [*before, f"T.{new}({writer.given(stmt, first)}, {number}, {target}{tail})"]


def _is_element(writer: Writer, operand: Operand) -> bool:
    return writer.rows is None and operand.is_indexed


def _cast(writer: Writer, stmt: Op) -> list[str]:
    dst, src = _tiles(stmt, "dst", "src")
    _need_equal(writer, stmt, dst, src)
    _need_all(writer, stmt, src)
    known = writer.job.file.evaluator.static(stmt.args["mode"].node, stmt.env)
    mode = known if isinstance(known, str) else code(stmt.args["mode"].node).strip("\"'")
    if mode not in ROUNDING:
        raise Blocked("TL430", stmt.node, f"the rounding mode `{mode}` is unknown")
    if ROUNDING[mode] == "rint" and not (writer.is_whole(src) and writer.is_whole(dst)):
        return [f"T.copy({writer.tile(src)}, {writer.tile(dst)})"]  # T.vcast takes whole tiles; a copy rounds like this
    _need_whole(writer, stmt, dst, src)
    return [f'T.vcast({writer.tile(src)}, {writer.tile(dst)}, round_mode="{ROUNDING[mode]}")']


def _need_all(writer: Writer, stmt: Op, tile: Operand) -> None:
    count = stmt.args.get("count")
    if not isinstance(count, Scalar) or count.sym != product(writer.extents(tile)):
        text = f"cannot prove that the count covers all of `{tile.buffer.name}`, as AscendNPU IR does"
        raise Blocked("TL430", stmt.node, text)


def _broadcast(writer: Writer, stmt: Op) -> list[str]:
    dst, src = _tiles(stmt, "dst", "src")
    _need_whole(writer, stmt, dst, src)
    if len(src.buffer.shape) != len(dst.buffer.shape):
        raise Blocked("TL430", stmt.node, f"`{src.buffer.name}` and `{dst.buffer.name}` have different ranks")
    return [f"T.vbrc({writer.tile(src)}, {writer.tile(dst)})"]


def _reduction(writer: Writer, stmt: Op) -> list[str] | None:
    src, out = _tiles(stmt, "buffer", "out")
    given = [arg.keyword.value if arg.keyword else "" for arg in stmt.call.args]
    dim = stmt.args.get("dim")
    clear, real = stmt.args.get("clear"), stmt.args.get("real_shape")
    if real is not None and code(real.node) != "None":
        text = "`real_shape` is smaller than the tile, but AscendNPU IR reduces the whole tile"
        raise Blocked("TL430", stmt.node, text)
    axis = dim.sym.constant if isinstance(dim, Scalar) else -1
    if len(src.buffer.shape) > 2:
        raise Blocked("TL430", stmt.node, f"`{src.buffer.name}` has more than two axes")
    kind = code(stmt.args["reduce_type"].node).strip("\"'") if stmt.op.name == "reduce" else stmt.op.name
    regular = all(name == "" for name in given[:2]) and all(name in ("dim", "clear") for name in given[3:])
    if kind == stmt.op.name and regular and (src.dims is None or (axis or 0) >= 0):
        return None
    count = len(src.buffer.shape)
    text = code(dim.node) if dim is not None else "-1"
    if axis is not None and axis < 0 and src.dims is not None:
        text = str(axis + count)
    tail = f", clear={code(clear.node)}" if clear is not None else ""
    return [f"T.{kind}({writer.tile(src)}, {writer.tile(out)}, dim={text}{tail})"]


def _atomic_add(writer: Writer, stmt: Op) -> list[str]:
    dst, src = _tiles(stmt, "dst", "src")
    if dst.dims is None or not dst.is_indexed:
        return [f"T.atomic_add({writer.tile(dst)}, {writer.tile(src)})"]
    if not writer.is_whole(src) or len(src.buffer.shape) > len(dst.dims):
        raise Blocked("TL430", stmt.node, f"cannot tell the size of the addition to `{dst.buffer.name}`")
    sizes = ["1"] * (len(dst.dims) - len(src.buffer.shape)) + [code(size) for size in src.buffer.shape_nodes]
    return [f"T.atomic_add({writer.tile(dst)}, {writer.tile(src)}, size=[{', '.join(sizes)}])"]


def _clamp(writer: Writer, stmt: Op) -> list[str]:
    dst, src = _tiles(stmt, "out", "buffer")
    _need_whole(writer, stmt, dst, src)
    _need_equal(writer, stmt, dst, src)
    _need_all(writer, stmt, src)
    before: list[str] = []
    keys = [param.name for param in stmt.op.params if param.role is Role.SCALAR]
    values = [writer.number(before, stmt.args[key], "limit", plain=True) for key in keys]
    new, target = SAME[stmt.op.name], writer.tile(dst)
    rest = [target, *values] if new == "vclamp" else [*values, target]
    return [*before, f"T.{new}({writer.tile(src)}, {', '.join(rest)})"]


def _loop(writer: Writer, stmt: Op) -> list[str]:
    tiles = {key: arg for key, arg in stmt.args.items() if isinstance(arg, Operand) and not _is_element(writer, arg)}
    dst, sources = tiles["dst"], [tile for key, tile in tiles.items() if key != "dst"]
    _need_whole(writer, stmt, dst, *sources)
    _need_equal(writer, stmt, dst, *sources)
    before: list[str] = []
    text = f"{{dst}} = {formula(stmt.op)}"
    if "scalar_value" in stmt.args:
        value = writer.number(before, stmt.args["scalar_value"], "factor", plain=True)
        text = text.replace("{scalar_value}", value if value.replace(".", "").isalnum() else f"({value})")
    return [*before, *writer.parallel(dst, text, tiles)]


def _silu(writer: Writer, stmt: Op) -> list[str]:
    dst, src = _tiles(stmt, "dst", "src")
    if dst.buffer is src.buffer:
        text = "`T.tile.silu` in place needs a second tile in AscendNPU IR: `T.vsigmoid(x, s)` and `T.vmul(x, s, x)`"
        raise Blocked("TL428", stmt.node, text)
    _need_equal(writer, stmt, dst, src)
    x, y = writer.given(stmt, src), writer.given(stmt, dst)
    return [f"T.vsigmoid({x}, {y})", f"T.vmul({x}, {y}, {y})"]
