"""The rows of the codes about AscendNPU IR (TL4xx)."""

from __future__ import annotations

from tl2npu.results import Safety, Severity

# fmt: off
ROWS: tuple[tuple[str, str, Severity, Safety, str], ...] = (
    ("TL419", "no-way-to-npuir", "error", "display-only",
     "migrate the kernel with `--to ascendc`, or write it for AscendNPU IR by hand"),
    ("TL441", "npuir-expert-kernel", "error", "display-only",
     "write the kernel in the Developer mode of AscendNPU IR first, or compile it for that target"),
)
# fmt: on
