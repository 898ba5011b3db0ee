"""What is left of a script with Triton kernels."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tl2npu.interpreter.launch import Launch

HEAD = """
import torch
import triton
import triton.language as tl
import triton.language.extra.cann.extension as al
import triton.extension.buffer.language as bl
import triton.experimental.tle.language as tle
"""


@dataclass
class Run:
    """What a script left: its names, its launches, and what was found."""

    module: ModuleType
    launches: list[Launch]
    faults: list[str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)
