"""Names that the module and the factories around a kernel bind, read as Python would, with the parameters given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst
import numpy as np

from tl2npu.dialects.catalogue import Kind
from tl2npu.evaluate import arithmetic
from tl2npu.evaluate.cores import Layout
from tl2npu.evaluate.machine import Machine
from tl2npu.evaluate.values import FAILS, Frame, Function, NotChecked, Tile, Unknown, whole_number
from tl2npu.kernel.bindings import assigned_names, body_of
from tl2npu.kernel.expressions import code
from tl2npu.kernel.factories.factory import FileKernels
from tl2npu.kernel.factories.located import Located
from tl2npu.kernel.model import Memory

_WORK = 1_000_000
_FAILS = (NotChecked, *FAILS)


def surroundings(
    file: FileKernels, located: Located, bound: Mapping[str, object], symbols: Mapping[str, int]
) -> Frame:
    """The names around a kernel.

    ``bound`` are parameters of its factory and sizes of the module, ``symbols`` the sizes of ``T.symbolic``.
    """
    around = list(file.index.ancestors(located.node))
    reader = _Host(file, symbols, bound, around)
    reader.carry_out(file.index.module.body)
    for function in reversed([node for node in around if isinstance(node, cst.FunctionDef)]):
        reader.go_into(function, bound)
    return reader.frame


class Unfit(NotChecked):
    """A factory does not take the sizes: ``test`` is what does not hold, or holds in front of a ``raise``."""

    def __init__(self, test: cst.BaseExpression, why: str) -> None:
        super().__init__(why)
        self.test = test


class _Host(Machine):
    """Carries out what it understands; any other name becomes unknown."""

    def __init__(
        self, file: FileKernels, symbols: Mapping[str, int], bound: Mapping[str, object], around: Sequence[cst.CSTNode]
    ) -> None:
        super().__init__(file.names, "gpu", Layout({}))
        self.around = {id(node) for node in around}
        self.symbols, self.left = dict(symbols), _WORK
        self.frames = {0: self.frame}
        self.asked: cst.BaseExpression | None = None
        self.sizes = {name: value for name, value in bound.items() if type(value) is int}

    def go_into(self, function: cst.FunctionDef, bound: Mapping[str, object]) -> None:
        """Enter a function with some of its parameters known."""
        params = function.params
        outer = self.frame
        inner = Frame(outer)
        for param in (*params.posonly_params, *params.params, *params.kwonly_params):
            name = param.name.value
            inner.values[name] = Unknown(f"the value of `{name}` is not known")
            if name in bound:
                inner.values[name] = bound[name]
            elif param.default is not None:  # a guess stands for None where a size is needed
                try:
                    inner.values[name] = self.value(param.default)
                except _FAILS:
                    continue
        self.frame = self.frames[0] = inner
        self.carry_out(body_of(function))

    def carry_out(self, body: Sequence[cst.CSTNode]) -> bool:
        """Run statements; False behind a ``return``."""
        for node in body:
            if isinstance(node, cst.SimpleStatementLine):
                for small in node.body:
                    if isinstance(small, cst.Return):
                        return False
                    self._must_hold(small)
                    if isinstance(small, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
                        self._attempt(small)
            elif isinstance(node, cst.FunctionDef):
                self.frame.values[node.name.value] = Function(node, self.frame)
            elif isinstance(node, cst.If):
                if not self._choose(node):
                    return False
            else:
                self._forget(node, "it is bound in a statement that is not read")
        return True

    def _must_hold(self, small: cst.BaseSmallStatement) -> None:
        """Raises :class:`Unfit` for sizes that the author does not take."""
        if isinstance(small, cst.Raise):
            raise Unfit(self.asked or cst.Name("True"), "it takes no such sizes")
        if isinstance(small, cst.Assert):
            try:
                holds = bool(self.value(small.test))
            except _FAILS:
                return
            if not holds:
                raise Unfit(small.test, f"`{code(small.test)}` does not hold at these sizes")

    def _attempt(self, small: cst.BaseSmallStatement) -> None:
        try:
            self.small(small)
            for name in assigned_names(small) & self.sizes.keys():
                if type(self.frame.values.get(name)) is int:  # a constant of the module, as a smaller size
                    self.frame.values[name] = self.sizes[name]
        except _FAILS as error:
            self._forget(small, str(error))

    def _choose(self, node: cst.If) -> bool:
        taken = id(node.body) in self.around  # the kernel is built there, whatever was guessed for the test
        try:
            taken = taken or (id(node.orelse) not in self.around and bool(self.value(node.test)))
        except _FAILS as error:
            self._forget(node, str(error))
            return True
        if id(node) in self.around:
            self._settle(node.test, taken)
        self.asked = node.test
        if taken:
            return self.carry_out(body_of(node))
        if isinstance(node.orelse, cst.If):
            return self._choose(node.orelse)
        return self.carry_out(body_of(node.orelse)) if node.orelse is not None else True

    def _settle(self, test: cst.BaseExpression, holds: bool) -> None:
        """A switch that a branch asks for has the value with which the branch is taken."""
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            self._settle(test.expression, not holds)
        elif isinstance(test, cst.Name) and isinstance(self.frame.find(test.value), (bool, Unknown, type(None))):
            self.frame.values[test.value] = holds

    def _forget(self, node: cst.CSTNode, why: str) -> None:
        for name in assigned_names(node):
            known = self.frame.values.get(name)
            if isinstance(node, cst.BaseSmallStatement) or known is None or not isinstance(known, Function):
                self.frame.values[name] = Unknown(f"the value of `{name}` is not known" if "`" not in why else why)


def tensors(machine: Machine, node: cst.FunctionDef) -> tuple[dict[str, Tile], dict[str, str]]:
    """The tensors that a prim_func takes, with nothing in them, and the element types of its other parameters."""
    found: dict[str, Tile] = {}
    scalars: dict[str, str] = {}
    around, machine.frame = machine.frame, Frame(machine.frame)  # a later one may have the type of an earlier one
    for param in (*node.params.posonly_params, *node.params.params):
        name, written = param.name.value, param.annotation.annotation if param.annotation is not None else None
        args: list[cst.BaseExpression] = []
        words: dict[str, cst.BaseExpression] = {}
        func = written
        if isinstance(written, cst.Subscript):
            args = [item.slice.value for item in written.slice if isinstance(item.slice, cst.Index)]
            func = written.value
        elif isinstance(written, cst.Call):
            args = [arg.value for arg in written.args if arg.keyword is None]
            words = {arg.keyword.value: arg.value for arg in written.args if arg.keyword is not None}
            func = written.func
        op = machine.operator(func) if func is not None and (args or words) else None
        if op is None or op.kind is not Kind.TYPE:
            scalars[name] = "" if written is None else _type_of(machine, written)
            continue
        sizes = machine.value(words["shape"] if "shape" in words else args[0])
        kind = words.get("dtype", args[1] if len(args) > 1 else None)
        dtype = "float32" if kind is None else machine.dtype(kind)
        shape = [whole_number(size, name) for size in (sizes if isinstance(sizes, (tuple, list)) else (sizes,))]
        if any(size < 0 for size in shape) or np.prod(shape, dtype=np.float64) > 1e7:
            raise NotChecked(f"`{name}` is too large to be evaluated")
        found[name] = Tile(name, dtype, Memory.GM, np.zeros(shape, arithmetic.storage(dtype)))
        machine.frame.values[name] = found[name]
    machine.frame = around
    return found, scalars


def _type_of(machine: Machine, node: cst.BaseExpression) -> str:
    try:
        found = machine.raw(node)
    except NotChecked:
        return ""
    return found if isinstance(found, str) else ""
