"""A prim_func with what is around it: the function that builds it, and how it is compiled."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from tl2npu.kernel.environment import Env
from tl2npu.kernel.expressions import Evaluator
from tl2npu.kernel.factories.compilations import Compilation
from tl2npu.kernel.model import Kernel
from tl2npu.kernel.read import read_kernel


@dataclass(eq=False)
class Factory:
    """The function that returns a prim_func, with its environment."""

    node: cst.FunctionDef
    env: Env
    compilations: list[Compilation] = field(default_factory=list)


@dataclass(eq=False)
class Located:
    """A prim_func with its surroundings; ``key`` finds it again after edits.

    ``own``: how it is compiled, where no factory is around it.
    """

    key: tuple[str, int]
    node: cst.FunctionDef
    factory: Factory | None
    env: Env
    evaluator: Evaluator
    own: list[Compilation] = field(default_factory=list)

    @property
    def compilations(self) -> list[Compilation]:
        """How the kernel is compiled in this file."""
        return self.own if self.factory is None else self.factory.compilations

    def read(self, targets: tuple[object, ...] | None = None) -> Kernel:
        """Read the kernel model; ``targets``: what it is written for, where that is not what its compilation says."""
        return read_kernel(self.node, self.env, self.evaluator, self.targets if targets is None else targets)

    @property
    def targets(self) -> tuple[object, ...]:
        """What the kernel is compiled for, where the file says it with a constant."""
        given = [found.kwargs["target"] for found in self.compilations if "target" in found.kwargs]
        return tuple(self.evaluator.static(node, self.env) for node in given)
