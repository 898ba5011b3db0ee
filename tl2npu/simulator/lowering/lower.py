"""The entry: one launch of a traced kernel to its programs, in the order of the compiler's passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tl2npu.dialects import element_types
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Binary, Call, Expr, Load, Var
from tl2npu.simulator.ir.parts import walk
from tl2npu.simulator.ir.stmt import Alloc, Kernel, Launch, Op, Parallel, Stmt, Store
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering import memories, npuir, parallel_forms, vid
from tl2npu.simulator.lowering.copier import Copier
from tl2npu.simulator.lowering.cores import divide
from tl2npu.simulator.lowering.cross_sync import synchronise
from tl2npu.simulator.lowering.deviations import check_inference, deviate
from tl2npu.simulator.lowering.handovers import reduce_workspaces
from tl2npu.simulator.lowering.pipelines import stage
from tl2npu.simulator.lowering.program import Program
from tl2npu.simulator.machine.symbols import symbols_of

# Parts of tiles in L1 and L0C: where the generated code looks for them, and where they are.
#
# A tile of R x C elements there is a column of blocks behind the other, each of R rows (rounded up to 16) of ``lanes``
# elements: 16 in L0C (``MakeLayoutL0C``), 32 bytes in L1 (``zN``, tilelang/intrinsics/ascend_layout.py:make_zn_layout).
# So element (i, j) is number ``j // lanes * R * lanes + i * lanes + j % lanes``. A copy is given an address for the
# part's first element and walks on from there as in a tile of ``rows`` rows (src/op/ascend.cc, AscendCopy::Lower):
#
# - The address in L0C is counted as in a row-major tile; in L1 it is right (``layout_map``), unless a vectorised
#   ``T.Parallel`` has made the compiler drop the layouts (R-L1PART, E81).
# - For target ascendc, ``rows`` are the tile's (``copy_l0c_to_gm<.., srcM, srcN>``, ``copy_gm_to_l1<.., dstM, dstN>``);
#   in an atomic addition from L0C the part's, if they are a constant (AscendAtomicAdd::Lower).
# - For target pto they are as many rows of the tile as the part has elements, if that is a constant
#   (codegen_ascend_pto.cc:GetSliceInfo, GMCopyCall).

ROWS = 16
"""Rows of a fractal."""


def column_block(memory: str, dtype: str) -> int:
    """Elements that lie side by side in a row of a fractal."""
    return ROWS if memory == "l0c" else 256 // dtypes.bits(dtype)


@dataclass(frozen=True)
class Walk:
    """How an instruction walks through a tile: ``rows`` of the tile that it takes it for, the address ``by_rows`` as in
    a row-major tile or by the layout."""

    rows: int
    by_rows: bool

    def finds(self, shape: Sequence[int], lanes: int, starts: Sequence[int], extents: Sequence[int]) -> bool:
        """True if the instruction takes the elements that the region names."""
        height, row, column = _up(shape[-2]), starts[-2], starts[-1]
        meant = column // lanes * height * lanes + row * lanes + column % lanes
        walked = row * shape[-1] + column if self.by_rows else meant
        one_block = column % lanes + extents[-1] <= lanes
        return walked == meant and (one_block or (column % lanes == 0 and _up(self.rows) == height))

    def check(self, side: Any, extents: Sequence[int]) -> None:
        """Raises SimulatorError where the instruction takes other elements; ``side`` is a ``machine.Operand``."""
        shape, lanes = side.array.shape, column_block(side.memory, side.dtype)
        if math.prod(extents) and not self.finds(shape, lanes, side.starts, extents):
            part = ", ".join(f"{s}:{s + e}" for s, e in zip(side.starts, extents, strict=True))
            where = {"l0c": "L0C", "l1": "L1"}[side.memory]
            text = f"{side.name}[{part}] in {where}: the compiler computes the part's offset for another layout than "
            side.fail(text + f"the tile's, blocks of {ROWS} x {lanes} elements")


def annotate(body: list[Stmt], pto: bool, vectorised: bool, own: Sequence[Buffer]) -> None:
    """Give copies and atomic additions of parts of such tiles the argument ``walk``: a ``Walk`` for ``src`` or ``dst``.

    ``vectorised``: the kernel has such a ``T.Parallel``; ``own``: workspaces of the compiler, which are written as it
    reads them. ``body`` is changed in place.
    """
    for stmt in statements(body):
        if not isinstance(stmt, Op) or stmt.name not in ("copy", "tile.atomic_add") or stmt.args.get("transpose"):
            continue
        for name, other in (("src", "dst"), ("dst", "src")):
            side, peer = stmt.args.get(name), stmt.args.get(other)
            if isinstance(side, (Region, Load)) and isinstance(peer, (Region, Load)) and peer.buffer not in own:
                walk = _walk(stmt, side, peer, pto, vectorised)
                if walk is not None:
                    stmt.args = {**stmt.args, "walk": (name, walk)}


def _walk(stmt: Op, side: Region | Load, peer: Region | Load, pto: bool, vectorised: bool) -> Walk | None:
    buffer = side.buffer
    if buffer.memory not in ("l0c", "l1") or buffer.ndim < 2 or not all(isinstance(n, int) for n in buffer.shape):
        return None
    rows, columns = (int(n) for n in buffer.shape[-2:])
    extents = side.extents if isinstance(side, Region) else peer.extents if isinstance(peer, Region) else ()
    starts = side.starts if isinstance(side, Region) else side.indices
    whole = all(
        isinstance(n, int) and n == m
        for n, m in zip((*starts[-2:], *extents[-2:]), (0, 0, rows, columns), strict=False)
    )
    if len(extents) < 2 or whole:
        return None
    if pto:
        count = math.prod(e for e in extents if isinstance(e, int))
        rows = max(count // columns, 1) if all(isinstance(e, int) for e in extents) else rows
    elif stmt.name != "copy" and isinstance(extents[-2], int):
        rows = min(rows, extents[-2])
    return Walk(rows, buffer.memory == "l0c" or vectorised)


def _up(rows: int) -> int:
    return -(-rows // ROWS) * ROWS


_PRODUCTS = {"gemm_v0", "mma"}
"""Both factors are ``LocalTensor<T1>`` (``src/tl_templates/ascend/common.h:594``)."""


def check(body: list[Stmt], target: str) -> None:
    """Raises SimulatorError for the first such operator, in text order."""
    for stmt in statements(body):
        if isinstance(stmt, Op):
            _operator(stmt, target)
        elif isinstance(stmt, Parallel) and parallel_forms.form(stmt) != parallel_forms.SCALAR:
            for store in stmt.body:
                if isinstance(store, Store) and store.buffer.memory == "ub":
                    _store(store)


def _operator(stmt: Op, target: str) -> None:
    if stmt.name in _PRODUCTS:
        left, right = (value.dtype for value in map(stmt.args.get, "AB") if isinstance(value, (Region, Buffer, Load)))
        if left != right:
            text = f"T.{stmt.name} multiplies one type, not {left} by {right}"
            raise SimulatorError(text, stmt.site)
    found = element_types.OPERATORS.get(stmt.name)
    operand = stmt.args.get(found[0]) if found is not None else None
    buffer = operand.buffer if isinstance(operand, Region) else operand
    if found is not None and isinstance(buffer, Buffer) and buffer.memory == "ub":
        mode = stmt.args.get("mode")
        if not element_types.takes(stmt.name, buffer.dtype, mode if isinstance(mode, str) else "", target):
            _fail(stmt, f"T.{stmt.name}", buffer.dtype, stmt.name)


def _store(store: Store) -> None:
    for part in walk(store.value):
        if isinstance(part, (Binary, Call)):
            sign = part.op if isinstance(part, Binary) else part.name
            name = element_types.SIGNS.get(sign, "")
            dtype = part.dtype if isinstance(part, Expr) else store.buffer.dtype
            if name and not element_types.takes(name, dtype):
                _fail(store, f"`{sign}` in T.Parallel", dtype, name)


def _fail(stmt: Stmt, what: str, dtype: str, name: str) -> None:
    known = ", ".join(sorted(element_types.OPERATORS[name][1]))
    raise SimulatorError(f"{what} of {dtype}: the vector core has the instruction for {known} only", stmt.site)


IDEAL = "ideal"
"""Whole tiles on one vector core, every hand-over once per copy and guarded on both sides: what the author means."""

ACTUAL = "actual"
"""What the compiler's rules make of the text."""


