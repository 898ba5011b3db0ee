"""Which tensors a launch must be given for its sizes: the compiler takes a symbol from a tensor that has it as an axis.

Source: ``_process_dynamic_symbolic`` in tilelang/jit/adapter/cython/adapter.py of tile-ai/tilelang-ascend. Outputs and
workspaces give no symbol, and an axis of ``M + 1`` elements does not give ``M``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tl2npu.kernel.bindings import assigned_names
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.runtime import runtime_names
from tl2npu.kernel.symbolic import Sym
from tl2npu.passes.launches.jit import inseparable
from tl2npu.source.index import Index
from tl2npu.source.tree import mentioned


@dataclass(frozen=True, eq=False)
class Symbols:
    """The sizes of a prim_func that are known at a call only.

    ``annotations``: of its tensors, and of those in between; ``shapes``: the axes of each; ``values``: of names that
    depend on such a size; ``setup``: the lines of the factory.
    """

    node: cst.FunctionDef
    annotations: Mapping[str, cst.BaseExpression]
    shapes: Mapping[str, Sequence[Sym]]
    values: Mapping[str, Sym]
    setup: Sequence[cst.CSTNode]

    @classmethod
    def of(
        cls,
        index: Index,
        factory: cst.FunctionDef,
        node: cst.FunctionDef,
        annotations: Mapping[str, cst.BaseExpression],
    ) -> Symbols:
        """Those of a prim_func in a factory."""
        file = FileKernels(index)
        located = next(item for item in file.located if item.node is node)
        sym, sequence, env = file.evaluator.sym, file.evaluator.sequence, located.env
        values = {name: sym(cst.Name(name), env) for name in runtime_names(file, located)}
        shapes = {
            tensor: [sym(axis, around) for shape in _shape(written) for axis, around in sequence(shape, env)]
            for tensor, written in annotations.items()
        }
        return cls(node, annotations, shapes, values, factory.body.body[: factory.body.body.index(node)])

    def givers(self, lines: Sequence[cst.CSTNode], own: Collection[str], there: Sequence[str]) -> set[str]:
        """The tensors that a launch must also be given.

        ``lines``: the launch, and what it needs of the prim_func. ``own``: the tensors that it has, ``there``: those
        that exist before it, inputs first. Raises :class:`Blocked` where none of them has a size.
        """
        used = {name for line in lines for name in mentioned(line)}
        used |= {name for tensor in own for name in mentioned(self.annotations[tensor])}
        for line in reversed(self.setup):
            used |= mentioned(line) if assigned_names(line) & used else set()
        wanted = {symbol for name in used & self.values.keys() for symbol in self.values[name].variables()}
        missing = wanted & _alone(self.values.values())
        missing -= {symbol for tensor in own if tensor in there for symbol in _alone(self.shapes[tensor])}
        found: set[str] = set()
        while missing:
            giver = next((tensor for tensor in there if missing & _alone(self.shapes[tensor])), None)
            if giver is None:
                symbol = min(missing).partition("@")[0]
                why = f"no tensor that one of its launches could be given has an axis of `{symbol}` elements"
                raise inseparable(self.node, why)
            found.add(giver)
            missing -= _alone(self.shapes[giver])
        return found


def _shape(annotation: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The shape of ``T.Tensor(shape, dtype)`` or ``T.Tensor[shape, dtype]``; empty for another annotation."""
    if isinstance(annotation, cst.Subscript):
        return [item.slice.value for item in annotation.slice[:1] if isinstance(item.slice, cst.Index)]
    given = annotation.args if isinstance(annotation, cst.Call) else ()
    named = [arg.value for arg in given if arg.keyword is not None and arg.keyword.value == "shape"]
    return named or [arg.value for arg in given[:1] if arg.keyword is None]


def _alone(values: Iterable[Sym]) -> set[str]:
    """The variables that stand alone as a value."""
    return {name for value in values for name in value.variables() if str(value) == name}
