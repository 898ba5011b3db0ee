"""The launch of a kernel, the cores' scopes, and the decorators."""

from __future__ import annotations

from tl2npu.dialects.ascend.build import EXPERT_ONLY, flag, keyword, mode, operator, scalar, variadic
from tl2npu.dialects.catalogue import Core, Kind, Param, Role

OPERATORS = (
    operator(
        "Kernel",
        Kind.LAUNCH,
        variadic("blocks", Role.SCALAR),
        keyword(scalar("threads", "None")),
        keyword(flag("is_cpu", "False")),
        keyword(mode("prelude", "None")),
        keyword(flag("is_npu", "False")),
        keyword(flag("pipeline", "False")),
        core=Core.BOTH,
        defined="tilelang/language/kernel.py:Kernel",
        note="with is_npu: one block dimension, threads None (binds cid and vid), 1 or 2 (binds cid)",
    ),
    operator(
        "get_block_binding",
        Kind.SCALAR,
        scalar("dim", "0"),
        core=Core.NONE,
        defined="tilelang/language/kernel.py:get_block_binding",
        note="variable `dim` of the launch's frame: 0 the block, 1 the vector core, 0 or 1",
    ),
    operator(
        "Scope",
        Kind.SCOPE,
        mode("name"),
        core=Core.NONE,
        modes=EXPERT_ONLY,
        defined="tilelang/language/warpgroup.py:Scope",
        note="'C' is the cube core, 'V' the vector cores",
    ),
    operator(
        "prim_func",
        Kind.DECORATOR,
        Param("func", Role.SCALAR, "None"),
        flag("private", "False"),
        flag("check_well_formed", "True"),
        core=Core.NONE,
        defined="tilelang/language/tir/entry.py:prim_func",
    ),
    operator(
        "macro",
        Kind.DECORATOR,
        variadic("args", Role.SCALAR),
        keyword(flag("hygienic", "True")),
        core=Core.NONE,
        defined="tvm:script/parser/tir/entry.py:macro",
        note="its body is inlined where it is called",
    ),
)
