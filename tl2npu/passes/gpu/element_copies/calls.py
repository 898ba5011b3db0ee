"""TL171: copies in forms that the NPU's ``T.copy`` does not have.

Between global memory and a tile the NPU moves elements as they are and fills whole rows of the tile; conversion, and
columns of a tile, are copies between two tiles (compiler-facts 1: g1_g_cols, g1_c_copycast).
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.element_types import plain
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Copy, Dim, Memory, Op, Operand, Scalar
from tl2npu.kernel.symbolic import Sym, const
from tl2npu.passes.gpu.element_copies.gathers import is_operand
from tl2npu.passes.gpu.element_copies.strided import Column, Place, load_column, place_in, sliced_column, store_column
from tl2npu.passes.gpu.fills import contiguous
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import element_type
from tl2npu.passes.writing.statements import Names, expression, factor, parse, shape_text
from tl2npu.passes.writing.tiles import Tiles, dtype_text, last_allocation, size_text
from tl2npu.source.edits import Edits

_MATRIX = 2
_RUN = 2048
"""How many elements of whole tensors are copied at once: any type has room for two such tiles."""
_SHORT = {"float16": "half", "bfloat16": "bf16", "float32": "f32", "int32": "i32", "int8": "i8", "uint8": "u8"}


def plain_copies(job: Job) -> None:
    """Loads that convert, and copies of parts of tiles that are no rows, go through a tile."""
    _single_asynchronous(job)
    _spread_points(job)
    edits = Edits(job.file.index)
    tiles = Tiles(job, Names(job))
    made: dict[tuple[Buffer, str], str] = {}
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Copy):
            continue
        source, target = stmt.src.buffer, stmt.dst.buffer
        if source.memory is Memory.GM and target.memory is Memory.GM:
            _between(job, stmt, edits, tiles)
            continue
        column = sliced_column(job, stmt)
        if column is not None:
            _column(job, stmt, column, edits, tiles)
            continue
        if source.memory is Memory.GM and target.is_tile:
            if not _in_rows(stmt.dst):
                _through_part(job, stmt, stmt.dst, edits, tiles)
            elif not same_type(job, source, target):
                _convert(job, stmt, edits, tiles, made)
        elif target.memory is Memory.GM and source.is_tile and not _in_rows(stmt.src):
            _through_part(job, stmt, stmt.src, edits, tiles)
    tiles.commit(edits)
    job.apply(edits)


def match_types(job: Job) -> None:
    """Stores of vector tiles that convert; a product is converted on its way out of L0C."""
    edits = Edits(job.file.index)
    tiles = Tiles(job, Names(job))
    made: dict[tuple[Buffer, str], str] = {}
    for stmt in job.kernel.walk():
        if not isinstance(stmt, Copy) or same_type(job, stmt.src.buffer, stmt.dst.buffer):
            continue
        if stmt.src.buffer.memory is Memory.UB and stmt.dst.buffer.memory is Memory.GM:
            _convert(job, stmt, edits, tiles, made)
    tiles.commit(edits)
    job.apply(edits)


def same_type(job: Job, left: Buffer, right: Buffer) -> bool:
    """True if two buffers have the same element type, or if nothing says that they have not."""
    one, two = (element_type(job, buffer) for buffer in (left, right))
    return plain(one) == plain(two)


def _in_rows(operand: Operand) -> bool:
    """True for a whole tile, a start index, or whole rows of a tile."""
    if operand.dims is None or all(dim.is_point for dim in operand.dims):
        return True
    return contiguous(operand)


def _column(job: Job, stmt: Copy, column: Column, edits: Edits, tiles: Tiles) -> None:
    """One axis of a tensor that is not the last, to or from a tile with one axis."""
    load = stmt.src.buffer is column.tensor
    tile = stmt.dst if load else stmt.src
    name = tiles.names.fresh("i", "element")
    at = place_in(tile.buffer, name)
    if not tile.is_whole or at is None or stmt.options or not tile.buffer.is_tile:
        text = f"`{code((stmt.src if load else stmt.dst).node)}` is a column of `{column.tensor.name}`"
        raise Blocked("TL170", stmt.node, f"{text}: its elements are not contiguous")
    move_column = load_column if load else store_column
    move = move_column(job, column, Place(tile.buffer.name, tile.buffer.dtype, at), name, tiles.names)
    for made in move.tiles:
        tiles.add(tile.buffer, made)
    edits.replace_many(stmt.node, parse(job, "\n".join(move.lines) + "\n", stmt.node))
    job.change("TL169", stmt.node, move.told)


def _between(job: Job, stmt: Copy, edits: Edits, tiles: Tiles) -> None:
    """A tile between two tensors, or between a run of elements of each; two tiles where they differ in type."""
    source, target = stmt.src.buffer, stmt.dst.buffer
    name = tiles.names.fresh(f"{source.name.lower()}_tile")
    around: list[str] = []
    if stmt.src.dims is stmt.dst.dims is None and source.shape == target.shape:
        size = shape_text(job.kernel, [str(_RUN)])
        *sizes, last_size = map(code, source.shape_nodes)
        indices = [tiles.names.fresh("row", "r") for _ in sizes]
        around = [f"for {index} in T.serial({count}):" for index, count in zip(indices, sizes, strict=True)]
        run = tiles.names.fresh("run")
        around.append(f"for {run} in T.serial(T.ceildiv({last_size}, {_RUN})):")
        ends = [f"{buffer.name}[{', '.join([*indices, f'{run} * {_RUN}'])}]" for buffer in (source, target)]
    else:
        dims = stmt.src.dims if stmt.src.dims and not all(dim.is_point for dim in stmt.src.dims) else stmt.dst.dims
        shape = [_extent(dim) for dim in dims or ()]
        if None in shape or not 1 <= len([size for size in shape if size]) <= _MATRIX:
            raise Blocked("TL170", stmt.node, "cannot tell the size of this copy between two tensors")
        size = shape_text(job.kernel, [text for text in shape if text])
        ends = [code(stmt.src.node), code(stmt.dst.node)]
    lines = [f"T.copy({ends[0]}, {name})"]
    made = [f"{name} = T.alloc_shared({size}, {dtype_text(source)})"]
    if not same_type(job, source, target):
        converted = tiles.names.fresh(f"{target.name.lower()}_tile")
        made.append(f"{converted} = T.alloc_shared({size}, {dtype_text(target)})")
        lines.append(f"T.copy({name}, {converted})")
        name = converted
    lines.append(f"T.copy({name}, {ends[1]})")
    last = last_allocation(job, stmt)
    nested = [" " * 4 * depth + line for depth, line in enumerate(around)]
    text = "\n".join([*nested, *(" " * 4 * len(around) + line for line in lines)]) + "\n"
    if last is not None and last.buffer.statement is not None:
        for line in made:
            tiles.add(last.buffer, line)
    else:
        text = "\n".join(made) + "\n" + text
    edits.replace_many(stmt.node, parse(job, text, stmt.node))
    job.change("TL171", stmt.node, f"copied `{source.name}` to `{target.name}` through a tile")


def _convert(job: Job, stmt: Copy, edits: Edits, tiles: Tiles, made: dict[tuple[Buffer, str], str]) -> None:
    """A tile of the tensor's type between the tensor and the tile."""
    load = stmt.src.buffer.memory is Memory.GM
    tensor, tile = (stmt.src, stmt.dst) if load else (stmt.dst, stmt.src)
    dtype = dtype_text(tensor.buffer)
    key = (tile.buffer, dtype)
    if key not in made:
        short = _SHORT.get(element_type(job, tensor.buffer), "cast")
        made[key] = tiles.like(tile.buffer, f"{tile.buffer.name}_{short}", dtype=dtype)
    part = made[key] + code(tile.node)[len(tile.buffer.name) :]
    first, second = (code(stmt.src.node), part), (part, code(stmt.dst.node))
    if not load and any(dim.extent is not None and job.late.is_late(dim.extent) for dim in tile.dims or ()):
        first = tile.buffer.name, made[key]  # between two tiles, target pto takes extents that are constants only
    options = "".join(f", {name}={code(value.node)}" for name, value in stmt.options.items() if load)
    lines = f"T.copy({', '.join(first)}{options})\nT.copy({', '.join(second)})\n"
    edits.replace_many(stmt.node, parse(job, lines, stmt.node))
    job.change("TL171", stmt.node, f"converted `{tensor.buffer.name}` by a copy between two tiles")


