"""TL162 to TL165: reductions and scans."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.dialects.catalogue import Kind
from tl2npu.kernel.access import writes
from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.model import Buffer, Memory, Op, Operand, Scalar, Stmt, Store
from tl2npu.passes.gpu.fills import contiguous
from tl2npu.passes.gpu.padded_rows import narrow as is_narrow
from tl2npu.passes.gpu.reductions.before import Before, before, joined_after
from tl2npu.passes.job import Job
from tl2npu.passes.writing.numbers import BITS, element_type
from tl2npu.passes.writing.statements import Names, parse
from tl2npu.passes.writing.tiles import Tiles, dtype_text, extent_text
from tl2npu.source.edits import Edits

_KINDS = {"max": "max", "min": "min", "sum": "add"}
"""The reductions that there are, with the tile operator that joins two results."""
_ABSOLUTE = {"absmax": "max", "abssum": "sum"}
_KNOWN = ("buffer", "out", "dim", "clear", "real_shape")
_MOST_POSITIONAL = 4
_MOST_AXES = 2
_BLOCK = 32
"""Bytes of a row must be a multiple of it."""


@dataclass(frozen=True)
class _Reduction:
    """One reduction of the GPU kernel; ``axis`` counts from 0; ``clear`` is None if it is not known."""

    stmt: Op
    kind: str
    src: Operand
    out: Operand
    axis: int
    clear: bool | None


def rewrite(job: Job) -> None:
    """``clear=False``, absmax, abssum, cumsum and the like."""
    for name in [stmt.op.name for stmt in job.kernel.walk() if isinstance(stmt, Op) and stmt.op.kind is Kind.REDUCE]:
        if not name.startswith(("reduce", "cum")) or name in ("reducer_init", "reducer_update"):
            node = next(s.node for s in job.kernel.walk() if isinstance(s, Op) and s.op.name == name)
            raise Blocked("TL164", node, f"the NPU has no counterpart for `T.{name}`")
    edits = Edits(job.file.index)
    tiles = Tiles(job, Names(job))
    for stmt in list(job.kernel.walk()):
        if not isinstance(stmt, Op) or stmt.op.kind is not Kind.REDUCE:
            continue
        if stmt.op.name in ("cumsum", "cummax"):
            _scan(job, stmt, edits, tiles.names)
        else:
            _reduce(job, _read(job, stmt), edits, tiles)
    tiles.commit(edits)
    job.apply(edits)


def _read(job: Job, stmt: Op) -> _Reduction:
    src, out = stmt.args["buffer"], stmt.args["out"]
    if not isinstance(src, Operand) or not isinstance(out, Operand):
        raise Blocked("TL164", stmt.node, f"cannot tell which buffer `T.{stmt.op.name}` reduces")
    kind = stmt.op.name.removeprefix("reduce_")
    if kind == "reduce":
        kind = str(_static(job, stmt, "reduce_type") or "").removeprefix("reduce_")
    if kind not in _KINDS and kind not in _ABSOLUTE:
        raise Blocked(
            "TL164", stmt.node, f"the NPU reduces only by max, min and sum, not by {kind or 'an unknown name'}"
        )
    for operand in (src, out):
        if operand.buffer.memory is not Memory.UB:
            where = "a global tensor" if operand.buffer.memory is Memory.GM else "not a vector tile"
            raise Blocked("TL164", stmt.node, f"`{operand.buffer.name}` is {where}; reductions work on vector tiles")
        if not contiguous(operand):
            text = f"`{code(operand.node)}` is not contiguous in `{operand.buffer.name}`"
            raise Blocked("TL164", stmt.node, f"{text}, but a reduction needs that")
    clear = stmt.args.get("clear")
    known = 1 if clear is None else clear.sym.constant if isinstance(clear, Scalar) else None
    not_a_number = stmt.args.get("nan_propagate")
    if isinstance(not_a_number, Scalar) and not_a_number.sym.constant != 0:
        raise Blocked("TL164", stmt.node, "how the NPU reduces NaN is not documented")
    return _Reduction(stmt, kind, src, out, _axis(stmt, src), None if known is None else bool(known))


def _static(job: Job, stmt: Op, name: str) -> object | None:
    arg = stmt.args.get(name)
    return job.file.evaluator.static(arg.node, stmt.env) if isinstance(arg, Scalar) else None


def _axis(stmt: Op, src: Operand) -> int:
    dim = stmt.args.get("dim")
    rank = len(src.buffer.shape)
    value = -1 if dim is None else dim.sym.constant if isinstance(dim, Scalar) else None
    if value is None or not -rank <= value < rank:
        raise Blocked("TL164", stmt.node, "the axis of a reduction must be a constant within the rank of the tile")
    return value % rank


def _reduce(job: Job, found: _Reduction, edits: Edits, tiles: Tiles) -> None:
    """Write a reduction as plain ones, each into a tile of its own or into the result."""
    _check_rows(job, found)
    kind = _ABSOLUTE.get(found.kind, found.kind)
    earlier = before(job, found.stmt, found.out, kind) if found.clear is False else Before(fresh=True)
    wide = _wide(job, found, kind)
    if _stays(found, wide) and not _columns(job, found, element_type(job, found.src.buffer)):
        return
    out = code(found.out.node)
    lines: list[str] = []
    source = _source(job, found, wide, lines, tiles)
    converted = wide is not None and not _has_type(job, found.out, wide)
    direct = not converted and (earlier.fresh or earlier.known is not None)
    part = out if direct else _tile(found, found.out, tiles, f"{found.out.buffer.name}_part", dtype=wide)
    lines += _plain(job, found, kind, source, part, tiles, wide if converted else None)
    if converted:
        narrow = out if earlier.fresh or earlier.known else _tile(found, found.out, tiles, f"{part}_narrow")
        lines.append(f"T.copy({part}, {narrow})")
        part = narrow
    again = part == out and joined_after(job, found.stmt, found.out, kind, earlier.known)
    if not earlier.fresh and not again:
        lines.append(f"T.tile.{_KINDS[kind]}({out}, {out}, {earlier.known if part == out else part})")
    edits.replace_many(found.stmt.node, parse(job, "\n".join(lines) + "\n", found.stmt.node))
    for dead in earlier.dead:
        edits.remove(dead)
    if found.clear is False:
        joined = "the statement below joins it" if again else f"combined with `T.tile.{_KINDS[kind]}`"
        how = "there is nothing to join" if earlier.fresh else joined
        job.change("TL162", found.stmt.node, f"`clear=False` of `{found.out.buffer.name}`: {how}")
    if found.kind in _ABSOLUTE or wide is not None or found.clear is not False:
        job.change("TL163", found.stmt.node, f"`T.{found.stmt.op.name}` of `{found.src.buffer.name}` in the NPU's form")


def _stays(found: _Reduction, wide: str | None) -> bool:
    """True if the text means the same on the NPU."""
    call = found.stmt.call
    named = found.stmt.op.name == f"reduce_{found.kind}" and found.kind in _KINDS
    words = all(arg.keyword is None or arg.keyword.value in _KNOWN for arg in call.args)
    few = sum(arg.keyword is None for arg in call.args) <= _MOST_POSITIONAL
    clear = found.clear is not False or not found.out.is_whole
    return named and words and few and clear and wide is None and len(found.src.buffer.shape) <= _MOST_AXES


def _wide(job: Job, found: _Reduction, kind: str) -> str | None:
    """The type to reduce in where that of the source will not do: results of another type, sums of half floats,
    integers that float32 has exactly."""
    types = [element_type(job, operand.buffer) for operand in (found.src, found.out)]
    integers = types[1] == "int32" and types[0] in ("int32", "float32")
    if integers and kind in ("max", "min") and is_small(job, found.src.buffer):
        return '"float32"'
    for name in types:
        if name in BITS and not name.startswith(("float", "bfloat", "half")):
            raise Blocked("TL164", found.stmt.node, f"the NPU reduces floats, not {name}")
    if types[0] != types[1]:
        # types that only the caller knows: what is reduced has the type of the result
        return '"float32"' if all(name in BITS for name in types) else dtype_text(found.out.buffer)
    half = types[0] in ("bfloat16", "float16", "half")
    return '"float32"' if half and (kind == "sum" or types[0] == "bfloat16") else None


def _has_type(job: Job, operand: Operand, dtype: str) -> bool:
    """True if a tile has the type of a text."""
    if dtype_text(operand.buffer) == dtype:
        return True
    return dtype == '"float32"' and element_type(job, operand.buffer) == "float32"


def _tile(found: _Reduction, operand: Operand, tiles: Tiles, *wishes: str, dtype: str | None = None) -> str:
    if not operand.is_whole:
        text = f"a reduction of a part of `{operand.buffer.name}` needs a separate tile"
        raise Blocked("TL164", found.stmt.node, f"`T.{found.stmt.op.name}`: {text}")
    return tiles.like(operand.buffer, *wishes, dtype=dtype)


def _columns(job: Job, found: _Reduction, dtype: str) -> str:
    """The width of the rows of whole blocks that hold the columns which count; empty where that is the tile's own."""
    real = found.stmt.args.get("real_shape")
    if not isinstance(real, Scalar) or not isinstance(real.node, (cst.List, cst.Tuple)):
        return ""
    count, per = real.node.elements[1].value, _BLOCK * 8 // BITS.get(dtype, 32)
    wide = (job.file.evaluator.sym(count, found.stmt.env) + (per - 1)) // per * per
    if wide == found.src.buffer.shape[-1]:
        return ""
    return str(wide) if wide.constant is not None else f"({code(count)} + {per - 1}) // {per} * {per}"


