"""TL7xx: what single instructions of the NPU ask for: element types, alignment, arguments."""

from __future__ import annotations

from tl2npu.results import Safety, Severity

# fmt: off
ROWS: tuple[tuple[str, str, Severity, Safety, str], ...] = (
    ("TL730", "call-without-signature", "error", "display-only",
     "give the arguments that docs/dialect-ascend.md lists"),
)
# fmt: on
