"""Which parameters of a prim_func the runtime returns or allocates: ``out_idx`` and ``workspace_idx``."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.blocked import Blocked
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.compilations import Compilation
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.facts import facts
from tl2npu.kernel.factories.located import Located


@dataclass(frozen=True, eq=False)
class Indices:
    """``out_idx`` or ``workspace_idx`` of a compilation: parameter positions, as given and counted from 0."""

    arg: cst.BaseExpression
    given: tuple[int, ...]
    positions: tuple[int, ...]


def parameter_count(located: Located) -> int:
    """All parameters of the prim_func, tensors and scalars."""
    params = located.node.params
    return len(params.posonly_params) + len(params.params)


def indices(file: FileKernels, located: Located, compilation: Compilation, key: str) -> Indices | None:
    """The literal positions of ``out_idx`` or ``workspace_idx``; raises :class:`Blocked` if they cannot be read."""
    node = compilation.kwargs.get(key)
    if node is None or (isinstance(node, cst.Name) and node.value == "None"):
        return None
    if isinstance(node, cst.IfExp) and isinstance(node.test, cst.Name):
        known = facts(file.index, located.node).get(node.test.value)
        node = node if known is None else node.body if known else node.orelse
    env = located.factory.env if located.factory else located.env
    items = file.evaluator.sequence(node, env)
    given = [file.evaluator.sym(item, item_env).constant for item, item_env in items]
    count = parameter_count(located)
    if any(value is None or not -count <= value < count for value in given):
        raise Blocked("TL902", node, f"cannot read `{key}={code(node)}`")
    values = tuple(value for value in given if value is not None)
    return Indices(node, values, tuple(value % count for value in values))


def compilations(located: Located) -> list[Compilation]:
    """How the kernel is compiled in this file."""
    return located.compilations


def output_positions(file: FileKernels, located: Located) -> set[int]:
    """Positions of the tensors that the compiled kernel returns."""
    found: set[int] = set()
    for compilation in compilations(located):
        outputs = indices(file, located, compilation, "out_idx")
        found |= set(outputs.positions if outputs else ())
    return found


def workspace_positions(file: FileKernels, located: Located) -> set[int]:
    """Positions of the tensors that the runtime allocates."""
    found: set[int] = set()
    for compilation in compilations(located):
        workspaces = indices(file, located, compilation, "workspace_idx")
        found |= set(workspaces.positions if workspaces else ())
    return found
