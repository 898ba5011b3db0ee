"""Loops. Under AUTO_CV_COMBINE a loop is kept on every core on which its body is not empty."""

from __future__ import annotations

from tl2npu.dialects.ascend.build import NO_MODE, keyword, mode, operator, scalar, shape, variadic
from tl2npu.dialects.catalogue import Core, Kind, Operator, Param, Role

_TIR = "tilelang/language/tir/ir.py"


def _for(name: str, *middle: Param) -> Operator:
    return operator(
        name,
        Kind.LOOP,
        scalar("start"),
        scalar("stop", "None"),
        *middle,
        keyword(shape("annotations", "None")),
        core=Core.BOTH,
        defined=f"{_TIR}:{name}",
        note="one positional argument is the stop",
    )


OPERATORS = (
    _for("serial"),
    _for("unroll"),
    _for("vectorized"),
    _for("parallel"),
    operator(
        "thread_binding",
        Kind.LOOP,
        scalar("start"),
        scalar("stop", "None"),
        mode("thread", "None"),
        keyword(shape("annotations", "None")),
        core=Core.NONE,
        modes=NO_MODE,
        defined=f"{_TIR}:thread_binding",
        note="GPU only",
    ),
    operator(
        "grid", Kind.LOOP, variadic("extents", Role.SCALAR), core=Core.BOTH, defined=f"{_TIR}:grid", note="nested loops"
    ),
    operator(
        "Parallel",
        Kind.LOOP,
        variadic("extents", Role.SCALAR),
        keyword(scalar("coalesced_width", "None")),
        core=Core.BOTH,
        defined="tilelang/language/parallel.py:Parallel",
        note="at most two extents; the stores of the body decide the core",
    ),
    operator(
        "Pipelined",
        Kind.LOOP,
        scalar("start"),
        scalar("stop", "None"),
        scalar("num_stages", "0"),
        shape("order", "None"),
        shape("stage", "None"),
        shape("sync", "None"),
        shape("group", "None"),
        scalar("cross_interval", "1"),
        core=Core.BOTH,
        defined="tilelang/language/pipeline.py:Pipelined",
        note="one positional argument is the stop; the second is the stop, not num_stages",
    ),
    operator(
        "Persistent",
        Kind.LOOP,
        shape("domain"),
        scalar("wave_size"),
        scalar("index"),
        scalar("group_size", "8"),
        core=Core.BOTH,
        defined="tilelang/language/persistent.py:Persistent",
        note="a domain that the waves do not divide needs a loop_break, which AUTO_CV_COMBINE cannot read",
    ),
)
