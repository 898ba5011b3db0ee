"""TL951 to TL956: what makes a kernel slow. Notes only: each of them is right as it is."""

from __future__ import annotations

from tl2npu.results import Safety, Severity

# fmt: off
ROWS: tuple[tuple[str, str, Severity, Safety, str], ...] = (
    ("TL951", "slow-tiles", "info", "display-only",
     "try these sizes; `tl2npu cost` has the estimate of each pipe"),
    ("TL952", "small-transfers", "info", "display-only",
     "use larger tiles, or load several at once, so that a copy moves 16 KB or more"),
    ("TL953", "short-vectors", "info", "display-only",
     "make rows longer, or write operators on whole tiles"),
    ("TL954", "many-blocks", "info", "display-only",
     "migrate with `--fixed-core`: as many blocks as there are cores, each with a loop over its tasks"),
    ("TL955", "repeated-load", "info", "display-only",
     "move the copy in front of the loop"),
    ("TL956", "waiting-cores", "info", "display-only",
     "choose sizes for which the loop has stages, or tiles with which both cores have as much to do"),
)
# fmt: on
