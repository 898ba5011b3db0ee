"""Where in the user's files something happens: the innermost frame that is neither of Triton nor of this package."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from tl2npu.simulator.ir.stmt import Site


@cache
def _libraries() -> tuple[str, ...]:
    found = (sys.modules.get(name) for name in ("tl2npu", "triton", "torch"))
    own = [f"{Path(str(module.__file__)).parent}/" for module in found if module is not None]
    return (*own, "<frozen")


def here() -> Site:
    """The line of the user's code that runs; ``file`` is as it was compiled."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_libraries()):
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno)


def shown() -> str:
    """The same as ``file:line``, without the folder."""
    site = here()
    return f"{Path(site.file).name}:{site.line}"
