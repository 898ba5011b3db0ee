"""What ``check`` says of a Triton kernel that stays one: what triton-ascend rejects, or does otherwise than a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from tl2npu.options import Options
from tl2npu.results import Diagnostic
from tl2npu.triton.check import launches, masks
from tl2npu.triton.host.source import TritonFile


def check(file: TritonFile, name: str, options: Options) -> Iterator[Diagnostic]:
    """Findings about a kernel of a file and its launches; nothing where the file does not show what they are."""
    yield from masks.check(file, name)
    yield from launches.check(file, name, options)