def _source(job: Job, found: _Reduction, wide: str | None, lines: list[str], tiles: Tiles) -> str:
    """What is reduced: the tile itself, or a copy of it in another type, or of its absolute values."""
    name = found.src.buffer.name
    source = code(found.src.node)
    other = wide is not None and not _has_type(job, found.src, wide)
    columns = _columns(job, found, "float32" if other else element_type(job, found.src.buffer))
    if other or columns:
        suffix = "rows" if not other else "f32" if wide == '"float32"' else "cast"
        dtype = wide if other and wide is not None else dtype_text(found.src.buffer)
        if columns:  # rows of whole blocks of this type: the compiler takes no other ones with ``real_shape``
            copy, rows = tiles.names.fresh(f"{name}_{suffix}"), extent_text(found.src.buffer, 0)
            tiles.add(found.src.buffer, f"{copy} = T.alloc_shared(({rows}, {columns}), {dtype})")
            source = f"{source}[:, 0:{columns}]"
        else:
            copy = _tile(found, found.src, tiles, f"{name}_{suffix}", dtype=wide)
        lines.append(f"T.copy({source}, {copy})")
        source = copy
        if found.kind in _ABSOLUTE:
            lines.append(f"T.tile.abs({copy}, {copy})")
    elif found.kind in _ABSOLUTE:
        absolute = _tile(found, found.src, tiles, f"{name}_abs")
        lines.append(f"T.tile.abs({absolute}, {source})")
        source = absolute
    return source


