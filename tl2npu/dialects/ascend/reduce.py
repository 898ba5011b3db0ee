"""Reductions of a UB tile, ``T.reduce_*``, and what the name space inherits from the GPU language.

No temporary buffer is passed: the compiler adds it. (Older sources had ``reduce_max(out, buffer, tmp, dim)``, now only
in the unexported ``tilelang/language/pto.py``.) ``dim`` counts 0 or 1 (-2 or -1) of the last two axes.
"""

from __future__ import annotations

from tl2npu.dialects.ascend.build import (
    NO_MODE,
    flag,
    keyword,
    mode,
    operator,
    read,
    shape,
    variadic,
    write,
)
from tl2npu.dialects.catalogue import Core, Kind, Operator, Role

_FILE = "tilelang/language/reduce_ascend.py"
_GPU_FILE = "tilelang/language/reduce.py"
_CLEAR = "clear=False combines with the old out, but the compiler sees out as written only"


def _reduce(name: str) -> Operator:
    return operator(
        name,
        Kind.REDUCE,
        read("buffer"),
        write("out"),
        flag("dim", "-1"),
        variadic("args", Role.FLAG),
        keyword(flag("clear", "True")),
        keyword(shape("real_shape", "None")),
        core=Core.VECTOR,
        row_independent=True,
        axis="dim",
        extras=("clear", "real_shape"),
        defined=f"{_FILE}:{name}",
        note=f"after dim, a bool is clear and a list or tuple is real_shape; {_CLEAR}",
    )


OPERATORS = (
    operator(
        "reduce",
        Kind.REDUCE,
        read("buffer"),
        write("out"),
        mode("reduce_type"),
        flag("dim"),
        shape("real_shape", "None"),
        flag("clear", "True"),
        core=Core.VECTOR,
        row_independent=True,
        axis="dim",
        defined=f"{_FILE}:reduce",
        note=f"reduce_type is 'reduce_max', 'reduce_min' or 'reduce_sum'; {_CLEAR}",
    ),
    _reduce("reduce_max"),
    _reduce("reduce_min"),
    _reduce("reduce_sum"),
    operator(
        "reduce_abssum",
        Kind.REDUCE,
        read("buffer"),
        write("out"),
        flag("dim", "-1"),
        core=Core.NONE,
        modes=NO_MODE,
        defined=f"{_GPU_FILE}:reduce_abssum",
        note="GPU only",
    ),
    operator(
        "reduce_absmax",
        Kind.REDUCE,
        read("buffer"),
        write("out"),
        flag("dim", "-1"),
        flag("clear", "True"),
        core=Core.NONE,
        modes=NO_MODE,
        defined=f"{_GPU_FILE}:reduce_absmax",
        note="GPU only: rejected by the Ascend compiler",
    ),
    operator(
        "cumsum",
        Kind.REDUCE,
        read("src"),
        write("dst", "None"),
        flag("dim", "0"),
        flag("reverse", "False"),
        core=Core.NONE,
        modes=NO_MODE,
        defined=f"{_GPU_FILE}:cumsum",
        note="GPU only: silently dropped by the Ascend compiler; without dst it works in place",
    ),
)
