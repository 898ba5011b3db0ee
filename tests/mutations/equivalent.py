"""Mutants that compute the same as the file that they were made of: why, as far as that can be told by a rule.

Only mutants that ``verify`` and ``check`` let pass are asked about.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import Counter
from dataclasses import fields, is_dataclass
from math import prod
from typing import Any

from tests.fixture_case import Case
from tests.mutations.mutants import Mutant
from tl2npu.devices import ALIGNMENT, DEVICES
from tl2npu.options import Options
from tl2npu.simulator.errors import SimulatorError
from tl2npu.simulator.ir import dtypes
from tl2npu.simulator.ir.buffer import Buffer
from tl2npu.simulator.ir.expr import Var
from tl2npu.simulator.ir.stmt import Alloc
from tl2npu.simulator.ir.stmt import walk as statements
from tl2npu.simulator.lowering.lower import lower
from tl2npu.simulator.standin.package import installed
from tl2npu.simulator.standin.session import Session
from tl2npu.verify.judge import verify
from tl2npu.verify.launching import built
from tl2npu.verify.loading import Source, anything_importable, execute
from tl2npu.verify.process import here
from tl2npu.verify.settings import Call, Settings

_SYNC, _PLANNING = "tl.ascend_auto_sync", "tl.ascend_memory_planning"
_NOT_COMPARED = {"site", "hint", "notes", "name"}


def reason(case: Case, mutant: Mutant) -> str:
    """Why a mutant is equivalent; empty if no rule says so. Each rule compares programs, sizes or results."""
    if (old := program(case, case.after)) is not None and old == program(case, mutant.text):
        return "the traced program is the same for these arguments"
    off = _keys(case, mutant)
    if _SYNC not in off and (found := lowered(case, case.after)) is not None and found == lowered(case, mutant.text):
        if _PLANNING not in off:
            return "the compiler makes the same program for each core"
        if _fits_apart(case, mutant):
            return "the same program without memory planning, and the sum of its tiles fits"
    if text := _argument(case, mutant):
        return text if _same_bits(case, mutant) else ""
    return ""


def _argument(case: Case, mutant: Mutant) -> str:
    """Why a mutant should compute the same, where only its results can show it."""
    if mutant.kind == "launch":
        return "another number of vector cores: the same bits on all inputs"
    if mutant.kind == "type" and _wider(case, mutant):
        return "a tile of a wider type: the same bits on all inputs"
    if mutant.kind == "extent" and ") + 1" in mutant.name:
        return "one block or turn more, whose copies are clipped: the same bits on all inputs"
    if mutant.kind == "slice" and " + 1" in mutant.name.split(" -> ")[1]:
        return "a slice that ends behind the tensor: the same bits on all inputs"
    return ""


def _same_bits(case: Case, mutant: Mutant) -> bool:
    """On the inputs of all draws, against the migrated kernel itself."""
    calls = (Call(case.builder or case.factory, case.args, case.inputs),)
    old, new = (Source(text, f"{case.name}/{name}.py", name) for text, name in ((case.after, "a"), (mutant.text, "b")))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return verify(old, new, Settings(calls=calls, check=None, rtol=0.0, atol=0.0), here).ok


def _fits_apart(case: Case, mutant: Mutant) -> bool:
    """Whether all tiles of each core fit into its memories side by side, each at a multiple of its alignment."""
    compiled = _kernel(case, mutant.text)
    if compiled is None:
        return False
    device = DEVICES[Options(**case.options).device]
    for launch in compiled.kernel.launches:
        for _, _, body in lower(compiled.kernel, launch).cores:
            sizes: Counter[str] = Counter()
            for stmt in statements(body):
                if isinstance(stmt, Alloc) and stmt.buffer.alias is None:
                    memory, shape = stmt.buffer.memory, stmt.buffer.shape
                    if not all(isinstance(extent, int) for extent in shape):
                        return False
                    step = ALIGNMENT.of(memory) or 32
                    size = prod(shape) * dtypes.bits(stmt.buffer.dtype) // 8
                    sizes[memory] += -(-size // step) * step
            if any((limit := device.capacity.of(m)) is not None and n > limit for m, n in sizes.items()):
                return False
    return True


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
