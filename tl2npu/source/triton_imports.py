"""Which texts hold Triton kernels; imported for every file of a tree, so that it costs next to nothing."""

from __future__ import annotations

import re

REEXPORTS = {"vllm.triton_utils": {"triton": "triton", "tl": "triton.language"}}
"""Modules of other projects that pass Triton's names on (vllm-project/vllm, ``vllm/triton_utils/__init__.py``)."""

_MODULES = "|".join(map(re.escape, ("triton", *REEXPORTS)))
_IMPORT = re.compile(rf"^[ \t]*(?:import|from)[ \t]+(?:{_MODULES})\b".encode(), re.MULTILINE)


def is_triton(data: bytes) -> bool:
    """True if a file may hold Triton kernels."""
    return b"triton" in data and b"jit" in data and _IMPORT.search(data) is not None
