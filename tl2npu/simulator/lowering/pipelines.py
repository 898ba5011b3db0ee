"""``T.Pipelined`` over both cores: turns that the cross-core pipeline drops (legacy-to-developer 2.6, #1378)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tl2npu.simulator.ir.buffer import Region
from tl2npu.simulator.ir.expr import Load
from tl2npu.simulator.ir.stmt import For, Op, Stmt
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.copier import Copier
from tl2npu.simulator.lowering.cores import op_core


def drop_remainders(body: list[Stmt]) -> list[Stmt]:
    """A pipelined loop with hand-overs makes ``extent // num_stages`` rounds of ``num_stages`` turns."""
    return _Remainders().block(body)


@dataclass(eq=False)
class _Remainders(Copier):
    def on_For(self, stmt: For) -> list[Stmt]:
        stages = stmt.notes.get("num_stages", 0)
        new = self.copy(stmt)
        staged = stmt.kind == "pipelined" and isinstance(stages, int) and stages > 1
        if staged and isinstance(stmt.extent, int) and _crosses(stmt):
            new = replace(new, extent=stmt.extent // stages * stages)  # type: ignore[call-arg]
        return [new]


def _crosses(loop: For) -> bool:
    """Whether both cores work in the loop and a ``workspace...`` is written in it."""
    cores = {op_core(s) for s in statements(loop.body) if isinstance(s, Op)}
    written = any(
        isinstance(s, Op) and s.name == "copy" and _is_workspace(s.args.get("dst")) for s in statements(loop.body)
    )
    return written and {"C", "V"} <= cores


def _is_workspace(value: object) -> bool:
    return (
        isinstance(value, (Region, Load))
        and value.buffer.memory == "global"
        and value.buffer.name.startswith("workspace")
    )
