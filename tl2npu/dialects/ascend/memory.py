"""Buffer allocation: ``T.alloc_*``.

Scopes: ``shared`` is UB, ``shared.dyn`` and ``shared.l1`` are L1, ``wmma.matrix_a/b/accumulator`` are L0A, L0B, L0C.
``alloc_shared`` becomes L1 or UB by its uses (``src/transform/ascend_infer_buffer_scope.cc``).
"""

from __future__ import annotations

from tl2npu.dialects.ascend.build import BOTH_MODES, EXPERT_ONLY, keyword, mode, operator, read, scalar, shape, variadic
from tl2npu.dialects.catalogue import Core, Kind, Operator, Role

_FILE = "tilelang/language/allocate.py"


def _explicit(name: str, memory: str, core: Core) -> Operator:
    return operator(
        name,
        Kind.ALLOC,
        shape("shape"),
        mode("dtype"),
        core=core,
        modes=EXPERT_ONLY,
        memory=memory,
        defined=f"{_FILE}:{name}",
    )


OPERATORS = (
    _explicit("alloc_L1", "l1", Core.CUBE),
    _explicit("alloc_L0A", "l0a", Core.CUBE),
    _explicit("alloc_L0B", "l0b", Core.CUBE),
    _explicit("alloc_L0C", "l0c", Core.CUBE),
    _explicit("alloc_ub", "ub", Core.VECTOR),
    operator(
        "alloc_shared",
        Kind.ALLOC,
        shape("shape"),
        mode("dtype"),
        mode("scope", "'shared.dyn'"),
        core=Core.BY_OPERANDS,
        memory="shared",
        defined=f"{_FILE}:alloc_shared",
        note="L1 unless a vector operator or a copy on the vector side uses it",
    ),
    operator(
        "alloc_fragment",
        Kind.ALLOC,
        shape("shape"),
        mode("dtype"),
        mode("scope", "'local.fragment'"),
        core=Core.CUBE,
        memory="fragment",
        defined=f"{_FILE}:alloc_fragment",
        note="always L0; as an accumulator L0C",
    ),
    operator(
        "alloc_var",
        Kind.ALLOC,
        mode("dtype"),
        variadic("args", Role.SCALAR),
        keyword(mode("scope", "'local.var'")),
        keyword(scalar("init", "None")),
        core=Core.BOTH,
        memory="var",
        extras=("init", "scope"),
        defined=f"{_FILE}:alloc_var",
        note="one element; a single positional string is the scope, anything else the initial value; "
        "under AUTO_CV_COMBINE stores to it run on the cube core only",
    ),
    operator(
        "alloc_buffer",
        Kind.ALLOC,
        shape("shape"),
        mode("dtype", "'float32'"),
        read("data", "None"),
        shape("strides", "None"),
        scalar("elem_offset", "None"),
        mode("scope", "'global'"),
        scalar("align", "-1"),
        scalar("offset_factor", "0"),
        mode("buffer_type", "'default'"),
        shape("axis_separators", "None"),
        core=Core.BY_OPERANDS,
        modes=BOTH_MODES,
        memory=None,
        defined="tvm:script/ir_builder/tir/ir.py:alloc_buffer",
        note="the scope argument names the memory",
    ),
)
