"""Calls of operators: arguments as their meanings expect them, flags and barriers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from tl2npu.simulator.errors import SimulatorError, UnsupportedOperator
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer, Region
from tl2npu.simulator.ir.expr import Expr, Load
from tl2npu.simulator.ir.stmt import Op, Site
from tl2npu.simulator.machine.emit import blocks
from tl2npu.simulator.machine.emit.copies import Copies
from tl2npu.simulator.machine.emit.state import tuple_code
from tl2npu.simulator.operators.registry import Meaning, meaning, refusal

_WAITS = {"wait_cross_flag", "wait_flag", "sync_all", "sync_grid"}
_SETS = {"set_cross_flag", "set_flag", "pipe_barrier", "barrier_all"}
_NOTHING = {"sync_threads", "sync_warp", "sync_global"}
"""Orders nothing between cores that run one after the other: the threads of a block are one program here."""


def is_sync(stmt: Any) -> bool:
    """True for flags and barriers."""
    return isinstance(stmt, Op) and stmt.name in _WAITS | _SETS | _NOTHING


class Operators(Copies):
    """The code of operator calls."""

    def do_Op(self, stmt: Op) -> None:
        if stmt.name in _WAITS | _SETS | _NOTHING:
            self.sync(stmt)
            return
        found = meaning(stmt.name, self.gpu)
        if found is None:
            reason = refusal(stmt.name, self.gpu) or "it has no meaning in the simulator"
            raise UnsupportedOperator(f"T.{stmt.name}: {reason}", stmt.site)
        if self.lanes:
            self._element_op(stmt)
            return
        if self.in_blocks:
            self.demand(blocks.of_operator(stmt, found))
        self.operate(stmt, found)
        end = blocks.end_of_load(stmt) if self.in_blocks else None
        if end is not None and not end.always():
            name = self.buffer(end.buffer)
            self.put(f"X.spill({end.buffer.number}, {name}, {self.code(end.count)}, {end.lanes})")

    def operate(self, stmt: Op, found: Meaning) -> None:
        """The call itself."""
        copy = self.plain_copy(stmt)
        if copy is not None:
            (self.put_copy if self.direct else self.put_seen_copy)(copy)
            return
        _require_dense(stmt)
        constants: dict[str, Any] = {}
        arguments: list[str] = []
        for name, value in stmt.args.items():
            code = self.argument(stmt, found, name, value)
            if code is not None and self.watched is not None and name in found.writes:
                code = code.replace("'rw'", self._update(stmt, found))
            if code is None:
                constants[name] = value
            else:
                arguments.append(f"{name}={code}")
        if found.registers:
            arguments.append("registers=X.registers")
        target = "".join(f"{self.buffer(buffer)} = " for buffer in self.replaced(stmt))
        self.call(found, constants, arguments, target)

    def demand(self, demands: Iterable[blocks.Demand]) -> None:
        """Checks of what is not certain to be whole blocks."""
        for one in demands:
            if one.always():
                continue
            size = dtypes.bits(one.buffer.dtype) // 8
            count = self.code(one.count)
            text = f"{one.what} of {one.buffer.name}"
            self.put(f"if ({count}) % {one.lanes}:")
            self.put(f"    X.misaligned({one.buffer.number}, {text!r}, ({count}) * {size}, {one.block}, {self.site})")

    def _update(self, stmt: Op, found: Meaning) -> str:
        """The code of the kind of access to an operand that is updated, unless the operator is told to forget it."""
        for name in ("init", "clear", "clear_accum", "initC"):
            parameter = inspect.signature(found.function).parameters.get(name)
            if parameter is not None:
                value = stmt.args.get(name, parameter.default)
                code = self.code(value) if isinstance(value, (Expr, int, bool)) else repr(value)
                return f"('w' if {code} else 'rw')"
        return "'rw'"

    def replaced(self, stmt: Op) -> list[Buffer]:
        """The buffer that an operator gives another array."""
        found = meaning(stmt.name, self.gpu)
        return [stmt.args[found.rebinds].buffer] if found is not None and found.rebinds else []

    def call(self, found: Meaning, constants: Mapping[str, Any], arguments: list[str], target: str = "") -> None:
        """The call of a meaning, its constants bound."""
        function = self.constant(_bound(found, self.arithmetic, constants, self.sites[self.site]))
        self.put(f"{target}{function}({', '.join(arguments)})")

    def _element_op(self, stmt: Op) -> None:
        """An operator on single elements inside ``T.Parallel``: atomics."""
        lanes = meaning(f"{stmt.name}@lanes", self.gpu)
        if lanes is None:
            raise UnsupportedOperator(f"T.{stmt.name} inside T.Parallel has no meaning in the simulator", stmt.site)
        parts, constants = [], {}
        for name, value in stmt.args.items():
            if isinstance(value, Load) and name in lanes.writes:
                index = self.tuple(value.indices)
                self.buffer(value.buffer)
                parts.append(f"{name}=(X, {value.buffer.number}, b{value.buffer.number}, {index}, {self.site})")
            elif isinstance(value, (Expr, int, float)) and not isinstance(value, bool):
                parts.append(f"{name}={self.code(value)}")
            elif isinstance(value, Region):
                raise UnsupportedOperator(f"T.{stmt.name} of a region inside T.Parallel", stmt.site)
            else:
                constants[name] = value
        parts.append(f"mask={self.mask or 'None'}")
        self.call(lanes, constants, parts)

    def argument(self, stmt: Op, found: Meaning, name: str, value: Any) -> str | None:
        """The code of one argument; None for a constant."""
        kind = ("r" if name in found.reads else "") + ("w" if name in found.writes else "")
        if isinstance(value, (Region, Load)) and kind and (found.raw or not (isinstance(value, Load) and kind == "r")):
            return self.operand(value) if found.raw else self.view(value, kind)
        if isinstance(value, Region):
            if found.raw:
                return self.operand(value)
            raise UnsupportedOperator(f"T.{stmt.name}: a region for its parameter {name}", stmt.site)
        if isinstance(value, Expr):
            return self.code(value)
        if isinstance(value, tuple) and any(isinstance(v, (Expr, Region)) for v in value):
            return tuple_code([self._item(found, v, kind or "r") for v in value])
        return None

    def _item(self, found: Meaning, value: Any, kind: str) -> str:
        """One of several values of a parameter."""
        if isinstance(value, Region):
            return self.operand(value) if found.raw else self.view(value, kind)
        return repr(value) if isinstance(value, str) else self.code(value)

    def operand(self, value: Region | Load) -> str:
        """A region or start index for a raw operator."""
        buffer = value.buffer
        name = self.buffer(buffer)
        starts = value.starts if isinstance(value, Region) else value.indices
        extents = self.tuple(value.extents) if isinstance(value, Region) else "None"
        parts = f"X, {buffer.number}, {name}, {self.tuple(starts)}, {extents}, {buffer.memory!r}, {buffer.dtype!r}"
        return f"_Operand({parts}, {self.site}{', True' if self.is_late(value) else ''})"

    def sync(self, stmt: Op) -> None:
        """Flags and barriers: the machine's business; a wait is where the generator yields."""
        arguments = "".join(f", {k}={self.code(v) if isinstance(v, Expr) else repr(v)}" for k, v in stmt.args.items())
        if stmt.name in _WAITS:
            self.put(f"for _ in S.{stmt.name}(X, {self.site}{arguments}): yield {self.site}")
        elif stmt.name in _SETS:
            self.put(f"S.{stmt.name}(X, {self.site}{arguments})")


