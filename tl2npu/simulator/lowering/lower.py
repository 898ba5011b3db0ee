"""The entry: one launch of a traced kernel to its programs."""

from __future__ import annotations

from typing import Any

from tl2npu.simulator.ir.stmt import Kernel, Launch, Op
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering import memories
from tl2npu.simulator.lowering.cores import divide
from tl2npu.simulator.lowering.program import Program
from tl2npu.simulator.machine.symbols import symbols_of

IDEAL = "ideal"
ACTUAL = "actual"


def lower(kernel: Kernel, launch: Launch, reading: str = ACTUAL) -> Program:
    """The programs of the cores. ``reading`` chooses between what the author means and what the compiler makes of it."""
    symbols = symbols_of(kernel.params)
    meets = any(isinstance(s, Op) and _meets(s) for s in statements(launch.body))
    if not launch.is_npu:
        return Program(launch, [("G", 1, launch.body)], symbols, meets=meets)
    memories.infer(launch.body)
    configs = Configs(kernel.configs)
    divided = divide(launch.body, configs.combine)
    vectors = 1 if launch.threads is not None else 2
    return Program(launch, [("C", 1, divided["C"]), ("V", vectors, divided["V"])], symbols, meets=meets)


def _meets(stmt: Op) -> bool:
    return stmt.name in ("sync_all", "sync_grid") or (stmt.name == "set_cross_flag" and stmt.args.get("mode") == 0)


class Configs:
    """The pass configuration of a kernel: which automatic passes are on."""

    def __init__(self, configs: dict[str, Any]) -> None:
        on = {str(key) for key, value in configs.items() if value}
        self.combine = "tl.ascend_auto_cv_combine" in on
        self.cross_sync = self.combine and "tl.ascend_auto_cross_core_sync" in on
        self.sync = "tl.ascend_auto_sync" in on
        self.memory = "tl.ascend_memory_planning" in on