def _through_part(job: Job, stmt: Copy, operand: Operand, edits: Edits, tiles: Tiles) -> None:
    """A tile of the size of the part; a copy between two tiles keeps to the columns."""
    buffer = operand.buffer
    if is_operand(job.kernel, buffer):
        text = f"`{code(operand.node)}` is a part of a tile of the gemm"
        raise Blocked("TL170", stmt.node, f"{text}, but copies to and from global memory need whole rows of a tile")
    load = stmt.dst is operand
    tensor = stmt.src.buffer if load else stmt.dst.buffer
    shape = [extent for extent in (_extent(dim) for dim in operand.dims or ()) if extent]
    if None in [_extent(dim) for dim in operand.dims or ()] or buffer.statement is None:
        raise Blocked("TL170", stmt.node, f"cannot tell the size of `{code(operand.node)}`")
    if any(dim.extent is not None and job.late.is_late(dim.extent) for dim in operand.dims or ()):
        text = f"`{code(operand.node)}` has a size that is known at run time only"
        raise Blocked("TL170", stmt.node, f"{text}, but copies to and from global memory need whole rows of a tile")
    name = tiles.names.fresh(f"{buffer.name}_part")
    tiles.add(buffer, f"{name} = T.alloc_shared({shape_text(job.kernel, shape)}, {dtype_text(tensor)})")
    other = code(stmt.src.node) if load else code(stmt.dst.node)
    here = code(operand.node)
    lines = (
        f"T.copy({other}, {name})\nT.copy({name}, {here})\n"
        if load
        else f"T.copy({here}, {name})\nT.copy({name}, {other})\n"
    )
    edits.replace_many(stmt.node, parse(job, lines, stmt.node))
    job.change("TL171", stmt.node, f"copied a part of `{buffer.name}` through a tile of that size")


