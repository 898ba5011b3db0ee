"""``python -m tl2npu``."""

from __future__ import annotations

from tl2npu.cli import main

main()
