"""Which tensor of the new kernel is which of the old one: by name, and where names changed by shape and type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.verify.recording import Recording


class Unmatched(Exception):
    """A parameter of the new kernel has no counterpart; ``str()`` names it."""


@dataclass(frozen=True)
class Match:
    """``tensors``, ``scalars``: parameter of the new kernel -> parameter of the old one. ``gone``: old tensors that the
    new kernel does not have; ``made`` new ones that its call makes and the old kernel does not have."""

    tensors: dict[str, str]
    scalars: dict[str, str]
    gone: tuple[str, ...]
    made: tuple[str, ...]


def match(recording: Recording, compiled: Any) -> Match:
    """Match the parameters of a compiled kernel with those of a recorded launch.

    Tensors of the same name belong together. What is left is matched in order with old tensors of the same type and
    rank that are left, outputs with outputs and scratch with scratch. Raises Unmatched where the caller would have to
    pass something that the old kernel did not have.
    """
    kernel = compiled.kernel
    params = kernel.params
    scratch = {params[n].name for n in compiled.workspace_idx}
    returned = {params[n].name for n in compiled.out_idx} | {b.name for b in kernel.outputs}
    buffers = [p for p in (*params, *kernel.outputs) if isinstance(p, Buffer)]
    tensors = {b.name: b.name for b in buffers if b.name in recording.inputs}
    left = [name for name in recording.order if name not in tensors]
    made: list[str] = []
    for buffer in buffers:
        if buffer.name in tensors:
            continue
        kind = _kind(buffer.name, returned, scratch)
        fits = [n for n in left if _fits(recording, n, buffer) and _kind_of(recording, n) == kind]
        fits = fits or [n for n in left if kind == "given" and _fits(recording, n, buffer)]
        if fits:
            tensors[buffer.name] = fits[0]
            left.remove(fits[0])
        elif kind == "given":
            raise Unmatched(f"the new kernel has a parameter {buffer.name} that the old one does not have")
        else:
            made.append(buffer.name)
    scalars: dict[str, str] = {}
    names = [p.name for p in params if isinstance(p, Var)]
    spare = [n for n in recording.scalars if n not in names]
    for name in names:
        if name in recording.scalars:
            scalars[name] = name
        elif spare:
            scalars[name] = spare.pop(0)
        else:
            raise Unmatched(f"the new kernel has a parameter {name} that the old one does not have")
    return Match(tensors, scalars, tuple(left), tuple(made))


def _kind(name: str, returned: set[str], scratch: set[str]) -> str:
    return "scratch" if name in scratch else "returned" if name in returned else "given"


def _kind_of(recording: Recording, name: str) -> str:
    made = recording.made
    return _kind(name, set(made - recording.scratch), set(recording.scratch))


def _fits(recording: Recording, name: str, buffer: Buffer) -> bool:
    array = recording.inputs[name]
    if array.dtype.name != buffer.dtype or array.ndim != len(buffer.shape):
        return False
    pairs = zip(array.shape, buffer.shape, strict=True)
    return all(not isinstance(extent, int) or size == extent for size, extent in pairs)
