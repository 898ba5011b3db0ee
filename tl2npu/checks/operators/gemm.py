"""TL741, TL794, TL857, TL858, TL870, TL872, TL894, TL898, TL899: shapes, memories, types and parts of products.

Evidence: facts 4 (g4_noinit, g4_fragA, g4_s_*, g4_k_*, g4_f16acc), 2 (g2_ubl1_24) and 3 (g8_row).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tl2npu.checks.operators.types import types_of
from tl2npu.checks.subject import Finding, Placed, Subject
from tl2npu.dialects.catalogue import Kind
from tl2npu.dialects.element_types import DEVICES
from tl2npu.kernel.expressions import code
from tl2npu.kernel.handover import extents_of
from tl2npu.kernel.memory.fractals import FRACTAL, across_blocks, begins_where_counted, is_lower
from tl2npu.kernel.model import Buffer, Copy, Memory, Op, Operand, Scalar
from tl2npu.kernel.sizes import ITEM_SIZE
from tl2npu.kernel.symbolic import Opaque, Sym, const
from tl2npu.results import Severity

_K_STEP = 128
_ROW_BYTES = 32
_SUMS = {"int8": "int32", "float16": "float32", "bfloat16": "float32", "float32": "float32"}
"""The types of products that ``Mmad`` of A2 and A3 has, and of their sums (AscendC API reference)."""


def check(subject: Subject) -> Iterator[Finding]:
    """Findings about every product, and about UB tiles whose rows are padded."""
    chains: dict[Buffer, list[Placed]] = {}
    for placed in subject.statements:
        stmt = placed.stmt
        target = stmt.args.get("C") if isinstance(stmt, Op) and stmt.op.kind in (Kind.GEMM, Kind.MMA) else None
        if isinstance(target, Operand):
            chains.setdefault(target.buffer, []).append(placed)
        if isinstance(stmt, Op) and stmt.op.kind is Kind.GEMM:
            yield from _check_memories(stmt)
            yield from _check_shapes(subject, stmt)
            yield from _check_sizes(subject, stmt)
            yield from _check_types(subject, stmt)
            yield from _check_wide(subject, stmt)
            yield from _check_accumulator(subject, stmt)
            yield from _check_tail(subject, stmt)
        elif isinstance(stmt, Op) and stmt.op.kind is Kind.MMA:
            yield from _check_memories(stmt)
            yield from _check_shapes(subject, stmt)
            yield from _check_accumulator(subject, stmt)
        elif isinstance(stmt, Copy):
            yield from _check_part(subject, stmt, stmt.src)
            yield from _check_operand_part(subject, stmt)
        elif isinstance(stmt, Op) and stmt.op.kind is Kind.ATOMIC:
            yield from _check_part(subject, stmt, stmt.args.get("src"))
    for buffer, chain in chains.items():
        yield from _check_chain(buffer, chain)


def _check_part(subject: Subject, stmt: Copy | Op, source: Operand | Scalar | None) -> Iterator[Finding]:
    """TL870: where a part of a product starts is counted by rows of the tile; L0C has columns of fractals.

    An atomic addition, and for target pto a copy too, takes the height of these columns from the part.
    """
    if not isinstance(source, Operand) or source.buffer.memory is not Memory.L0C or not source.dims:
        return
    part = code(source.node)
    if not begins_where_counted(source):
        text = f"`{part}` starts inside of a product: in L0C its elements are not where the compiler looks"
        yield Finding("TL870", stmt.node, text)
        return
    pto = subject.target == "pto"
    for rows, columns, height in _sizes(subject, source) if pto or isinstance(stmt, Op) else ():
        odd = next((size for size in (rows, columns) if size is not None and size % FRACTAL), None)
        if is_lower(rows, columns, height):
            text = (
                f"`{part}` has fewer rows than `{source.buffer.name}`: only its first {FRACTAL} columns would be found"
            )
        elif pto and odd is not None:
            text = f"`{part}` has an axis of {odd} elements: target pto copies multiples of {FRACTAL} from a product"
        elif pto and rows is None and not subject.is_runtime(source.dims[-2].extent or const(0)):
            text = f"target pto finds only the first {FRACTAL} columns of `{part}` if it has fewer rows than its tile"
        else:
            continue
        yield Finding("TL870", stmt.node, text, "warning" if rows is None else None)
        return


def _sizes(subject: Subject, part: Operand) -> Sequence[tuple[int | None, ...]]:
    """Rows and columns of a part of a tile, and rows of the tile, for each way to call the factory."""
    extents = [dim.extent for dim in part.dims or () if dim.extent is not None][-2:]
    return subject.together(*extents, part.buffer.shape[-2]) if len(extents) == 2 else ()


def _check_operand_part(subject: Subject, stmt: Copy) -> Iterator[Finding]:
    """TL872: a copy into a part of an L1 tile that the compiler lays out in another way than the tile."""
    target = stmt.dst
    if target.buffer.memory is not Memory.L1 or stmt.src.buffer.memory is not Memory.GM or not target.dims:
        return
    for caller in subject.callers:
        size = ITEM_SIZE.get(caller.words.get(target.buffer.dtype, target.buffer.dtype), 2)
        lanes, part = _ROW_BYTES // size, code(target.node)
        if across_blocks(target, lanes):
            text = f"`{part}` starts inside of a block of {lanes} columns of the L1 tile"
        elif subject.target == "pto" and any(is_lower(r, c, h, lanes) for r, c, h in _sizes(subject, target)):
            text = f"`{part}` has fewer rows than `{target.buffer.name}`: target pto lays it out as a tile of its own"
        else:
            continue
        yield Finding("TL872", stmt.node, text)
        return


def _check_memories(stmt: Op) -> Iterator[Finding]:
    """TL894: a fragment is always L0C, so it can be the result only; ``T.mma`` takes what is in L0A and L0B."""
    by_hand = stmt.op.kind is Kind.MMA
    what = "T.mma" if by_hand else "a gemm"
    left, right = (Memory.L0A, Memory.L0B) if by_hand else (Memory.L1, Memory.L1)
    for name, memory in (("A", left), ("B", right), ("C", Memory.L0C)):
        operand = stmt.args.get(name)
        if isinstance(operand, Operand) and operand.buffer.memory is not memory:
            where = operand.buffer.memory.value
            text = f"`{operand.buffer.name}` is in {where}, but operand {name} of {what} must be in {memory.value}"
            help = f"copy it from L1 to a tile of `T.alloc_{memory.value}`" if by_hand and name != "C" else ""
            yield Finding("TL894", stmt.node, text, help=help)


def _check_shapes(subject: Subject, stmt: Op) -> Iterator[Finding]:
    """TL741: gemm_v0 asserts one K, and takes M and N from C (tilelang/language/ascend.py)."""
    extents: dict[str, tuple[Sym, ...]] = {}
    for name in ("A", "B", "C"):
        operand = stmt.args.get(name)
        sizes = (extents_of(operand) or ())[-2:] if isinstance(operand, Operand) else ()
        extents[name] = sizes[::-1] if _is_true(stmt.args.get(f"transpose_{name}")) else sizes
        whole = extents_of(operand) if isinstance(operand, Operand) else None
        odd = [n for size in (whole or ())[:-2] for n in subject.numbers(size) if n not in (None, 1)]
        flat = whole is not None and len(whole) == 1 and None not in subject.numbers(whole[0])  # else: a shape by name
        if isinstance(operand, Operand) and (flat or odd):
            why = f"a leading axis of {odd[0]} elements" if odd else "one axis"
            yield Finding("TL741", stmt.node, f"`{code(operand.node)}` has {why}, but a product takes matrices")
            return
    if any(len(sizes) != 2 for sizes in extents.values()):
        return
    (m, k), (k_of_b, n), (rows, columns) = extents.values()
    for what, first, left, second, right in (
        ("K", "A", k, "B", k_of_b),
        ("M", "A", m, "C", rows),
        ("N", "B", n, "C", columns),
    ):
        if subject.known_different(left, right):
            pairs = subject.together(left, right)
            shown = next((pair for pair in pairs if None not in pair and pair[0] != pair[1]), (left, right))
            text = f"{what} is {shown[0]} in operand {first} and {shown[1]} in operand {second} of the product"
            help = _remedy(subject, stmt, extents, what)
            yield Finding("TL741", stmt.node, text, help=help)
            if "transpose" in help:
                return  # nor do the other sizes differ then
        elif what == "K" and left != right and all(gap is None for gap in subject.numbers(left - right)):
            text = f"K is `{left}` in operand A and `{right}` in operand B; use one name if they are equal"
            help = "write the size of K with the same names in both tiles, or assert that they are equal"
            yield Finding("TL741", stmt.node, text, "warning", help=help)


def _remedy(subject: Subject, stmt: Op, extents: Mapping[str, tuple[Sym, ...]], what: str) -> str:
    """What makes the sizes of a product fit: an operand that is turned, or other tiles."""
    for name in ("B", "A"):
        (m, k), (k_of_b, n), (rows, columns) = ({**extents, name: extents[name][::-1]}).values()
        if subject.same(k, k_of_b) and subject.same(m, rows) and subject.same(n, columns):
            given = _is_true(stmt.args.get(f"transpose_{name}"))
            return f"leave out `transpose_{name}`" if given else f"pass `transpose_{name}=True`"
    if what == "K":
        return "load tiles of A and B with the same K; a part of a tile is not an operand of gemm_v0"
    sizes = (extents["A"][0], extents["B"][1])
    shape = ", ".join(next((str(n) for n in subject.numbers(size) if n is not None), str(size)) for size in sizes)
    return f"allocate the result as ({shape}), or load tiles of its size; gemm_v0 takes no part of a tile"


def _check_chain(buffer: Buffer, chain: list[Placed]) -> Iterator[Finding]:
    first = chain[0]
    assert isinstance(first.stmt, Op)
    init = _init(first.stmt)
    if init is not None and not init.is_zero:
        never = _never_true(first, init)
        if never:
            yield Finding("TL898", first.stmt.node, f"`init` is never true: `{never}` does not start at that value")
        return
    branch = next((condition for condition, _ in first.conditions), None)
    if branch is not None:
        inside = [p for p in chain if any(c is branch for c, _ in p.conditions)]
        if any(isinstance(p.stmt, Op) and not (_init(p.stmt) or const(0)).is_zero for p in inside):
            return
    what = "T.mma" if first.stmt.op.kind is Kind.MMA else "gemm"
    text = f"the first {what} adds to `{buffer.name}`, which is never cleared"
    yield Finding("TL898", first.stmt.node, text)


def _init(stmt: Op) -> Sym | None:
    init = stmt.args.get("init")
    return init.sym if isinstance(init, Scalar) else None


def _never_true(placed: Placed, init: Sym) -> str:
    """The loop variable of ``init=(k == c)`` whose loop starts at another number than ``c``."""
    for monomial, _ in init.terms:
        for atom in monomial:
            if isinstance(atom, Opaque) and atom.head == "Equal" and len(atom.args) == 2:
                for item in placed.ranges:
                    if item.var in atom.args:
                        other = atom.args[1] if atom.args[0] == item.var else atom.args[0]
                        gap = (other - item.start).constant
                        if gap is not None and gap < 0:
                            return item.name
    return ""


def _check_sizes(subject: Subject, stmt: Op) -> Iterator[Finding]:
    # ascendc lowers odd sizes without a word, and what it then computes was never seen: no error there, but a warning
    severity: Severity | None = None if subject.target == "pto" else "warning"
    for name in ("A", "B", "C"):
        operand = stmt.args.get(name)
        if not isinstance(operand, Operand):
            continue
        for size in operand.buffer.shape[-2:]:
            odd = next((n for n in subject.numbers(size) if n is not None and n % FRACTAL), None)
            if odd is not None:
                text = f"`{operand.buffer.name}` has an axis of {odd} elements, not a multiple of {FRACTAL}"
                yield Finding("TL899", stmt.node, text, severity)
                return
    if subject.target != "pto":
        return
    depth = depth_of(stmt)
    old = not subject.compiler.slice_argument  # #1387 takes the tail from where it lies
    for number in subject.numbers(depth) if depth is not None and old else ():
        if number is not None and number > _K_STEP and number % _K_STEP:
            yield Finding("TL899", stmt.node, f"K is {number}: above {_K_STEP} it must be a multiple of {_K_STEP}")
            return


def _check_accumulator(subject: Subject, stmt: Op) -> Iterator[Finding]:
    """L0C holds sums of 32 bits, for each type of operands of one type only; both operands have one type."""
    left, right = stmt.args.get("A"), stmt.args.get("B")
    if isinstance(left, Operand) and isinstance(right, Operand):
        one, other = (types_of(subject, operand.buffer) for operand in (left, right))
        if one and other and not one & other:
            text = f"`{left.buffer.name}` is {min(one)} and `{right.buffer.name}` {min(other)}: a product has one type"
            yield Finding("TL710", stmt.node, text)
    target = stmt.args.get("C")
    if not isinstance(target, Operand) or subject.options.device not in DEVICES:
        return
    types = types_of(subject, target.buffer)
    given = types_of(subject, left.buffer) if isinstance(left, Operand) else frozenset()
    sums = {_SUMS[dtype] for dtype in given & _SUMS.keys()} or set(_SUMS.values())
    if isinstance(left, Operand) and given and not given & _SUMS.keys():
        text = f"`{left.buffer.name}` is {min(given)}, of which the cube core has no products"
        yield Finding("TL710", stmt.node, text)
    elif types and not types & sums:
        of = min(given) if given else "integers" if "int32" in types else "float16"
        text = f"`{target.buffer.name}` is {min(types)}, but a product of {of} is summed up in "
        wanted = " or ".join(sorted(sums))
        yield Finding("TL899", stmt.node, text + wanted, help=f"allocate `{target.buffer.name}` as {wanted}")


def depth_of(stmt: Op) -> Sym | None:
    """K of a product, from the shape of A."""
    left = stmt.args.get("A")
    if not isinstance(left, Operand) or len(left.buffer.shape) < 2:
        return None
    transposed = stmt.args.get("transpose_A")
    flipped = isinstance(transposed, Scalar) and transposed.sym.constant == 1
    return left.buffer.shape[-2 if flipped else -1]


def _check_types(subject: Subject, stmt: Op) -> Iterator[Finding]:
    """TL857: the offsets of slices of K are those of two-byte types, in two of the four layouts."""
    left, depth = stmt.args.get("A"), depth_of(stmt)
    if not isinstance(left, Operand) or depth is None or subject.target == "pto" or not subject.compiler.holds("TL857"):
        return
    flipped = {name for name in ("transpose_A", "transpose_B") if _is_true(stmt.args.get(name))}
    if flipped == {"transpose_B"}:
        return
    for caller in subject.callers:
        name = caller.words.get(left.buffer.dtype, left.buffer.dtype)
        deep = depth.evaluate(caller.values)
        if ITEM_SIZE.get(name, 2) != 2 and deep is not None and deep > _K_STEP:
            text = f"K is {deep}: above {_K_STEP} gemm_v0 takes wrong slices of {name}"
            yield Finding("TL857", stmt.node, text)
            return


def _check_wide(subject: Subject, stmt: Op) -> Iterator[Finding]:
    """TL794: fractals of float32 are 16 by 8, and no instruction of A2 and A3 transposes them on their way to L0B."""
    right = stmt.args.get("B")
    if subject.target == "pto" or subject.options.device not in DEVICES or not isinstance(right, Operand):
        return
    if types_of(subject, right.buffer) == {"float32"} and not _is_true(stmt.args.get("transpose_B")):
        text = f"`{right.buffer.name}` is float32 and not transposed: such products were NaN on an NPU"
        yield Finding("TL794", stmt.node, text)


def _check_tail(subject: Subject, stmt: Op) -> Iterator[Finding]:
    """TL858: the last slice of K is no whole fractal, and the product takes what lies behind it."""
    left, depth = stmt.args.get("A"), depth_of(stmt)
    if not isinstance(left, Operand) or depth is None or subject.target == "pto" or not subject.compiler.holds("TL858"):
        return
    for caller in subject.callers:
        size = ITEM_SIZE.get(caller.words.get(left.buffer.dtype, left.buffer.dtype), 2)
        deep = depth.evaluate(caller.values)
        given = stmt.args.get("kL0Size")
        step = (given.sym.evaluate(caller.values) if isinstance(given, Scalar) else None) or _K_STEP
        if deep is None or deep <= step:
            continue
        tail = deep % step or step
        if not subject.compiler.pads_depth and tail % FRACTAL:
            text = (
                f"K is {deep}: its last {tail} are not a multiple of {FRACTAL}, so gemm_v0 also adds data past the end"
            )
        elif subject.compiler.pads_depth and size == 1 and 0 < tail % _ROW_BYTES <= FRACTAL:
            text = f"K is {deep}: for one-byte types, its last part ({tail}) must be a multiple of {_ROW_BYTES}"
        else:
            continue
        yield Finding("TL858", stmt.node, text)
        return


def _is_true(arg: object) -> bool:
    return isinstance(arg, Scalar) and arg.sym.constant == 1
