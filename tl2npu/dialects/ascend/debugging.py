"""Output from inside a kernel."""

from __future__ import annotations

from tl2npu.dialects.ascend.build import NO_MODE, count, mode, operator, read, scalar, shape, variadic
from tl2npu.dialects.catalogue import Core, Kind, Role

OPERATORS = (
    operator(
        "printf",
        Kind.DEBUG,
        mode("format_str"),
        variadic("args", Role.READ),
        core=Core.BOTH,
        defined="tilelang/language/ascend.py:printf",
        note="the one call that AUTO_CV_COMBINE keeps on both cores",
    ),
    operator(
        "dump_tensor",
        Kind.DEBUG,
        read("tensor"),
        scalar("desc"),
        count("dump_size"),
        shape("shape_info", "()"),
        core=Core.BY_OPERANDS,
        defined="tilelang/language/ascend.py:dump_tensor",
        note="runs on the core of the tensor's memory, for a tensor in global memory on that of the statement before",
    ),
    operator(
        "print",
        Kind.DEBUG,
        read("obj", scalar=True),
        mode("msg", "''"),
        core=Core.NONE,
        modes=NO_MODE,
        defined="tilelang/language/print.py:print",
        note="GPU only: use printf or dump_tensor",
    ),
)
