"""Shared memory between devices (shmem), registers, views, and other operators outside the dialect's core."""

from __future__ import annotations

from tl2npu.dialects.ascend.build import (
    BOTH_MODES,
    EXPERT_ONLY,
    NO_MODE,
    accumulate,
    count,
    mode,
    operator,
    read,
    scalar,
    shape,
    write,
)
from tl2npu.dialects.catalogue import Core, Kind, Operator, Param

_ASCEND = "tilelang/language/ascend.py"
_CUSTOMIZE = "tilelang/language/customize.py"


def _shmem(name: str, first: Param, second: Param, *rest: Param) -> Operator:
    return operator(
        name,
        Kind.SYSTEM,
        first,
        second,
        count("nelems"),
        scalar("newPe"),
        *rest,
        core=Core.BY_OPERANDS,
        modes=EXPERT_ONLY,
        defined=f"{_ASCEND}:{name}",
        note="newPe is the rank of the other device",
    )


def _system(
    name: str, *params: Param, file: str, modes: frozenset[str] = NO_MODE, core: Core = Core.NONE, note: str = ""
) -> Operator:
    return operator(name, Kind.SYSTEM, *params, core=core, modes=modes, defined=f"{file}:{name}", note=note)


def _gpu_atomic(name: str) -> Operator:
    return operator(
        name,
        Kind.ATOMIC,
        accumulate("dst"),
        read("value", scalar=True),
        core=Core.NONE,
        modes=NO_MODE,
        defined=f"{_CUSTOMIZE}:{name}",
        note="GPU only: rejected by the Ascend compiler, use tile.atomic_add",
    )


OPERATORS = (
    _shmem("shmem_put_nbi", write("dst"), read("src")),
    _shmem("shmem_get_nbi", write("dst"), read("src")),
    _shmem("shmem_ub_put_nbi", read("ub"), write("dst"), scalar("strelem", "0")),
    _shmem("shmem_ub_get_nbi", write("dst"), read("src")),
    _system("set_deq_scale", scalar("scale"), file=_ASCEND, modes=EXPERT_ONLY, note="sets a register of the core"),
    _system(
        "loop_break",
        file="tilelang/language/builtin.py",
        modes=EXPERT_ONLY,
        core=Core.BOTH,
        note="leaves the innermost loop; a call without arguments, which AUTO_CV_COMBINE cannot read",
    ),
    _system(
        "reshape", read("src"), shape("shape"), file=_CUSTOMIZE, modes=BOTH_MODES, note="a second name of the same data"
    ),
    _system(
        "view",
        read("src"),
        shape("shape", "None"),
        mode("dtype", "None"),
        file=_CUSTOMIZE,
        modes=BOTH_MODES,
        note="a second name of the same data",
    ),
    *(_gpu_atomic(name) for name in ("atomic_add", "atomic_addx2", "atomic_addx4")),
    _system("dp4a", read("A"), read("B"), accumulate("C"), file=_CUSTOMIZE, note="GPU only"),
    operator(
        "clamp",
        Kind.SCALAR,
        scalar("dst"),
        scalar("min_val"),
        scalar("max_val"),
        core=Core.NONE,
        defined=f"{_CUSTOMIZE}:clamp",
        note="an expression, the clamped value: min and max with constants, which T.Parallel cannot vectorise",
    ),
)
