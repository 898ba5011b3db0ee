"""Mutants that compute the same as the file that they were made of: why, as far as that can be told by a rule.

Only mutants that ``verify`` and ``check`` let pass are asked about.
"""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import fields, is_dataclass
from typing import Any

from tests.fixture_case import Case
from tests.mutations.mutants import Mutant
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.lowering.lower import lower
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.launching import built
from tl2npu.verify.loading import Source, anything_importable, execute

_NOT_COMPARED = {"site", "hint", "notes", "name"}


def reason(case: Case, mutant: Mutant) -> str:
    """Why a mutant is equivalent; empty if no rule says so."""
    if (old := program(case, case.after)) is not None and old == program(case, mutant.text):
        return "the traced program is the same for these arguments"
    if (found := lowered(case, case.after)) is not None and found == lowered(case, mutant.text):
        return "the compiler makes the same program for each core"
    if mutant.kind == "launch":
        return "the number of vector cores decides about speed: both readings agree, and no limit is broken"
    if mutant.kind == "type" and _wider(case, mutant):
        return "a tile of a wider type rounds less"
    if mutant.kind == "extent" and ") + 1" in mutant.name:
        return "one block or turn more, whose tiles lie behind the tensors: the compiler clips them to nothing"
    if mutant.kind == "slice" and " + 1" in mutant.name.split(" -> ")[1]:
        return "the slice ends behind the tensor, where a copy ends as well"
    keys = _keys(case, mutant) if mutant.kind == "pass_configs" else set()
    if keys and all("memory_planning" in key for key in keys):
        return "without memory planning each tile has memory of its own, and there is enough"
    return ""


def _wider(case: Case, mutant: Mutant) -> bool:
    """All tiles whose types differ have the wider one in the mutant."""
    old, new = (_tiles(case, text) for text in (case.after, mutant.text))
    bits = {"float16": 16, "bfloat16": 16, "float32": 32}
    if old is None or new is None or len(old) != len(new):
        return False
    changed = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    return bool(changed) and all(bits.get(b, 0) > bits.get(a, 99) for a, b in changed)


def _keys(case: Case, mutant: Mutant) -> set[str]:
    """The keys of ``pass_configs`` that a mutant switches off."""
    old, new = (_kernel(case, text) for text in (case.after, mutant.text))
    if old is None or new is None:
        return set()
    return {str(k).lower() for k, on in old.kernel.configs.items() if on and not new.kernel.configs.get(k)}


def _tiles(case: Case, text: str) -> list[str] | None:
    kernel = _kernel(case, text)
    if kernel is None:
        return None
    found: dict[int, str] = {}
    _dump(kernel.kernel, {}, found)
    return list(found.values())


def program(case: Case, text: str) -> Any:
    """What the front end makes of a file with the arguments of its case; None if that cannot be told."""
    compiled = _kernel(case, text)
    if compiled is None:
        return None
    kernel = compiled.kernel
    return _dump([kernel.params, kernel.outputs, kernel.launches, kernel.configs, compiled.out_idx], {}, {})


def lowered(case: Case, text: str) -> Any:
    """The programs of the cores, as the compiler's rules make them; None if that cannot be told."""
    compiled = _kernel(case, text)
    if compiled is None:
        return None
    seen: dict[int, int] = {}
    _dump([compiled.kernel.params, compiled.kernel.outputs], seen, {})
    try:
        programs = [lower(compiled.kernel, launch) for launch in compiled.kernel.launches]
    except SimulatorError:
        return None
    return [_dump([program.cores, program.launch.extents], seen, {}) for program in programs]


def _kernel(case: Case, text: str) -> Any:
    session = Session()
    source = Source(text, f"{case.name}/after.py", "after.py")
    try:
        with installed(session), anything_importable(), contextlib.redirect_stdout(io.StringIO()):
            try:
                module = execute(source, "mutant", ())
            except (Exception, SystemExit):  # its script needs what is not here; its kernels are there by then
                module = sys.modules["mutant"]
            compiled = built(module, case.builder or case.factory, dict(case.args), session, of_old=True)
    except Exception:
        return None
    return compiled if hasattr(compiled, "kernel") else None


def _dump(value: Any, seen: dict[int, int], tiles: dict[int, str]) -> Any:
    """A value of the program as plain data; variables and buffers are numbers in the order of their appearance."""
    if isinstance(value, (Buffer, Var)):
        first = id(value) not in seen
        number = seen.setdefault(id(value), len(seen))
        if not first:
            return number
        if isinstance(value, Buffer):
            tiles[number] = value.dtype
            rest = [list(value.shape), value.strides, value.offset, value.alias]
            return number, value.dtype, value.memory, _dump(rest, seen, tiles)
        return number, value.dtype
    if is_dataclass(value) and not isinstance(value, type):
        kept = [f.name for f in fields(value) if f.name not in _NOT_COMPARED or type(value).__name__ in ("Op", "Call")]
        kept = [name for name in kept if name != "site"]
        return (type(value).__name__, *(_dump(getattr(value, name), seen, tiles) for name in kept))
    if isinstance(value, dict):
        stated = {k: v for k, v in value.items() if not (k == "clear" and v is True)}  # the default
        return tuple((str(k), _dump(v, seen, tiles)) for k, v in stated.items())
    if isinstance(value, (list, tuple)):
        return tuple(_dump(item, seen, tiles) for item in value)
    return repr(value)
