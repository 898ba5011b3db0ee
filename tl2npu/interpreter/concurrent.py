"""Runs launches whose cores work at the same time. Imported when Triton has been.

Which names of the language a kernel uses, itself or in a device function, decides how it is run:

- ``al.scope``: each block is a cube core and two vector cores, which all call the kernel and skip the scopes of others;
- ``sub_vec_id`` without scopes: the compiler would split the kernel, whose meaning is its order: each vector core runs
  all of it, one after the other;
- ``sync_block_all``: all blocks at once;
- none of them: one program for each block.

Launches of the first three kinds run twice, under opposite schedules. Results that differ depend on which core is
faster.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from triton.runtime import interpreter

from tl2npu.interpreter import execution
from tl2npu.interpreter.cores import CUBE, CUBE_FIRST, VECTOR, VECTOR_FIRST, VECTORS, Core, Cores, Deadlock, Schedule
from tl2npu.interpreter.execution import Launching
from tl2npu.interpreter.memory import bytes_at
from tl2npu.interpreter.session import Interpreter, KernelFault
from tl2npu.interpreter.shim.sync import HALF, MEANS, SCOPE, TOGETHER
from tl2npu.simulator.hazards.hazard import UNPAIRED
from tl2npu.simulator.ir.stmt import Site

RACE = "race"
_MOST_CORES = 3072


def run(launching: Launching, session: Interpreter) -> None:
    """Run a launch as what it uses asks for. Raises KernelFault for a deadlock."""
    used = uses(launching.function)
    if not used:
        execution.in_blocks(launching)
        return
    storages = [bytes_at(address, size) for address, size in launching.storages]
    before = [storage.copy() for storage in storages]
    _under(CUBE_FIRST, launching, session, used)
    if not session.watching:
        return
    first = [storage.copy() for storage in storages]
    for storage, old in zip(storages, before, strict=True):
        storage[...] = old
    _under(VECTOR_FIRST, launching, session, used)
    second = [storage.copy() for storage in storages]
    for storage, old in zip(storages, first, strict=True):
        storage[...] = old
    if text := _difference(launching, first, second):
        session.fault(RACE, text, kernel=launching.kernel)


def uses(function: Any) -> frozenset[str]:
    """What of the language decides how a kernel has to be run, its device functions included."""
    found: set[str] = set()
    seen: set[Any] = set()
    left = [function]
    while left:
        function = left.pop()
        if function in seen:
            continue
        seen.add(function)
        for value in _mentioned(function):
            if isinstance(value, interpreter.InterpretedFunction):
                left.append(value.fn)
            elif isinstance(means := getattr(value, MEANS, None), str):
                found.add(means)
    return frozenset(found)


def _mentioned(function: Any) -> list[Any]:
    """The values of the names in a function that are of the module or of functions around it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return []
    names = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    return [value for node in ast.walk(tree) if (value := _value(node, names)) is not None]


def _value(node: ast.AST, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        outer = _value(node.value, names)
        return getattr(outer, node.attr, None) if inspect.ismodule(outer) else None
    return None


def _under(schedule: Schedule, launching: Launching, session: Interpreter, used: frozenset[str]) -> None:
    """Run all blocks under a schedule."""
    function, arguments = execution.prepared(launching)
    nx, ny, nz = launching.grid
    builder = interpreter.interpreter_builder
    builder.set_grid_dim(nx, ny, nz)
    scoped = SCOPE in used
    kinds = [(CUBE, 0)] if scoped or HALF not in used else []
    kinds += [(VECTOR, number) for number in range(VECTORS)] if scoped or HALF in used else []
    blocks = range(prod(launching.grid))

    def resume(number: int) -> Callable[[], None]:
        return lambda: builder.set_grid_idx(number % nx, number // nx % ny, number // (nx * ny))

    def cores_of(number: int) -> list[Core]:
        body: Callable[[], None] = lambda: function(**arguments)  # noqa: E731
        return [Core(kind, core, number, body, resume(number)) for kind, core in kinds]

    groups = [cores_of(number) for number in blocks]
    if TOGETHER in used:
        groups = [[core for group in groups for core in group]]
        if len(groups[0]) > _MOST_CORES:
            raise KernelFault(
                f"{launching.kernel}: {len(blocks)} blocks that meet at a barrier are more than can be run"
            )
    for group in groups:
        cores = Cores(group, schedule, scoped)
        try:
            cores.run()
        except Deadlock as error:
            code = launching.function.__code__
            raise KernelFault(f"{launching.kernel}: {error}", Site(code.co_filename, code.co_firstlineno)) from None
        for event in cores.left:
            session.fault(UNPAIRED, f"{launching.kernel}: {event} is not waited for", kernel=launching.kernel)


def _difference(launching: Launching, first: list[np.ndarray], second: list[np.ndarray]) -> str:
    """Where the results of two schedules differ; empty where nowhere."""
    tensors = launching.tensors
    for number, (left, right) in enumerate(zip(first, second, strict=True)):
        if np.array_equal(left, right):
            continue
        for name, tensor in tensors.items():
            if tensor.storage != number:
                continue
            one, other = tensor.of(left), tensor.of(right)
            wrong = np.argwhere((one != other) & ~((one != one) & (other != other)))
            if len(wrong):
                place = tuple(int(i) for i in wrong[0])
                where = f"{name}[{', '.join(map(str, place))}]"
                sides = f"{one[place]} when {CUBE_FIRST.name}, {other[place]} when {VECTOR_FIRST.name}"
                return f"{launching.kernel}: the result depends on which core is faster: {where} is {sides}"
        return f"{launching.kernel}: the result depends on which core is faster"
    return ""