def _plain(
    job: Job, found: _Reduction, kind: str, source: str, target: str, tiles: Tiles, dtype: str | None
) -> list[str]:
    """The reduction itself; one with three axes goes through the first of them."""
    rank = len(found.src.buffer.shape)
    dim = "" if found.axis == rank - 1 else f", dim={found.axis}"
    written = found.stmt.args.get("dim")
    if rank <= _MOST_AXES:
        if isinstance(written, Scalar):
            dim = f", dim={code(written.node)}"
        real = found.stmt.args.get("real_shape")
        dim += f", real_shape={code(real.node)}" if isinstance(real, Scalar) else ""
        return [f"T.reduce_{kind}({source}, {target}{dim})"]
    kept = len(found.out.buffer.shape) == rank
    if rank != _MOST_AXES + 1 or found.axis == 0 or kept or not (found.src.is_whole and found.out.is_whole):
        text = f"a reduction of {rank} axes over axis {found.axis}"
        raise Blocked("TL164", found.stmt.node, f"{text} is not supported: the NPU reduces 2-D tiles")
    index = tiles.names.fresh("i", "plane")
    size = extent_text(found.src.buffer, 0)
    inner = "" if found.axis == rank - 1 else ", dim=0"
    head, plane = f"for {index} in T.serial({size}):", f"{source}[{index}, :, :]"
    if not any(is_narrow(job, found.out.buffer)):
        return [head, f"    T.reduce_{kind}({plane}, {target}[{index}, :]{inner})"]
    row, column = tiles.names.fresh(f"{found.out.buffer.name}_row"), tiles.names.fresh("k", "column")
    width = extent_text(found.out.buffer, -1)
    tiles.add(found.out.buffer, f"{row} = T.alloc_shared([{width}], {dtype or dtype_text(found.out.buffer)})")
    reduced = f"    T.reduce_{kind}({plane}, {row}{inner})"
    return [
        head,
        reduced,
        f"    for {column} in T.serial({width}):",
        f"        {target}[{index}, {column}] = {row}[{column}]",
    ]