def _extent(dim: Dim) -> str | None:
    """The extent of one index as text, empty for a point."""
    if not isinstance(dim.node, cst.Slice):
        return ""
    assert dim.extent is not None
    if dim.extent.constant is not None:
        return str(dim.extent.constant)
    if dim.lo.is_zero and dim.node.upper is not None:
        return code(dim.node.upper)
    return size_text(dim.extent)


def _spread_points(job: Job) -> None:
    """``T.copy(X[b : b + 1, k], x)`` of a tile of one row: a GPU's copy spreads what is one element to the tile's size.

    It does where the two sides have not as many axes that are longer than 1 (``legalize_pairwise_extents`` of
    tile-ai/tilelang). The Ascend compiler takes one element.
    """
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        sides = (stmt.src, stmt.dst) if isinstance(stmt, Copy) and not stmt.via else ()
        tensor = next((side for side in sides if side.buffer.memory is Memory.GM), None)
        tile = next((side for side in sides if side.buffer.is_tile), None)
        axes = _long_axes(tile) if tile is not None else None
        text = _spread(tensor, axes) if tensor is not None and axes is not None else None
        if tensor is not None and text is not None:
            edits.replace(tensor.node, expression(job, text, tensor.node))
            job.change("TL171", stmt.node, f"wrote all extents of `{code(tensor.node)}`")
    job.apply(edits)


def _long_axes(tile: Operand) -> list[tuple[Sym, cst.BaseExpression]] | None:
    """The sizes of a tile, or of a part of it behind its first single indices, each with its text; None if unknown."""
    axes = list(zip(tile.buffer.shape, tile.buffer.shape_nodes, strict=True))
    if tile.dims is None:
        return axes
    if len(tile.dims) != len(axes):
        return None  # the shape is a name of which this file does not tell the axes
    found: list[tuple[Sym, cst.BaseExpression]] = []
    for dim, (size, node) in zip(tile.dims, axes, strict=True):
        extent = const(1) if dim.is_point else dim.extent
        if extent == size:
            found.append((size, node))
        elif extent is None or extent.constant is None:
            return None
        elif found or not dim.is_point:
            found.append((extent, cst.Integer(str(extent.constant))))
    return found


def _spread(tensor: Operand, axes: Sequence[tuple[Sym, cst.BaseExpression]]) -> str | None:
    """A region with slices and single indices, as a tile of these axes wants it; None where it is so already."""
    one, dims = const(1), tensor.dims or ()
    sizes = [size for size, _ in axes]
    extents = [one if dim.is_point else dim.extent for dim in dims]
    shape = [*[one] * (len(dims) - len(sizes)), *sizes][-len(dims) :] if dims else []
    if all(dim.is_point for dim in dims) or all(not dim.is_point for dim in dims):
        return None
    if sum(size != one for size in extents) == sum(size != one for size in sizes):
        return None
    nodes = [node for _, node in axes][-len(dims) :]
    nodes = [nodes[0]] * (len(dims) - len(nodes)) + nodes
    parts: list[str] = []
    for dim, extent, size, node in zip(dims, extents, shape, nodes, strict=True):
        if dim.is_point and size != one:
            start, length = code(dim.node), code(node)
            plain_sum = str(int(start) + int(length)) if start.isdigit() and length.isdigit() else ""
            parts.append(f"{start}:{plain_sum}" if plain_sum else f"{start} : {start} + {factor(length)}")
        elif extent == size or extent is None:
            parts.append(code(dim.node))
        else:
            return None
    return f"{tensor.buffer.name}[{', '.join(parts)}]"


def _single_asynchronous(job: Job) -> None:
    """``T.async_copy(src, dst)`` is a copy; the waits for it are hints, the NPU's compiler synchronises."""
    edits = Edits(job.file.index)
    for stmt in job.kernel.walk():
        if isinstance(stmt, Op) and stmt.op.kind is Kind.COPY and stmt.op.name == "async_copy":
            src, dst = (stmt.args[name] for name in ("src", "dst"))
            if isinstance(src, Scalar) or isinstance(dst, Scalar):
                raise Blocked("TL170", stmt.node, "cannot tell which buffers this asynchronous copy uses")
            edits.replace(stmt.call, expression(job, f"T.copy({code(src.node)}, {code(dst.node)})", stmt.node))
            job.change("TL171", stmt.node, "wrote a plain copy for an asynchronous copy")
        elif isinstance(stmt, Op) and stmt.op.name == "transpose":
            raise Blocked(
                "TL170", stmt.node, "`T.transpose` of a tile is not supported; let the gemm transpose its operand"
            )
    job.apply(edits)
