"""tl2npu: source-to-source migration of TileLang kernels to Ascend Developer mode."""

from __future__ import annotations

__version__ = "0.1.0"