def _check_rows(job: Job, found: _Reduction) -> None:
    """Rows of other sizes do not compile, or are read with their padding."""
    bits = BITS.get(element_type(job, found.src.buffer))
    last = found.src.buffer.shape[-1].constant
    if bits is not None and last is not None and last * bits // 8 % _BLOCK:
        text = f"a row of `{found.src.buffer.name}` has {last * bits // 8} bytes, not a multiple of {_BLOCK}"
        raise Blocked("TL164", found.stmt.node, text)


# TL165: scans along an axis become loops. (Left as they are, the compiler would drop them without a word.)


def _scan(job: Job, stmt: Op, edits: Edits, names: Names) -> None:
    """Write ``T.cumsum`` or ``T.cummax`` as a loop over rows, or over the elements of a row."""
    src, dst = stmt.args["src"], stmt.args.get("dst")
    if isinstance(dst, Scalar) and code(dst.node) == "None":
        dst = None
    target = src if dst is None else dst
    if not isinstance(src, Operand) or not isinstance(target, Operand):
        raise Blocked("TL164", stmt.node, f"cannot tell which buffer `T.{stmt.op.name}` scans")
    for operand in (src, target):
        if not operand.is_whole or operand.buffer.memory is not Memory.UB:
            raise Blocked("TL164", stmt.node, f"`T.{stmt.op.name}` needs a whole tile, not `{code(operand.node)}`")
    if src.buffer.shape != target.buffer.shape:
        raise Blocked("TL164", stmt.node, f"`{src.buffer.name}` and `{target.buffer.name}` have different shapes")
    rank = len(src.buffer.shape)
    dim, reverse = _number(stmt, "dim"), _number(stmt, "reverse")
    if dim is None or not -rank <= dim < rank or rank > _MOST_AXES:
        text = "needs an axis that is a constant, and a tile of at most two axes"
        raise Blocked("TL164", stmt.node, f"`T.{stmt.op.name}` {text}")
    lines = [] if src.buffer is target.buffer else [f"T.copy({code(src.node)}, {code(target.node)})"]
    step, row = names.fresh("i", "step"), names.fresh("r", "row")
    if reverse is None:  # a parameter of the factory: the kernel has one of the two loops
        backward, forward = (_loop(stmt, target, dim % rank, way, step, row) for way in (True, False))
        lines += [f"if {code(stmt.args['reverse'].node)}:", *_indented(backward), "else:", *_indented(forward)]
    else:
        lines += _loop(stmt, target, dim % rank, bool(reverse), step, row)
    edits.replace_many(stmt.node, parse(job, "\n".join(lines) + "\n", stmt.node))
    text = "rows are added one after another" if dim % rank < rank - 1 else "element by element (slow)"
    job.change("TL165", stmt.node, f"wrote a loop for `T.{stmt.op.name}`: {text}")


