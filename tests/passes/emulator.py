"""Runs small kernels on numpy, before and after a migration: what the text means, not what a compiler makes of it.

A block is a cube process and two vector processes (``as (cid, vid)``) or one vector process that has the whole tile
(``threads=...``). Every process executes the whole text and leaves out what the other core does. Cross flags are
counters; without flags the i-th read of a scratch tensor waits for the i-th write, which is what AUTO_CV_SYNC pairs.
On-chip memory and scratch tensors start as NaN.
"""

from __future__ import annotations

import builtins
import inspect
import threading
from collections import defaultdict
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.passes.emulated_language import language
from tests.passes.emulated_memory import Buf, Machine, here


def load(text: str) -> dict[str, Any]:
    """Execute a file with the stand-in for tilelang; its names."""
    operators = language()
    keys = SimpleNamespace(
        **{
            n: n
            for n in (
                "TL_ASCEND_AUTO_CV_COMBINE",
                "TL_ASCEND_AUTO_CV_SYNC",
                "TL_ASCEND_AUTO_SYNC",
                "TL_ASCEND_MEMORY_PLANNING",
            )
        }
    )
    jit = lambda *_, **__: lambda f: f  # noqa: E731
    package = SimpleNamespace(language=operators, jit=jit, PassConfigKey=keys, compile=lambda f, **_: f)

    def fake(name: str, glob: Any = None, loc: Any = None, names: Any = (), level: int = 0) -> Any:
        if name == "tilelang.language" and names:
            return operators
        return (
            package
            if name.startswith("tilelang")
            else SimpleNamespace()
            if name == "torch"
            else __import__(name, glob, loc, names, level)
        )

    space: dict[str, Any] = {"__builtins__": {**vars(builtins), "__import__": fake}, "__name__": "kernel"}
    exec(
        compile(
            text.replace("import tilelang.language as T", "from tilelang import language as T"),
            "<kernel>",
            "exec",
            dont_inherit=True,
        ),
        space,
    )
    return space


def _part(array: np.ndarray, shape: Any) -> np.ndarray:
    return np.array(array[tuple(slice(int(n)) for n in shape)], float)


def run(
    text: str, inputs: Mapping[str, np.ndarray], factory: str = "factory", args: tuple[Any, ...] = ()
) -> dict[str, np.ndarray]:
    """Every tensor of the kernel after all blocks have run; tensors that are no inputs start as NaN."""
    function = load(text)[factory](*args)
    shapes = {name: p.annotation[0] for name, p in inspect.signature(function).parameters.items()}
    tensors = {
        name: _part(inputs[name], shape) if name in inputs else np.full(shape, np.nan) for name, shape in shapes.items()
    }
    bufs = [Buf(array, "GM", name) for name, array in tensors.items()]
    manual = "set_cross_flag" in text
    _process(function, bufs, Machine(1, set()), "probe", 0, 0, set())
    (blocks, threads), l1 = here.grid, set(here.cube)
    vectors = 1 if threads else 2
    for cid in range(blocks):
        machine = Machine(vectors, set() if manual else set(tensors) - set(inputs))
        jobs = [("C", 0), *(("V", vid) for vid in range(vectors))]
        running = [
            threading.Thread(target=_guarded, args=(function, bufs, machine, core, cid, vid, l1)) for core, vid in jobs
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        if machine.errors:
            raise machine.errors[0]
    return tensors


def _process(function: Any, bufs: list[Buf], machine: Machine, core: str, cid: int, vid: int, l1: set[str]) -> None:
    here.core, here.cid, here.vid, here.machine, here.l1 = core, cid, vid, machine, l1
    here.scope, here.ordinal, here.cube, here.local = None, 0, set(), defaultdict(int)
    here.blank = 0.0 if core == "probe" else np.nan
    function(*bufs)


def _guarded(function: Any, bufs: list[Buf], machine: Machine, *place: Any) -> None:
    try:
        _process(function, bufs, machine, *place)
    except BaseException as error:
        with machine.lock:
            machine.errors.append(error)
            machine.lock.notify_all()
