"""The entry: one launch of a traced kernel to its programs, in the order of the compiler's passes."""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import Alloc, Kernel, Launch, Op, Stmt
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering import element_types, fractals, memories, npuir, parallel_forms, vid
from tl2npu.simulator.lowering.copier import Copier
from tl2npu.simulator.lowering.cores import divide
from tl2npu.simulator.lowering.cross_sync import synchronise
from tl2npu.simulator.lowering.deviations import check_inference, deviate
from tl2npu.simulator.lowering.handovers import reduce_workspaces
from tl2npu.simulator.lowering.pipelines import stage
from tl2npu.simulator.lowering.program import Program
from tl2npu.simulator.machine.symbols import symbols_of

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
    element_types.check(launch.body, str(kernel.attrs.get("target") or "ascendc"))
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
        fractals.annotate(body, pto, parallel_forms.any_vectorised(body), workspaces)
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
