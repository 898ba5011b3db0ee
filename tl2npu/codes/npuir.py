"""The rows of the codes about AscendNPU IR (TL4xx)."""

from __future__ import annotations

from tl2npu.results import Safety, Severity

# fmt: off
ROWS: tuple[tuple[str, str, Severity, Safety, str], ...] = (
    ("TL401", "gpu-target", "info", "safe", "compile with `target=\"npuir\"`"),
    ("TL402", "gpu-grid", "info", "safe", "launch with `is_npu=True` and one grid axis; name the second axis `_`"),
    ("TL403", "missing-mode", "info", "safe",
     "set `os.environ[\"TILELANG_ASCEND_MODE\"] = \"Developer\"` before a kernel is compiled"),
    ("TL404", "gpu-gemm-keyword", "info", "safe", "write `a_transpose`, `b_transpose` and `initC`"),
    ("TL405", "cleared-product", "info", "safe", "let `initC` of the first `T.gemm` clear the product"),
    ("TL406", "number-as-fill-value", "info", "safe",
     "clear with `T.clear`; give any other number a name in the kernel and fill with that"),
    ("TL407", "reduced-axis-dropped", "info", "safe", "keep the reduced axis with extent 1: `(M, 1)`"),
    ("TL408", "unkeepable-axis", "error", "display-only",
     "allocate the result of the reduction, and what is computed with it, with the reduced axis: `(M, 1)`"),
    ("TL410", "function-in-parallel", "info", "safe", "call it on the whole tile: `T.vexp2(x, x, tmp)`"),
    ("TL411", "deep-pipeline", "info", "safe", "write `num_stages=2`"),
    ("TL415", "unreducible-tile", "error", "display-only",
     "reduce with max, min or sum over one axis, and scan forwards"),
    ("TL418", "function-without-code", "error", "display-only",
     "use a function that vector operations have, in a `T.Parallel` with one statement over whole tiles"),
    ("TL419", "no-way-to-npuir", "error", "display-only",
     "migrate the kernel with `--to ascendc`, or write it for AscendNPU IR by hand"),
    ("TL441", "npuir-expert-kernel", "error", "display-only",
     "write the kernel in the Developer mode of AscendNPU IR first, or compile it for that target"),
    ("TL460", "missing-in-npuir", "error", "display-only",
     "use an operator that docs/dialect-npuir.md lists with a mode; element types are strings"),
    ("TL461", "npuir-arguments", "error", "display-only",
     "give the arguments that docs/dialect-npuir.md lists, all behind the buffers by keyword"),
    ("TL462", "npuir-literal-fill", "error", "display-only",
     "bind the number to a name inside of the kernel first, or use `T.clear` for zero"),
    ("TL463", "npuir-lost-axis", "error", "display-only",
     "give both operands the same rank: statistics of rows are `[M, 1]`"),
    ("TL464", "npuir-product-operands", "error", "display-only",
     "give tiles of [m, k], [k, n] and [m, n] in types that can be multiplied"),
    ("TL465", "npuir-copy-size", "error", "display-only",
     "write slices on the side that is a part, or `size=[...]` with start indices on both"),
    ("TL466", "npuir-launch", "error", "display-only",
     "launch with `T.Kernel(n, is_npu=True) as (cid, _)`, and loop with fixed bounds"),
    ("TL467", "npuir-scalar-loop", "warning", "display-only",
     "use constant extents, plain indices and one assignment per statement, or a vector operator such as `T.vadd`"),
)
# fmt: on
