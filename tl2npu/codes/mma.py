"""TL32x and TL33x: what a hand-written mma pipeline must show to become products of whole tiles."""

from __future__ import annotations

from tl2npu.results import Safety, Severity

# fmt: off
ROWS: tuple[tuple[str, str, Severity, Safety, str], ...] = (
    ("TL321", "untraced-mma-operand", "error", "display-only",
     "load each slot of L0A and L0B just before the mma that reads it, with the same index in load and mma"),
    ("TL323", "conditional-mma-operand", "error", "display-only",
     "load in every iteration, or in the first iterations only data that the loop does not change"),
    ("TL324", "incomplete-mma-slices", "error", "display-only",
     "read the L1 tiles in consecutive slices, from 0 to the end"),
    ("TL325", "mma-init-inside-slices", "error", "display-only",
     "clear the accumulator in the first slice only: `init=(kk == 0)`"),
    ("TL326", "mma-result-across-slots", "error", "display-only",
     "use one accumulator per result, and read it after the last slice"),
    ("TL327", "mma-operand-memory", "error", "display-only",
     "copy whole tiles from L1 into L0A and L0B, and use them in `T.mma` only"),
    ("TL328", "mma-element-types", "error", "display-only",
     "multiply float16, bfloat16 or float32 into float32, or int8 into int32"),
    ("TL331", "product-beyond-l0", "error", "display-only",
     "use smaller tiles: gemm_v0 stages 128 of K at a time, twice where K is longer, in 64 KB each of L0A and L0B"),
    ("TL332", "lost-hand-pipelining", "info", "display-only",
     "measure both; `--keep-expert` does not migrate kernels with hand-written mma pipelines"),
)
# fmt: on