def lower(kernel: Kernel, launch: Launch, reading: str = ACTUAL) -> Program:
    """The programs of the cores of one launch."""
    symbols = symbols_of(kernel.params)
    meets = any(isinstance(s, Op) and _meets(s) for s in statements(launch.body))
    if launch.npuir:
        return npuir.lower(kernel, launch, symbols, meets)
    if not launch.is_npu:
        return _gpu(kernel, launch, symbols, meets)
    return _npu(kernel, launch, reading, symbols, meets)


def _gpu(kernel: Kernel, launch: Launch, symbols: list[Var], meets: bool) -> Program:
    """One program for a block; what ``T.alloc_global`` makes is one tensor for all blocks."""
    found = [s.buffer for s in statements(launch.body) if isinstance(s, Alloc)]
    shared = list(dict.fromkeys(b for b in found if b.memory == "global"))
    checks = not kernel.configs.get("tl.disable_safe_memory_legalize")
    return Program(launch, [("G", 1, launch.body)], symbols, workspaces=shared, meets=meets, checks=checks)


def _npu(kernel: Kernel, launch: Launch, reading: str, symbols: list[Var], meets: bool) -> Program:
    reading = ACTUAL if _names_cores(launch) else reading
    configs = Configs(kernel.configs)
    shared = memories.infer(launch.body)
    check(launch.body, str(kernel.attrs.get("target") or "ascendc"))
    split: Var | None = None
    gathered: set[int] = set()
    body: list[Stmt]
    if reading == ACTUAL:
        check_inference(launch.body, shared)
    vectors = 1 if launch.threads is not None else 2
    if launch.threads == 2 and reading == ACTUAL:
        split, vectors = Var("vid") if launch.vid is None else launch.vid, 2
        gathered = vid.gathered_buffers(launch.body, launch.outside)
        body = vid.reduce_vid(launch.body, split, launch.outside)
    else:
        body = Copier().block(launch.body)
    if reading == ACTUAL:
        # Target pto keeps the row stride in its own copy; packing was measured there in Developer mode only.
        expert_pto = kernel.attrs.get("target") == "pto" and launch.threads is None
        body = deviate(body, packs=not expert_pto)
    workspaces = reduce_workspaces(body, launch, split, reading == ACTUAL, gathered)
    if reading == ACTUAL:
        pto = kernel.attrs.get("target") == "pto"
        annotate(body, pto, parallel_forms.any_vectorised(body), workspaces)
        body, workspaces = stage(body, workspaces)
    divided = divide(body, configs.combine, reading == ACTUAL)
    if configs.cross_sync or (reading == IDEAL and workspaces):
        guarded = {w.number for w in workspaces} if reading == IDEAL else set()
        synchronise(divided["C"], divided["V"], guarded)
    cores = [("C", 1, divided["C"]), ("V", vectors, divided["V"])]
    vid_var = launch.vid if split is None else split
    truncates = reading == ACTUAL
    return Program(launch, cores, symbols, workspaces, meets, vid=vid_var, truncates=truncates)


def _meets(stmt: Op) -> bool:
    return stmt.name in ("sync_all", "sync_grid") or (stmt.name == "set_cross_flag" and stmt.args.get("mode") == 0)


def developer(launch: Launch) -> bool:
    """Whether the two readings of a launch may differ: tiles are split, or handed over, by the compiler."""
    return launch.is_npu and not launch.npuir and launch.threads is not None and not _names_cores(launch)


def _names_cores(launch: Launch) -> bool:
    """A kernel that names its vector core, or half of the rows, speaks of the split itself: it has one reading."""
    return launch.threads == 2 and (launch.vid is not None or vid.names_halves(launch.body))


class Configs:
    """The pass configuration of a kernel: which automatic passes are on."""

    def __init__(self, configs: dict[str, Any], is_npuir: bool = False) -> None:
        on = {str(key) for key, value in configs.items() if value}
        self.combine = "tl.ascend_auto_cv_combine" in on
        self.cross_sync = self.combine and "tl.ascend_auto_cross_core_sync" in on
        self.sync = "tl.ascend_auto_sync" in on
        self.memory = "tl.ascend_memory_planning" in on
        if is_npuir:
            self.sync, self.memory = "npuir.disable_hivm_auto_inject_sync" not in on, True
