"""What the operators mean. One file per family; importing this package fills the table of ``registry``."""

from __future__ import annotations

from tl2npu.simulator.operators import copies, fill, gemm, reduce  # noqa: F401