def _number(stmt: Op, name: str) -> int | None:
    arg = stmt.args.get(name)
    return 0 if arg is None else arg.sym.constant if isinstance(arg, Scalar) else None


def _loop(stmt: Op, target: Operand, axis: int, reverse: bool, step: str, row: str) -> list[str]:
    buffer, text = target.buffer, code(target.node)
    largest = stmt.op.name == "cummax"
    size = extent_text(buffer, axis)
    last = f"{size} - 1" if not size.isdigit() else str(int(size) - 1)
    before, here = (f"{last} - {step}", f"{_less(size, 2)} - {step}") if reverse else (step, f"{step} + 1")
    if axis < len(buffer.shape) - 1:
        rows = f"{text}[{here}, :], {text}[{here}, :], {text}[{before}, :]"
        return [f"for {step} in T.serial({last}):", f"    T.tile.{'max' if largest else 'add'}({rows})"]
    lines, indent, prefix = [], "", ""
    if len(buffer.shape) == _MOST_AXES:
        lines, indent, prefix = [f"for {row} in T.serial({extent_text(buffer, 0)}):"], "    ", f"{row}, "
    new, old = f"{text}[{prefix}{here}]", f"{text}[{prefix}{before}]"
    lines.append(f"{indent}for {step} in T.serial({last}):")
    if largest:
        lines += [f"{indent}    if {new} < {old}:", f"{indent}        {new} = {old}"]
    else:
        lines.append(f"{indent}    {new} = {new} + {old}")
    return lines


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _less(size: str, by: int) -> str:
    return str(int(size) - by) if size.isdigit() else f"{size} - {by}"


_EXACT = 1 << 24
_CHOICES = ("if_then_else", "Select")
_LIMITS = ("max", "min")


def is_small(job: Job, buffer: Buffer, met: tuple[Buffer, ...] = ()) -> bool:
    """True if every value that is put into a tile of integers certainly is one that float32 has exactly.

    Those are numbers, and indices of the tile itself: UB has fewer bytes (192 KB, or 256 KB) than float32 has integers
    (2^24), whatever the sizes. The NPU reduces floats only.
    """
    if buffer in met:
        return True  # what it gets from itself it had before
    if buffer.memory is not Memory.UB:
        return False
    stores = [stmt for stmt in job.kernel.walk() if any(operand.buffer is buffer for operand in writes(stmt))]
    return bool(stores) and all(_puts_small(job, stmt, (*met, buffer)) for stmt in stores)


def _puts_small(job: Job, stmt: Stmt, met: tuple[Buffer, ...]) -> bool:
    if stmt.via:
        return False
    if isinstance(stmt, Op) and stmt.op.kind is Kind.FILL:
        value = stmt.args.get("value")
        return value is None or (isinstance(value, Scalar) and _is_number(value))
    return isinstance(stmt, Store) and not stmt.augmented and _is_small(job, stmt, stmt.value.node, met)


def _is_small(job: Job, stmt: Store, node: cst.BaseExpression, met: tuple[Buffer, ...]) -> bool:
    if isinstance(node, cst.Call):
        name = (job.file.names.resolve(node.func) or "").rpartition(".")[2]
        args = node.args[1:] if name in _CHOICES else node.args if name in _LIMITS else ()
        return bool(args) and all(_is_small(job, stmt, arg.value, met) for arg in args)
    operand = job.file.evaluator.operand(node, stmt.env)
    if operand is not None:
        return is_small(job, operand.buffer, met)
    value = job.file.evaluator.scalar(node, stmt.env)
    return _is_number(value) or any(dim.is_point and dim.lo == value.sym for dim in stmt.target.dims or ())


def _is_number(value: Scalar) -> bool:
    number: float | None = value.sym.constant
    node = value.node.expression if isinstance(value.node, cst.UnaryOperation) else value.node
    if number is None and isinstance(node, cst.Float):
        number = node.evaluated_value  # -1.0 and 1.0 alike
    return number is not None and number == int(number) and abs(number) <= _EXACT
