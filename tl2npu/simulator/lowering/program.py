"""A launch divided among cores."""

from __future__ import annotations

from dataclasses import dataclass, field

from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import Launch, Stmt


@dataclass(eq=False)
class Program:
    """``cores``: kind (``C``, ``V``, ``G``), how many of it a block has, statements. ``symbols``: free variables.

    ``workspaces``: tensors in global memory that it added.
    ``meets``: blocks wait for each other, so all have to run side by side.
    """

    launch: Launch
    cores: list[tuple[str, int, list[Stmt]]]
    symbols: list[Var] = field(default_factory=list)
    workspaces: list[Buffer] = field(default_factory=list)
    meets: bool = False
    checks: bool = True
    """On a GPU: the compiler puts every access of global memory under a bounds check."""
    vid: Var | None = None
    """The number of a vector core, where the program asks for it."""
    truncates: bool = False
    """``//`` and ``%`` are printed as ``/`` and ``%`` of C (codegen_ascend.cc and codegen_ascend_pto.cc)."""