def _bound(found: Meaning, arithmetic: Any, constants: Mapping[str, Any], site: Site) -> Any:
    """The meaning as a function of what is known only when the kernel runs; its errors name the line."""
    function = functools.partial(found.function, arithmetic, **constants)

    def run(**arguments: Any) -> Any:
        try:
            return function(**arguments)
        except SimulatorError as error:
            if error.site.line:
                raise
            raise type(error)(error.plain, site) from error
        except (TypeError, ValueError, IndexError) as error:
            raise SimulatorError(f"T.{found.name}: {error}", site) from error

    return run


# Regions with gaps, which the vector instructions cannot name.
#
# An instruction gets an address and a number of elements. A region such as some columns of all rows is not consecutive
# memory: the compiler passes its first element and its element count, so the instruction works on other elements.

_STRIDED = {
    "tile.atomic_add",
    "tile.datacachecleanandinvalid_experiment",
    "tile.row_expand_mul",
    "tile.row_expand_mul_experiment",
    "tile.row_expand_sub_experiment",
    "tile.row_expand_div_experiment",
}
"""Operators that know the row length of the buffer."""


def has_gaps(region: Region) -> bool:
    """True if the extents, as far as they are constants, show that the region is not consecutive memory."""
    if region.buffer.strides is not None:
        return False
    known = zip(region.extents, region.buffer.shape, strict=True)
    axes = [(e, s) for e, s in known]
    outer = next((n for n, (e, _) in enumerate(axes) if not (isinstance(e, int) and e == 1)), len(axes))
    return any(isinstance(e, int) and isinstance(s, int) and e != s for e, s in axes[outer + 1 :])


def _require_dense(stmt: Op) -> None:
    """Raises SimulatorError for a ``T.tile`` operator on a region with gaps."""
    if not stmt.name.startswith("tile.") or stmt.name in _STRIDED:
        return
    for name, value in stmt.args.items():
        if isinstance(value, Region) and has_gaps(value):
            raise SimulatorError(
                f"T.{stmt.name}: {name} is {value.buffer.name}{list(value.extents)}, a region with gaps in a buffer of "
                f"shape {list(value.buffer.shape)}; the instruction works on consecutive elements",
                stmt.site,
            )
